"""Parses the text of a robots.txt into groups and records (RFC 9309 §2.2).

Parsing takes two steps, because most groups in a file are never needed: `outline` finds
the user-agent lines and the extent of each group, and `read` finds the records of one
group. Values are left unchanged, and patterns are not normalized yet. Other functions
parse the values of records that are not rules: RFC 9309 does not define these, but
permits crawlers to use them (§2.2.4). Invalid values are ignored.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from robotsgate._numbers import decimal_number
from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt._dialect import (
    FREQUENT_SPELLINGS,
    lower,
    readable,
    wide_encoding,
)
from robotsgate.robotstxt._model import Line, LineKind, RequestRate
from robotsgate.urls._url import Origin, absolute_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from robotsgate.robotstxt._dialect import Grammar

Rate = tuple[LineKind, str, int]
"""A crawl-delay or request-rate record: (field, raw value, line)."""

Other = tuple[str, str, int]
"""A record with an unknown field: (lower-case key, raw value, line)."""

CONTENT_USAGE = "content-usage"
CONTENT_SIGNAL = "content-signal"
LICENSE = "license"

USAGE_FIELDS_OF_ALL = (CONTENT_SIGNAL, LICENSE)
"""Fields that apply to all agents if they appear above the first group."""

USAGE_FIELDS = (CONTENT_USAGE, *USAGE_FIELDS_OF_ALL)

# A longer line may be a record that `others` names, or a rule ("allow:").
_SHORTEST_RECORD, _SHORTEST_RULE = 2, 6

_COMMENT = re.compile("#[^\n]*")

# The lookbehind keeps a long run of commas from being scanned once for each comma.
_BETWEEN_URLS = re.compile(r"(?<![\s,])[\s,]+(?=(?:https?|ftp)://)", re.IGNORECASE)

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@dataclass(slots=True)
class Section:
    """A run of user-agent lines and the lines that follow, up to the next run."""

    start: int  # the index of the LF before its first line
    end: int  # where the next section starts
    lines_before: int
    agents: list[tuple[str, int]]  # the token and line of each user-agent line

    def first_line_of(self, token: str) -> int:
        return next(line for name, line in self.agents if name == token)


@dataclass(slots=True)
class Outline:
    """A robots.txt, split into sections.

    `by_token` has, for each token, the sections that name it, without duplicates.
    """

    text: str  # a LF, and the part of the file that is used, without comments
    outside: Section  # the lines before the first user-agent line
    sections: list[Section]
    by_token: dict[str, list[Section]]


@dataclass(slots=True)
class Records:
    """The records of one or more sections, in file order.

    Patterns are raw, and may be empty; a sitemap is its raw value and its line.
    """

    disallows: list[str] = field(default_factory=list)
    disallow_lines: list[int] = field(default_factory=list)
    allows: list[str] = field(default_factory=list)
    allow_lines: list[int] = field(default_factory=list)
    rates: list[Rate] = field(default_factory=list)
    sitemaps: list[tuple[str, int]] = field(default_factory=list)
    others: list[Other] = field(default_factory=list)

    def rules(self) -> Iterator[tuple[str, bool, int]]:
        """(raw pattern, is_allow, line) for each rule, in file order."""
        disallows = zip(self.disallow_lines, self.disallows, strict=True)
        allows = zip(self.allow_lines, self.allows, strict=True)
        rules = [(line, pattern, False) for line, pattern in disallows]
        rules += [(line, pattern, True) for line, pattern in allows]
        for line, pattern, is_allow in sorted(rules):
            yield pattern, is_allow, line


def first_lines(body: bytes, max_bytes: int | None) -> bytes:
    """The lines of `body` that are entirely within its first `max_bytes`.

    RFC 9309 §2.5. A truncated line could mean the opposite of the original, so it is
    dropped.
    """
    if max_bytes is None or len(body) <= max_bytes:
        return body
    encoding = wide_encoding(body)
    if encoding is not None:
        text = body[:max_bytes].decode(encoding, "replace")
        return text[: max(text.rfind("\n"), text.rfind("\r")) + 1].encode(encoding)
    if body[max_bytes] in b"\r\n":
        return body[:max_bytes]
    end = max(body.rfind(b"\n", 0, max_bytes), body.rfind(b"\r", 0, max_bytes))
    return body[: end + 1]


def outline(text: str, grammar: Grammar) -> Outline:
    """Find the groups in `text` (latin-1, one character per byte; LF line endings)."""
    text = grammar.counted_text(text)
    if "#" in text:
        text = _COMMENT.sub("", text)
    text = f"\n{text}"
    lower_text = lower(text)
    outside = section = Section(0, len(text), 0, [])
    sections: list[Section] = []
    by_token: dict[str, list[Section]] = {}
    token_of, white_space = grammar.group_tokens(), grammar.white_space
    line = end = 0  # of the last user-agent line
    for match in grammar.agent_line.finditer(lower_text):
        start = match.start()
        if start > end:
            line += lower_text.count("\n", end, start)
        if section is outside or (
            start > end and grammar.rule_line.search(lower_text, end, start)
        ):
            section.end = start
            section = Section(start, len(text), line, [])
            sections.append(section)
        end = match.end()
        line += 1
        token = token_of(match[1].strip(white_space))
        section.agents.append((token, line))
        named = by_token.get(token)
        if named is None:
            by_token[token] = [section]
        elif named[-1] is not section:
            named.append(section)
    return Outline(text, outside, sections, by_token)


def read(
    file: Outline,
    sections: Iterable[Section],
    grammar: Grammar,
    *,
    others: Collection[str] | None = None,
) -> Records:
    """The records in `sections` of `file`.

    Of the records with unknown fields, only those whose key is in `others` are kept, or
    all if it is `None`: a hostile file may consist of nothing else.
    """
    result = Records()
    white_space = grammar.white_space
    disallow, allow, other = LineKind.DISALLOW, LineKind.ALLOW, LineKind.OTHER
    user_agent = LineKind.USER_AGENT
    shortest = _SHORTEST_RECORD if others is None else _SHORTEST_RULE
    # Unknown fields are added as spelt in the file, because most occur repeatedly.
    fields: dict[str, LineKind | str] = {**FREQUENT_SPELLINGS}
    for number, line in chain.from_iterable(_numbered_lines(file.text, sections)):
        if len(line) < shortest:
            continue
        key, colon, value = line.partition(":")
        if not colon:
            record = grammar.split_without_colon(line)
            if record is None:
                continue
            key, value = record
        kind = fields.get(key)
        if kind is None:
            kind = fields[key] = _kind_or_field(key, grammar, others)
        if kind is disallow:
            result.disallows.append(value.strip(white_space))
            result.disallow_lines.append(number)
        elif kind is allow:
            result.allows.append(value.strip(white_space))
            result.allow_lines.append(number)
        elif kind is not other and kind is not user_agent:
            _note(kind, value.strip(white_space), number, result)
    return result


def _numbered_lines(
    text: str, sections: Iterable[Section]
) -> Iterator[Iterable[tuple[int, str]]]:
    """The lines of each run of adjacent sections, after their numbers.

    A hostile file may have thousands of sections, each with a single rule.
    """
    start = end = lines_before = 0
    for section in sections:
        if section.start != end:
            yield enumerate(text[start:end].split("\n"), lines_before)
            start, lines_before = section.start, section.lines_before
        end = section.end
    yield enumerate(text[start:end].split("\n"), lines_before)


def _kind_or_field(
    key: str, grammar: Grammar, others: Collection[str] | None
) -> LineKind | str:
    """The kind of record that `key` begins; for one to keep in `others`, its field."""
    name = lower(key.strip(grammar.white_space))
    kind = grammar.field(name)
    if others is not None and name not in others:
        return kind
    return name if name and kind is LineKind.OTHER else kind


def lines(text: str, grammar: Grammar) -> tuple[Line, ...]:
    """The lines of `text` (see `outline`); a final LF does not start a new line."""
    if not text:
        return ()
    whole_lines = text.removesuffix("\n").split("\n")
    return tuple(
        Line(number=number, text=readable(line), kind=_kind(counted, grammar))
        for number, (line, counted) in enumerate(
            zip(whole_lines, grammar.counted_text(text).split("\n"), strict=False), 1
        )
    )


def _kind(line: str, grammar: Grammar) -> LineKind:
    record, number_sign, _ = line.partition("#")
    if not record.strip(grammar.white_space):
        return LineKind.COMMENT if number_sign else LineKind.BLANK
    key, _ = split_record(record, grammar)
    return grammar.field(key) if key else LineKind.NO_RECORD


def split_record(line: str, grammar: Grammar) -> tuple[str, str]:
    """The lower-case key and the raw value of a line without a comment.

    The key is "" if the line is not a record.
    """
    key, colon, value = line.partition(":")
    if not colon:
        key, value = grammar.split_without_colon(line) or ("", "")
    return lower(key.strip(grammar.white_space)), value


def _note(kind: LineKind | str, value: str, number: int, result: Records) -> None:
    """Add to `result` a line that is neither a rule nor a user-agent line."""
    if isinstance(kind, str):
        result.others.append((kind, value, number))
    elif kind is LineKind.SITEMAP:
        result.sitemaps.append((value, number))
    else:
        result.rates.append((kind, value, number))


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


def first_rates(rates: Iterable[Rate]) -> tuple[float | None, RequestRate | None]:
    """The first crawl-delay in seconds, and the first request-rate.

    Each is `None` if it is missing or invalid.
    """
    first: dict[LineKind, str] = {}
    for kind, value, _ in rates:
        first.setdefault(kind, value)
    delay = crawl_delay_seconds(first.get(LineKind.CRAWL_DELAY, ""))
    return delay, request_rate(first.get(LineKind.REQUEST_RATE, ""))


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
    scheme, separator, rest = value.partition("://")
    return bool(separator and rest) and scheme.lower() in {"http", "https", "ftp"}
