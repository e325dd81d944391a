"""The product tokens of agent names and User-Agent headers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yarl

from robotsgate.errors import InvalidProductTokenError
from robotsgate.robotstxt import RobotsTxt
from robotsgate.robotstxt._product_token import product_tokens
from tests.tables import cases

_TABLE = Path(__file__).with_name("user_agents.txt").read_text(encoding="utf-8")
_ROWS = [line.split(" | ", 1) for line in _TABLE.splitlines() if line[0] != "#"]
CRAWLERS = {header: token for token, header in _ROWS if token != "-"}
BROWSERS = [header for token, header in _ROWS if token == "-"]

_CHROME = "AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36"
_LINUX = f"Mozilla/5.0 (X11; Linux x86_64) {_CHROME}"

PRODUCTS = {
    "ExampleBot/1.0": "examplebot",
    "Heron_Fetch.net/v3.1": "heron_fetch.net",
    "heron-reader-1.2.0": "heron-reader",
    "Heron": "heron",
    "7Herons/2": "7herons",
    "Hérisson": "hérisson",
}

PLACES = [
    "Mozilla/5.0 (compatible; {}; +https://example.org/bot)",
    "Mozilla/5.0 (compatible; {} +https://example.org/bot)",
    "Mozilla/5.0 (compatible;{})",
    "Mozilla/5.0 (compatible; {}",
    "Mozilla/5.0 (compatible ; {} (a test); https://example.org/bot)",
    "Mozilla/5.0+(compatible;+{};+https://example.org/bot)",
    "Mozilla/5.0 (compatible; U; {}; +https://example.org/bot)",
    "Mozilla/5.0 (compatible; Linux x86_64; {}; +https://example.org/bot)",
    "Mozilla/5.0 (compatible; +https://example.org/bot; {})",
    "'Mozilla/5.0 (compatible; {})'",
    "Mozilla/5.0 ({})",
    "Mozilla/5.0 {}",
    "Mozilla\t{}",
    "Mozilla/5.0 (X11; Linux x86_64) {}",
    "Mozilla/5.0 (X11; {}; Linux x86_64; de) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 ({}; Windows NT 10.0; Win64; x64) Gecko/20100101 Firefox/128.0",
    "Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1; {}; +https://example.org/bot)",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; {}) Chrome/130.0.0.0",
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {}) Chrome/130.0",
    f"{_LINUX} {{}}",
    f"{_LINUX} {{}} (+https://example.org/bot)",
    f"{_LINUX} +{{}}",
    f"{_LINUX} - {{}} - https://example.org/bot",
    f"{_LINUX}; compatible; {{}}; +https://example.org/bot",
    f"{_LINUX} ({{}}; +https://example.org/bot)",
    f"{_LINUX} (compatible; {{}}; bot@example.org)",
    f"{_LINUX.replace('Safari', 'Electron/33.2 Safari')} {{}}",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5) Mobile/15E148 {} (+https://example.org)",
    "Mozilla/5.0 (Linux; Android 14; K) Mobile (compatible; {})",
    "Opera/9.80 (compatible; {})",
    "DoCoMo/2.0 N905i(c100;TB;W24H16) (compatible; {}; +https://example.org/bot)",
    "Nokia6820/2.0 (4.83) Profile/MIDP-1.0 (compatible; {}; bot@example.org)",
]  # fmt: skip


@pytest.mark.parametrize(("header", "token"), CRAWLERS.items(), ids=CRAWLERS)
def test_crawlers_header_is_reduced_to_its_name(header: str, token: str) -> None:
    """A platform's word, a scheme or a dash used to be taken for some names."""
    robots = RobotsTxt.parse(f"User-agent: {header}\nDisallow: /")

    assert product_tokens(header) == (token,)
    assert robots.groups[0].tokens == (token,)


@pytest.mark.parametrize(("product", "token"), PRODUCTS.items(), ids=PRODUCTS)
@pytest.mark.parametrize("place", PLACES)
def test_crawlers_name_is_found_wherever_it_stands(
    place: str, product: str, token: str
) -> None:
    assert product_tokens(place.format(product)) == (token,)


