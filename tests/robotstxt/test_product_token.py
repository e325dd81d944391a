"""What callers call their agents, and which product tokens these are."""

from __future__ import annotations

import pytest

from robotsgate.errors import InvalidProductTokenError, RobotsError
from robotsgate.robotstxt._product_token import leading_token, product_tokens

_SAFARI = (
    "AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://x/)"
)


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        pytest.param("ExampleBot", "examplebot", id="a token, in lower case"),
        pytest.param("  ExampleBot\n", "examplebot", id="white space around it"),
        pytest.param("MJ12bot", "mj12bot", id="digits"),
        pytest.param("008", "008", id="digits alone"),
        pytest.param(
            "sitecheck.internetseer.com", "sitecheck.internetseer.com", id="dots"
        ),
        pytest.param("my_bot-news", "my_bot-news", id="underscore and hyphen"),
        pytest.param("*", "*", id="the star is any agent"),
        pytest.param(" * ", "*", id="the star with white space"),
        pytest.param(
            "ExampleBot/1.0 (+https://example.org/bot)",
            "examplebot",
            id="a header with a URL in its comment",
        ),
        pytest.param(
            "ExampleBot (+https://example.org/bot)", "examplebot", id="no version"
        ),
        pytest.param("ExampleBot/0.1 libwww-perl/5.8", "examplebot", id="two products"),
        pytest.param("ExampleBot(x)", "examplebot", id="a comment without a space"),
        pytest.param(
            "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.org/bot)",
            "examplebot",
            id="a header that is Mozilla-compatible",
        ),
        pytest.param(
            "Mozilla/5.0 (compatible;ExampleBot)", "examplebot", id="compatible, tight"
        ),
        pytest.param(
            f"Mozilla/5.0 {_SAFARI} Chrome/1", "googlebot", id="compatible further on"
        ),
        pytest.param("Mozilla/5.0 (X11; Linux)", "mozilla", id="a browser itself"),
        pytest.param("Mozilla/5.0 (compatible; )", "mozilla", id="compatible to none"),
        pytest.param(
            "Mozilla/5.0 (compatible; +x)", "mozilla", id="no token behind it"
        ),
        pytest.param("*bot", None, id="a star before a name is no token"),
    ],
)
def test_agent_is_reduced_to_its_product_token(agent: str, token: str | None) -> None:
    if token is None:
        with pytest.raises(InvalidProductTokenError):
            product_tokens(agent)
        return

    assert product_tokens(agent) == (token,)


@pytest.mark.parametrize(
    "agents",
    [
        pytest.param(["Googlebot-News", "Googlebot"], id="list"),
        pytest.param(("Googlebot-News/1.0", "googlebot"), id="tuple with a header"),
    ],
)
def test_sequence_keeps_its_order(agents: list[str] | tuple[str, ...]) -> None:
    assert product_tokens(agents) == ("googlebot-news", "googlebot")


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        pytest.param(
            "https://example.com/page",
            ["arguments swapped?", "'https://example.com/page'"],
            id="a URL where the agent should be",
        ),
        pytest.param(
            "http://[::1]/a (b", ["arguments swapped?", "'http://[::1]/a (b'"],
            id="an odd URL",
        ),
        pytest.param("", ["such as 'ExampleBot'", "got ''"], id="empty"),
        pytest.param(" \t", ["such as 'ExampleBot'", r"got ' \t'"], id="white space"),
        pytest.param("/private", ["such as 'ExampleBot'", "got '/private'"], id="path"),
        pytest.param("(x)", ["got '(x)'"], id="only a comment"),
        pytest.param("é", ["got 'é'"], id="letters outside ASCII"),
        pytest.param(None, ["or a sequence of them, got None"], id="None"),
        pytest.param(b"bot", ["or a sequence of them, got b'bot'"], id="bytes"),
        pytest.param(7, ["or a sequence of them, got 7"], id="a number"),
        pytest.param({"bot"}, ["or a sequence of them, got {'bot'}"], id="a set"),
        pytest.param([], ["or a sequence of them, got []"], id="empty list"),
        pytest.param((), ["or a sequence of them, got ()"], id="empty tuple"),
        pytest.param(["a", ""], ["got ''"], id="empty in a list"),
        pytest.param(["a", None], ["as str, got None"], id="None in a list"),
        pytest.param([b"a"], ["as str, got b'a'"], id="bytes in a list"),
        pytest.param(bytearray(b"a"), ["as str, got 97"], id="bytearray"),
        pytest.param(
            ["a", "http://h/"], ["swapped?", "'http://h/'"],
            id="URL in a list",
        ),
    ],
)  # fmt: skip
def test_agent_without_a_token_raises_an_error_that_names_it(
    agent: object, words: list[str]
) -> None:
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens(agent)  # type: ignore[arg-type]  # the mistake under test

    message = str(caught.value)
    assert all(word in message for word in words), message


def test_error_is_a_value_error_and_carries_the_agent() -> None:
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens("(x)")

    assert isinstance(caught.value, RobotsError)
    assert isinstance(caught.value, ValueError)
    assert caught.value.agent == "(x)"


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("googlebot/1.2", "googlebot"),
        ("googlebot*", "googlebot"),
        ("Foo Bar", "Foo"),
        ("", ""),
        ("*", ""),
        ("a\xa0b", "a"),
    ],
)
def test_leading_token_ends_before_the_first_other_character(
    text: str, token: str
) -> None:
    assert leading_token(text) == token
