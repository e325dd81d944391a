"""Reduces agent names to product tokens (RFC 9309 §2.2.1).

Agents passed by callers and names on user-agent lines are reduced in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import NewType

from robotsgate.errors import InvalidProductTokenError
from robotsgate.urls._url import without_userinfo

ProductToken = NewType("ProductToken", str)
"""A lower-case product token, or "*" for all agents."""

# RFC 9309 allows letters, "_" and "-". In real files, 3% of user-agent lines contain
# digits or dots (MJ12bot, 008, sitecheck.internetseer.com); if truncated, they would
# match the wrong agents or none. Outside ASCII, all characters except spaces and
# punctuation are part of a name, including U+FFFD, which replaces invalid UTF-8.
_NOT_OF_NAMES = r"\x00-,/:-@\[-^`{-\xbf\u2000-\u206f\u3000\ufeff"
_NAME = f"([^{_NOT_OF_NAMES}]++)"
_END_OF_NAME = re.compile(f"[{_NOT_OF_NAMES}]")

# More than twice the longest header on a real user-agent line. Without this limit, a
# hostile line would take longer than others.
_LONGEST_HEADER = 500

# Twice as many as in the headers of Internet Explorer with many toolbars.
_MOST_ITEMS = 60

# A hostile file may repeat a few such headers on thousands of lines.
_KEPT_HEADERS = 64

# The first words of the headers of browsers, of phones, and of aiohttp (Python/3.12
# aiohttp/3.10), which name the crawler further on, if at all.
_BROWSER_LIKE = (
    *(f"mozilla{mark}" for mark in "/ (;+\t"),
    *("'mozilla/", '"mozilla/', "opera/", "chrome/", "python/", "(compatible;"),
    *("blackberry", "docomo/", "kddi-", "nokia", "samsung-"),
)

# The patterns are compiled on first use, because few programs need them.
_COMMENT = r"\((?:[^()]++|\([^()]*+\)?)*+\)?"
_ADDRESS = r"[^\s(),;/:@]*+(?:://|@)|(?:[a-z0-9-]++\.)+[a-z]++/(?!v?[0-9])"
# "Yahoo! Slurp" is Slurp, because no product's name has a "!".
_WORD = rf"(?<![^\s(),;])\+?(?!{_ADDRESS}){_NAME}(?![:$~]|!(?!\S))"
# Cubot makes phones.
_CRAWLS = (
    "(?<!cu)bot|crawl|spider|scrap|scan|fetch|agent|monitor|preview|proxy|lighthouse"
)
# On such devices, and in Slack, countless apps add their own products.
_DEVICES = (
    r"android|iphone|ipad|mobile|tablet|nintendo|\btv|web[0o]s|midp|docomo|kddi-|slack"
)
_DESKTOP = "(?!.*(?:android|msie|trident)).*(?:macintosh|windows|x11)"
_LANGUAGE = "[a-z]{2}(?:-[a-z]{4})?(?:-[a-z]{2})?"

_BROWSERS = {
    *("applewebkit", "gecko", "goanna", "khtml", "presto", "qtwebengine", "trident"),
    *("like", "mobile", "mozilla", "safari", "version", "compatible"),
    *("brave", "chrome", "chromeframe", "chromium", "crios", "headlesschrome", "iron"),
    *("ddg", "duckduckgo", "ecosia", "edg", "edga", "edge", "edgios", "opera", "opr"),
    *("firefox", "fennec", "iemobile", "msie", "netscape", "silk", "vivaldi", "whale"),
    *("avast", "avg", "ccleaner", "norton", "puffin", "yowser", "covc", "core", "se"),
    *("360ee", "360se", "maxthon", "metasr", "micromessenger", "nettype", "qihu"),
    *("basilisk", "camino", "epiphany", "falkon", "iceweasel", "k-meleon", "konqueror"),
    *("midori", "omniweb", "otter", "palemoon", "qupzilla", "seamonkey", "waterfox"),
    *("electron", "thunderbird", "twitter"),
}
# Words of systems, of phone makers and of descriptions.
_NOT_NAMES = {
    *("android", "beos", "cros", "haiku", "linux", "mac", "macintosh", "os", "x11"),
    *("win32", "win64", "win98", "windows", "winnt", "wow64", "xbox", "msapphost"),
    *("aarch64", "amd64", "arm", "arm64", "arm_64", "i586", "i686", "ia64", "intel"),
    *("ppc", "wayland", "x64", "x86_64"),
    *("cpu", "ios", "ipad", "iphone", "ipod", "nintendo", "playstation", "unknown"),
    *("arch", "centos", "debian", "fedora", "gentoo", "manjaro", "mint", "nixos"),
    *("raspbian", "red", "suse", "ubuntu"),
    *("freebsd", "netbsd", "openbsd", "sunos", "crkey", "symbianos", "sv1", ".net"),
    *("docomo", "java", "python", "edition", "touch", "wv", "configuration", "profile"),
    *("agent", "bot", "crawler", "fetcher", "monitor", "monitoring", "preview"),
    *("proxy", "robot", "scanner", "scraper", "spider", "webcrawler", "http", "https"),
    *("and", "by", "for", "from", "not", "on", "or", "the", "via", "with"),
}
# No version begins like 008, which is a crawler.
_OTHER_NOT_NAMES = r"(?!00)[0-9._x-]*|[ku]|.*(?:app|browser|webview)"

# Callers use few agents.
_KNOWN_AGENTS = 256


def product_tokens(agent: str | Sequence[str]) -> tuple[ProductToken, ...]:
    """The lower-case product tokens of `agent` (≥ 1), most specific first.

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


