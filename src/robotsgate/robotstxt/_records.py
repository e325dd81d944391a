"""The records of a group, and parsers for the values of records that are not rules.

RFC 9309 does not define delays, rates or sitemaps, but permits crawlers to use them
(§2.2.4). Invalid values are ignored.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from robotsgate._numbers import decimal_number
from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt._model import LineKind, RequestRate
from robotsgate.urls._origin import Origin
from robotsgate.urls._redirect import absolute_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Rate = tuple[LineKind, str, int]
"""A crawl-delay or request-rate record: (field, raw value, line)."""

Other = tuple[str, str, int]
"""A record with an unknown field: (lower-case key, raw value, line)."""

# The lookbehind keeps a long run of commas from being scanned once for each comma.
_BETWEEN_URLS = re.compile(r"(?<![\s,])[\s,]+(?=(?:https?|ftp)://)", re.IGNORECASE)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Records:
    """The records of one or more sections, in file order.

    Attributes:
        disallows: raw patterns, including empty ones.
        disallow_lines: the line number of each disallow pattern.
        allows: raw patterns, including empty ones.
        allow_lines: the line number of each allow pattern.
        rates: crawl-delay and request-rate records.
        sitemaps: (raw value, line).
        others: records with unknown fields.
        misspelt: (key, line) of fields that only a lenient dialect accepts.
        void: the numbers of lines whose text is not a record.
    """

    __slots__ = (
        "allow_lines",
        "allows",
        "disallow_lines",
        "disallows",
        "misspelt",
        "others",
        "rates",
        "sitemaps",
        "void",
    )

    def __init__(self) -> None:
        """Start empty."""
        self.disallows: list[str] = []
        self.disallow_lines: list[int] = []
        self.allows: list[str] = []
        self.allow_lines: list[int] = []
        self.rates: list[Rate] = []
        self.sitemaps: list[tuple[str, int]] = []
        self.others: list[Other] = []
        self.misspelt: list[tuple[str, int]] = []
        self.void: list[int] = []

    def rules(self) -> Iterator[tuple[str, bool, int]]:
        """(raw pattern, is_allow, line) for each rule, in file order."""
        disallows = zip(
            self.disallow_lines,
            self.disallows,
            [False] * len(self.disallows),
            strict=True,
        )
        allows = zip(
            self.allow_lines, self.allows, [True] * len(self.allows), strict=True
        )
        for line, pattern, is_allow in sorted([*disallows, *allows]):
            yield pattern, is_allow, line


class RuleLines(NamedTuple):
    """The rules of one kind, in file order.

    Attributes:
        patterns: the patterns, normalized like targets; a pattern may be empty.
            Patterns that do not start with "/" or "*" match nothing, because all
            targets start with "/".
        lines: the line number of each rule.
        written: the patterns as written in the file.
    """

    patterns: list[str]
    lines: list[int]
    written: list[str]

    def without_empty(self) -> RuleLines:
        """These rules, minus empty patterns, which match nothing."""
        if "" not in self.patterns:
            return self
        kept = [rule for rule in zip(*self, strict=True) if rule[0]]
        return RuleLines(*map(list, zip(*kept, strict=True))) if kept else NO_RULES


NO_RULES = RuleLines([], [], [])


def crawl_delay_seconds(value: str) -> float | None:
    """Parse a finite delay ≥ 0 such as "10", "0.5" or "2m"; `None` if it is invalid.

    The units are the same as for request rates: "s", "m", "h", "d".
    """
    unit = _SECONDS.get(value[-1:].lower())
    number = decimal_number(value[:-1] if unit else value)
    seconds = math.inf if number is None else number * (unit or 1)
    return seconds if math.isfinite(seconds) else None


def request_rate(value: str) -> RequestRate | None:
    """Parse a rate such as "1/5", "9000/1d" or "1/5 0600-0845"; `None` if invalid.

    A time of day after the rate is ignored.
    """
    first_word = next(iter(value.split()), "")
    requests, _, period = first_word.partition("/")
    seconds = crawl_delay_seconds(period)
    count = decimal_number(requests)
    if not seconds or not count or not count.is_integer():
        return None
    return RequestRate(requests=int(count), seconds=seconds)


def first_crawl_delay(rates: Iterable[Rate]) -> float | None:
    """The first crawl-delay in seconds; `None` if it is invalid."""
    values = (value for field, value, _ in rates if field is LineKind.CRAWL_DELAY)
    return crawl_delay_seconds(next(values, ""))


def first_request_rate(rates: Iterable[Rate]) -> RequestRate | None:
    """The first request-rate; `None` if it is invalid."""
    values = (value for field, value, _ in rates if field is LineKind.REQUEST_RATE)
    return request_rate(next(values, ""))


def absolute_sitemaps(sitemaps: Iterable[str], origin: Origin) -> tuple[str, ...]:
    """The usable URLs in `sitemaps` from the robots.txt of `origin`.

    They are absolute, in order, and without duplicates.
    """
    urls = (
        absolute_url(origin.robots_url, url)
        for value in sitemaps
        for url in sitemap_urls(value)
    )
    usable = (url for url in urls if is_usable_sitemap(url, origin))
    return tuple(dict.fromkeys(usable))


def sitemap_urls(value: str) -> list[str]:
    """The URLs in a sitemap record's value, as written.

    Several URLs, separated by spaces or commas, must each begin with a scheme.
    """
    return _BETWEEN_URLS.split(value) if is_absolute_url(value) else [value]


def is_usable_sitemap(url: str, origin: Origin | None = None) -> bool:
    """Whether a crawler could fetch a sitemap's `url`, which may be relative or broken.

    Its host must have a dot, be an address, or be the host of `origin`, whose
    robots.txt contains the URL. "https://https://example.com" has no such host.
    """
    if not is_absolute_url(url):
        return False
    try:
        host = Origin.from_url(url).host
    except InvalidURLError:
        return False
    return "." in host or ":" in host or (origin is not None and host == origin.host)


def is_absolute_url(value: str) -> bool:
    """Whether a sitemap's URL is absolute."""
    scheme, separator, rest = value.partition("://")
    return bool(separator and rest) and scheme.lower() in {"http", "https", "ftp"}