@pytest.mark.parametrize("header", [
    *BROWSERS,
    f"Mozilla/5.0 ({'U ' * 250}) ExampleBot/1.0",
    f"Mozilla/5.0 ({'a;' * 61}) ExampleBot/1.0",
])  # fmt: skip
def test_browsers_header_does_not_name_a_crawler(header: str) -> None:
    """It used to mean "mozilla"; on a user-agent line, that matched every browser."""
    robots = RobotsTxt.parse(f"User-agent: {header}\nDisallow: /")

    with pytest.raises(InvalidProductTokenError) as caught:
        robots.can_fetch(header, "/")

    assert "or '*', got a browser's User-Agent, " in str(caught.value)
    assert caught.value.agent == header
    assert robots.groups[0].tokens == ("",)


@cases("agent token", {
    "a token, in lower case": ("ExampleBot", "examplebot"),
    "white space around it": ("  ExampleBot\n", "examplebot"),
    "digits": ("MJ12bot", "mj12bot"),
    "digits alone": ("008", "008"),
    "dots": ("sitecheck.internetseer.com", "sitecheck.internetseer.com"),
    "underscore and hyphen": ("my_bot-news", "my_bot-news"),
    "the star": ("*", "*"),
    "the star with white space": (" * ", "*"),
    "a header with a URL in its comment":
        ("ExampleBot/1.0 (+https://example.org/bot)", "examplebot"),
    "no version": ("ExampleBot (+https://example.org/bot)", "examplebot"),
    "two products": ("ExampleBot/0.1 libwww-perl/5.8", "examplebot"),
    "a comment without a space": ("ExampleBot(x)", "examplebot"),
    "a header with its field": ("User-Agent: ExampleBot/1.0", "examplebot"),
    "a browser-like header with its field":
        ("user-agent:Mozilla/5.0 (compatible; ExampleBot/1.0)", "examplebot"),
    "letters outside ASCII": ("Jävla-Foobot/1.0", "jävla-foobot"),
    "upper-case letters outside ASCII": ("ÄBOT", "äbot"),
    "vowel signs": ("हिन्दी-bot", "हिन्दी-bot"),
    "spaces and punctuation outside ASCII": ("Foobot\xa0… x", "foobot"),
    "Mozilla alone": ("Mozilla", "mozilla"),
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
        [": are the arguments swapped?", "'https://example.com/page'"]
    ),
    "an odd URL":
        ("http://[::1]/a (b", ["the arguments swapped?", "'http://[::1]/a (b'"]),
    "empty": ("", ["such as 'ExampleBot'", "got ''"]),
    "white space": (" \t", ["such as 'ExampleBot'", r"got ' \t'"]),
    "path": ("/private", ["such as 'ExampleBot'", "got '/private'"]),
    "only a comment": ("(x)", ["got '(x)'"]),
    "punctuation outside ASCII": ("«bot»", ["got '«bot»'"]),
    "None": (None, ["or a sequence of them, got None"]),
    "bytes": (b"bot", ["or a sequence of them, got b'bot'"]),
    "a number": (7, ["or a sequence of them, got 7"]),
    "a set": ({"bot"}, ["or a sequence of them, got {'bot'}"]),
    "empty list": ([], ["or a sequence of them, got []"]),
    "empty tuple": ((), ["or a sequence of them, got ()"]),
    "empty in a list": (["a", ""], ["got ''"]),
    "None in a list": (["a", None], ["to be a str, got None"]),
    "bytes in a list": ([b"a"], ["to be a str, got b'a'"]),
    "bytearray": (bytearray(b"a"), ["to be a str, got 97"]),
    "URL in a list": (["a", "http://h/"], ["swapped?", "'http://h/'"]),
})  # fmt: skip
def test_agent_without_a_token_raises_an_error_that_quotes_it(
    agent: object, words: list[str]
) -> None:
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens(agent)  # type: ignore[arg-type]  # the mistake under test

    message = str(caught.value)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("agent", [
    "https://user:s3cret@host/", "//user:s3cret@host/", b"https://user:s3cret@host/",
    yarl.URL("https://user:s3cret@host/"), [b"https://user:s3cret@host/"],
], ids=repr)  # fmt: skip
def test_password_in_a_url_passed_as_the_agent_is_not_shown(agent: Any) -> None:  # noqa: ANN401 (the mistake under test)
    with pytest.raises(InvalidProductTokenError) as caught:
        product_tokens(agent)

    assert "s3cret" not in str(caught.value)
    assert "@host/" in str(caught.value)