def crawler_or_any(user_agent: str) -> str:
    """`user_agent` if it names a crawler, otherwise "*"."""
    try:
        product_tokens(user_agent)
    except InvalidProductTokenError:
        return "*"
    return user_agent


def crawler_name(text: str, name_in_header: Callable[[str], str] | None = None) -> str:
    """The lower-case crawler name in a token or User-Agent header, or "".

    `name_in_header` may replace `name_in_browser_like`.
    """
    header = _header(text)
    if header.startswith(_BROWSER_LIKE):
        return (name_in_header or name_in_browser_like)(header[:_LONGEST_HEADER])
    end = _END_OF_NAME.search(header)
    return header[: end.start()] if end else header


def is_browser_like(text: str) -> bool:
    """Whether `text` starts like a User-Agent header that names its crawler later."""
    return _header(text).startswith(_BROWSER_LIKE)


def _header(text: str) -> str:
    """`text` in lower case, without the name of the header's field."""
    return text.lower().removeprefix("user-agent:").lstrip()


@lru_cache(maxsize=_KEPT_HEADERS)
def name_in_browser_like(header: str) -> str:
    """The crawler name in a lower-case, browser-like `header`, or ""."""
    if len(re.findall("[(,;]", header)) > _MOST_ITEMS:
        return ""
    parts = re.split(f"({_COMMENT})", header)
    # Electron apps name themselves before Electron.
    products = _words(" ".join(parts[::2]).rpartition("electron/")[2])
    names = [(1 if re.search(_CRAWLS, name) else 3, name) for name in products]
    is_bare = set(products) <= {"mozilla"}
    for comment in parts[1::2]:
        names += _ranked_names(comment, is_bare=is_bare)
    of_crawlers = (ranked for ranked in names if _is_of_crawler(ranked[1]))
    rank, name = min(of_crawlers, key=itemgetter(0), default=(0, ""))
    is_of_app = rank > 1 and not _has_address(header) and re.search(_DEVICES, header)
    return "" if is_of_app else name


def _ranked_names(comment: str, *, is_bare: bool) -> Iterator[tuple[int, str]]:
    """Names in `comment`, each after its rank; the lowest is the most reliable.

    Rank 0 follows "compatible" or "like Gecko", or the header has no other words; 1 is
    in an item about crawling; 2 is beside an address, a product in a comment without a
    browser's words, or the only unknown word of a desktop browser's comment.
    """
    items = [
        (item, names)
        for item in map(str.strip, re.split("[(),;]", comment))
        if (names := _words(item))
    ]
    unknown = [
        names[0]
        for item, names in items
        if _is_of_crawler(names[0]) and not re.fullmatch(_LANGUAGE, item)
    ]
    is_of_browser = len(unknown) < len(items)
    is_named = is_bare and not is_of_browser
    has_address = _has_address(comment) and "android" not in comment
    is_sure = has_address or (len(unknown) == 1 and re.match(_DESKTOP, comment))
    for item, names in items:
        if item.endswith(("compatible", "like gecko")):
            is_named = True
        elif names[0] in _BROWSERS:
            is_named = False
        elif is_named and names[0] in unknown:
            yield 0, names[0]
        elif re.search(_CRAWLS, " ".join(names)):
            yield from ((1, name) for name in names if re.search(_CRAWLS, name))
            yield 1, names[0]
        elif names[0] in unknown and (is_sure or ("/" in item and not is_of_browser)):
            yield 2, names[0]


def _has_address(text: str) -> bool:
    return "://" in text or "@" in text


def _words(text: str) -> list[str]:
    """The names in `text`, without versions: "examplebot-1.0" is "examplebot"."""
    return [_without_version(name) for name in re.findall(_WORD, text)]


def _without_version(name: str) -> str:
    base = name.rstrip("0123456789.")
    return base.rstrip("-_") if "." in name[len(base) :] else name


def _is_of_crawler(name: str) -> bool:
    if name in _BROWSERS or name in _NOT_NAMES:
        return False
    return not re.fullmatch(_OTHER_NOT_NAMES, name) or bool(re.search(_CRAWLS, name))


@lru_cache(maxsize=_KNOWN_AGENTS)
def _product_token(agent: str) -> ProductToken:
    text = agent.strip()
    if text == "*":
        return ProductToken("*")
    first_product = text.partition("(")[0].partition(" ")[0]
    if "://" in first_product:
        raise InvalidProductTokenError(
            f"expected a product token, got {without_userinfo(agent)!r}: are the"
            " arguments swapped?",
            agent=agent,
        )
    token = crawler_name(text)
    if not token:
        kind = "a browser's User-Agent, " if is_browser_like(text) else ""
        raise InvalidProductTokenError(
            "expected a crawler's name such as 'ExampleBot', or '*',"
            f" got {kind}{without_userinfo(agent)!r}",
            agent=agent,
        )
    return ProductToken(token)
