"""Reduces agent names to product tokens (RFC 9309 §2.2.1).

Agents passed by callers and names on user-agent lines are reduced in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NewType

from robotsgate.errors import InvalidProductTokenError
from robotsgate.urls._origin import without_userinfo

ProductToken = NewType("ProductToken", str)
"""A lower-case product token, or "*" for all agents."""

# RFC 9309 allows letters, "_" and "-". In real files, 3 % of user-agent lines contain
# digits or dots (MJ12bot, 008, sitecheck.internetseer.com); if truncated, they would
# match the wrong agents or none. Outside ASCII, all characters except spaces and
# punctuation are part of a name, including U+FFFD, which replaces invalid UTF-8.
_NOT_OF_NAMES = r"\x00-,/:-@\[-^`{-\xbf\u2000-\u206f\u3000\ufeff"
_NAME = f"([^{_NOT_OF_NAMES}]++)"
_END_OF_NAME = re.compile(f"[{_NOT_OF_NAMES}]")

# More than twice the longest header on a real user-agent line. Without this limit, a
# hostile line would take longer than others.
_LONGEST_HEADER = 500

# A hostile file may repeat a few such headers on thousands of lines.
_KEPT_HEADERS = 64

# Where a lower-case, browser-like header may name its crawler, most reliable place
# first: after "compatible;" (Googlebot), as a product in a comment (Applebot), in a
# comment that ends in "bot" or "agent", and as a word outside comments. The patterns
# are compiled on first use, because few programs need them.
_BROWSER_LIKE = (*(f"mozilla{mark}" for mark in "/ (;\t"), "opera/", "(compatible;")
_IN_COMMENTS = (
    rf"(?<=compatible;)\s*+{_NAME}",
    rf"[(;]\s*+{_NAME}/(?!/)",
    rf"[(;]\s*+(?=[^;()]*(?:bot|agent)\s*(?:[;)]|$)){_NAME}",
)
_COMMENT = r"\([^()]*+\)?"
# Facebook's in-app browsers add [FBAN/FBIOS;FBAV/470.0;FBSV/17.5].
_IN_BRACKETS = r"\[[^\[\]]*+\]?"
# The version may be separate: "Mozilla 5.0 ExampleBot".
_OUTSIDE_COMMENTS = rf"(?<!\S)(?![0-9.]++(?!\S)){_NAME}(?!:)"

_BROWSERS = {
    *("applewebkit", "gecko", "like", "mobile", "mozilla", "trident", "version"),
    *("chrome", "chromium", "compatible", "crios", "headlesschrome", "safari", "silk"),
    *("ddg", "duckduckgo", "edg", "edga", "edge", "edgios", "firefox", "fxios", "gsa"),
    *("msie", "opera", "opr", "presto", "vivaldi", "whale", "yowser"),
    *("basilisk", "brave", "epiphany", "goanna", "iceweasel", "palemoon", "seamonkey"),
    *("core", "covc", "khtml", "konqueror", "micromessenger", "raspbian", "ubuntu"),
}

# Callers use few agents.
_KNOWN_AGENTS = 256


def product_tokens(agent: str | Sequence[str]) -> tuple[ProductToken, ...]:
    """The product tokens of `agent`, most specific first.

    Args:
        agent: a product token ("ExampleBot"), a whole User-Agent header (from which the
            name of the crawler is extracted), "*", or a sequence of these, most
            specific first.

    Returns:
        One or more tokens, in lower case; tokens compare case-insensitively.

    Raises:
        InvalidProductTokenError: `agent` does not name a crawler (for example, it is a
            browser's User-Agent string), looks like a URL, is an empty sequence, or is
            not a str.
    """
    if isinstance(agent, str):
        return (_product_token(agent),)
    agents: object = agent
    expected, given = "a product token or a sequence of them", agents
    if isinstance(agents, Sequence) and not isinstance(agents, bytes) and agents:
        wrong = [one for one in agents if not isinstance(one, str)]
        if not wrong:
            return tuple(map(_product_token, agents))
        expected, given = "each product token to be a str", wrong[0]
    raise InvalidProductTokenError(
        f"expected {expected}, got {without_userinfo(repr(given))}", agent=given
    )


def crawler_name(text: str) -> str:
    """The lower-case crawler name in a token or User-Agent header, or ""."""
    header = text.lower()
    if not header.startswith(_BROWSER_LIKE):
        return _END_OF_NAME.split(header, maxsplit=1)[0]
    return _name_in_header(header[:_LONGEST_HEADER])


@lru_cache(maxsize=_KEPT_HEADERS)
def _name_in_header(header: str) -> str:
    """The crawler name in a lower-case, browser-like `header`, or ""."""
    names: list[str] = []
    if "[" in header:
        header = re.sub(_IN_BRACKETS, " ", header)
    if "(" in header or ";" in header:
        names = [name for place in _IN_COMMENTS for name in re.findall(place, header)]
        header = re.sub(_COMMENT, " ", header)
    names += re.findall(_OUTSIDE_COMMENTS, header)
    return next(filter(is_of_crawler, names), "")


def is_of_crawler(name: str) -> bool:
    """Whether a lower-case `name` in a browser-like header is a crawler's."""
    return name not in _BROWSERS and not name.endswith("browser")


@lru_cache(maxsize=_KNOWN_AGENTS)
def _product_token(agent: str) -> ProductToken:
    text = agent.strip()
    if text == "*":
        return ProductToken("*")
    first_product = text.partition("(")[0].partition(" ")[0]
    shown = without_userinfo(agent)
    if "://" in first_product:
        raise InvalidProductTokenError(
            f"expected a product token, got {shown!r}: are the arguments swapped?",
            agent=agent,
        )
    token = crawler_name(text)
    if not token:
        kind = (
            "a browser's User-Agent, " if text.lower().startswith(_BROWSER_LIKE) else ""
        )
        raise InvalidProductTokenError(
            "expected a crawler's name such as 'ExampleBot', or '*',"
            f" got {kind}{shown!r}",
            agent=agent,
        )
    return ProductToken(token)
