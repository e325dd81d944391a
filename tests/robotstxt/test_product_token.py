"""What callers call their agents, and which product tokens these are."""

from __future__ import annotations

import pytest

from robotsgate.errors import InvalidProductTokenError, RobotsError
from robotsgate.robotstxt._product_token import product_tokens
from tests.tables import cases

_SAFARI = (
    "AppleWebKit/537.36 (KHTML, like Gecko; compatible; Googlebot/2.1; +http://x/)"
)


@cases("agent token", {
    "a token, in lower case": ("ExampleBot", "examplebot"),
    "white space around it": ("  ExampleBot\n", "examplebot"),
    "digits": ("MJ12bot", "mj12bot"),
    "digits alone": ("008", "008"),
    "dots": ("sitecheck.internetseer.com", "sitecheck.internetseer.com"),
    "underscore and hyphen": ("my_bot-news", "my_bot-news"),
    "the star is any agent": ("*", "*"),
    "the star with white space": (" * ", "*"),
    "a header with a URL in its comment":
        ("ExampleBot/1.0 (+https://example.org/bot)", "examplebot"),
    "no version": ("ExampleBot (+https://example.org/bot)", "examplebot"),
    "two products": ("ExampleBot/0.1 libwww-perl/5.8", "examplebot"),
    "a comment without a space": ("ExampleBot(x)", "examplebot"),
    "a header that is Mozilla-compatible": (
        "Mozilla/5.0 (compatible; ExampleBot/1.0; +https://example.org/bot)",
        "examplebot"
    ),
    "compatible, tight": ("Mozilla/5.0 (compatible;ExampleBot)", "examplebot"),
    "compatible further on": (f"Mozilla/5.0 {_SAFARI} Chrome/1", "googlebot"),
    "a browser itself": ("Mozilla/5.0 (X11; Linux)", "mozilla"),
    "compatible to none": ("Mozilla/5.0 (compatible; )", "mozilla"),
    "no token behind it": ("Mozilla/5.0 (compatible; +x)", "mozilla"),
    "a star before a name is no token": ("*bot", None),
})  # fmt: skip
def test_agent_is_reduced_to_its_product_token(agent: str, token: str | None) -> None:
    if token is None:
        with pytest.raises(InvalidProductTokenError):
            product_tokens(agent)
        return

    assert product_tokens(agent) == (token,)


@cases("agents", {
    "list": (["Googlebot-News", "Googlebot"],),
    "tuple with a header": (("Googlebot-News/1.0", "googlebot"),),
})  # fmt: skip
def test_sequence_keeps_its_order(agents: list[str] | tuple[str, ...]) -> None:
    assert product_tokens(agents) == ("googlebot-news", "googlebot")


@cases("agent words", {
    "a URL where the agent should be": (
        "https://example.com/page",
        ["arguments swapped?", "'https://example.com/page'"]
    ),
    "an odd URL": ("http://[::1]/a (b", ["arguments swapped?", "'http://[::1]/a (b'"]),
    "empty": ("", ["such as 'ExampleBot'", "got ''"]),
    "white space": (" \t", ["such as 'ExampleBot'", r"got ' \t'"]),
    "path": ("/private", ["such as 'ExampleBot'", "got '/private'"]),
    "only a comment": ("(x)", ["got '(x)'"]),
    "letters outside ASCII": ("é", ["got 'é'"]),
    "None": (None, ["or a sequence of them, got None"]),
    "bytes": (b"bot", ["or a sequence of them, got b'bot'"]),
    "a number": (7, ["or a sequence of them, got 7"]),
    "a set": ({"bot"}, ["or a sequence of them, got {'bot'}"]),
    "empty list": ([], ["or a sequence of them, got []"]),
    "empty tuple": ((), ["or a sequence of them, got ()"]),
    "empty in a list": (["a", ""], ["got ''"]),
    "None in a list": (["a", None], ["as str, got None"]),
    "bytes in a list": ([b"a"], ["as str, got b'a'"]),
    "bytearray": (bytearray(b"a"), ["as str, got 97"]),
    "URL in a list": (["a", "http://h/"], ["swapped?", "'http://h/'"]),
})  # fmt: skip
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
