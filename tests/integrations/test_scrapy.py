"""Our parser, as Scrapy asks it."""

from __future__ import annotations

import pytest
from scrapy.utils.test import get_crawler

from robotsgate.integrations.scrapy import RobotsGateParser

RULES = b"User-agent: *\nDisallow: /private\n\nUser-agent: OwnBot\nDisallow: /own\n"


PARSED: dict[str, tuple[bytes, str | bytes, str | bytes, bool]] = {
    "allow beats a shorter disallow": (
        b"User-agent: *\nDisallow: /\nAllow: /page\n",
        "https://example.com/page",
        "*",
        True,
    ),
    "path outside ASCII": (
        "User-agent: *\nDisallow: /wiki/Käyttäjä:\n".encode(),
        "https://example.com/wiki/K%C3%A4ytt%C3%A4j%C3%A4:",
        "*",
        False,
    ),
    "agent outside ASCII": (
        "User-agent: UnicödeBot\nDisallow: /page\n".encode(),
        "https://example.com/page",
        "UnicödeBot",
        False,
    ),
    "bytes": (RULES, b"https://example.com/own", b"OwnBot/1.0", False),
    "agent without a product token": (RULES, "https://a.test/private", "", False),
    "empty file": (b"", "https://example.com/page", "*", True),
    "rubbish": (b"\xd3\xe4\x00GIF89a", "https://example.com/page", "*", True),
}


@pytest.mark.parametrize(
    ("body", "url", "agent", "is_allowed"), PARSED.values(), ids=PARSED
)
def test_parser_answers_as_scrapy_asks(
    body: bytes, url: str | bytes, agent: str | bytes, *, is_allowed: bool
) -> None:
    parser = RobotsGateParser.from_crawler(get_crawler(), body)

    assert parser.allowed(url, agent) is is_allowed


def test_parser_tells_the_crawl_delay() -> None:
    body = b"User-agent: OwnBot\nCrawl-delay: 2.5\n"

    parser = RobotsGateParser.from_crawler(get_crawler(), body)

    assert parser.crawl_delay(b"OwnBot/1.0") == 2.5
