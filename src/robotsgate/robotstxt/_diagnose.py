"""Finds lines in a robots.txt that do not do what they seem to do."""

from __future__ import annotations

from bisect import bisect
from itertools import pairwise
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import GOOGLE
from robotsgate.robotstxt._lint import Diagnostic, DiagnosticKind, Severity
from robotsgate.robotstxt._model import LineKind
from robotsgate.robotstxt._octets import is_utf8, lower, readable
from robotsgate.robotstxt._pattern import matches
from robotsgate.robotstxt._records import (
    crawl_delay_seconds,
    is_absolute_url,
    request_rate,
)
from robotsgate.robotstxt._usage_lines import USAGE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._parser import Outline
    from robotsgate.robotstxt._records import Records

_LONGEST_QUOTE = 80

# This many comparisons of a rule with a wildcard take about 50 ms.
_MOST_COMPARISONS = 100_000

_BYTE_ORDER_MARK = "\xef\xbb\xbf"

_ERRORS = {DiagnosticKind.MISSPELT_FIELD, DiagnosticKind.NO_COLON, DiagnosticKind.NUL}
_NOTES = {
    DiagnosticKind.CUT_PRODUCT_TOKEN,
    DiagnosticKind.DUPLICATE_RULE,
    DiagnosticKind.UNKNOWN_FIELD,
}

_Told = tuple[int, int, DiagnosticKind, str]
"""Line, place, kind and message of a `Diagnostic`.

A place is the position of an octet in the line, 1 for the first, or one of the
constants below.
"""

_WHOLE, _FIELD, _VALUE = 0, -1, -2


def diagnostics(
    outline: Outline,
    records: Sequence[Records],
    text: str,
    grammar: Grammar,
    *,
    is_cut: bool,
    encoding: str | None,
) -> tuple[Diagnostic, ...]:
    """The problems in a file, in line order.

    `records` has one item for the lines before the first section, then one for each
    section. `encoding` is the UTF-16 or UTF-32 encoding indicated by a byte order mark,
    or `None`.
    """
    whole_lines, lines = text.split("\n"), grammar.counted_text(text).split("\n")
    told = [
        *_about_the_file(text, is_cut=is_cut, encoding=encoding),
        *_about_octets(whole_lines, lines),
        *_about_agents(outline, lines, grammar),
        *_about_groups(outline, records),
    ]
    for number, read in enumerate(records):
        told += _about_rules(read, lines, grammar, is_outside=number == 0)
        told += _about_rates(read)
        told += _about_fields(read, lines)
        told += _about_sitemaps(read)
    return tuple(
        sorted(
            (
                Diagnostic(
                    line=line,
                    column=_column(whole_lines[line - 1], place, grammar.white_space),
                    severity=_severity(kind),
                    kind=kind,
                    message=message,
                )
                for line, place, kind, message in told
            ),
            key=lambda one: (one.line, one.column),
        )
    )


def _severity(kind: DiagnosticKind) -> Severity:
    if kind in _ERRORS:
        return Severity.ERROR
    return Severity.NOTE if kind in _NOTES else Severity.WARNING


def _column(line: str, place: int, white_space: str) -> int:
    """The column of `place` in `line`, starting at 1; 0 for the whole line."""
    if place == _WHOLE:
        return 0
    if place < 0:
        start = line.find(":") + 1 if place == _VALUE else 0
        place = len(line) - len(line[start:].lstrip(white_space)) + 1
    return len(readable(line[: place - 1])) + 1


def _quote(octets: str) -> str:
    text = readable(octets)
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")


def _about_the_file(
    text: str, *, is_cut: bool, encoding: str | None
) -> Iterator[_Told]:
    if is_cut:
        message = "the file is too long: only its beginning is read"
        yield 0, _WHOLE, DiagnosticKind.FILE_CUT, message
    if encoding is not None:
        message = f"the file is in {encoding}, which many crawlers cannot read"
        yield 0, _WHOLE, DiagnosticKind.NOT_UTF8, message
    if text.lstrip()[:1] == "<":
        message = "this looks like an HTML page, not a robots.txt"
        yield 0, _WHOLE, DiagnosticKind.LOOKS_LIKE_HTML, message


def _about_octets(lines: Sequence[str], counted: Sequence[str]) -> Iterator[_Told]:
    """Report the first non-UTF-8 line, lines that are cut, and any NUL or BOM."""
    is_told = False
    for number, line in enumerate(lines, 1):
        if not is_told and not is_utf8(line):
            is_told = True
            yield (
                number,
                _WHOLE,
                DiagnosticKind.NOT_UTF8,
                "the line contains bytes that are not UTF-8",
            )
        length = len(counted[number - 1])
        if length != len(line):
            message = f"only the first {length} bytes of the line are read"
            yield number, length + 1, DiagnosticKind.LINE_CUT, message
        if "\0" in line:
            message = "NUL byte, where some crawlers end the line"
            yield number, line.index("\0") + 1, DiagnosticKind.NUL, message
        if _BYTE_ORDER_MARK in line:
            yield (
                number,
                line.index(_BYTE_ORDER_MARK) + 1,
                DiagnosticKind.BYTE_ORDER_MARK,
                "byte order mark that is not at the start of the file",
            )


def _about_agents(
    outline: Outline, lines: Sequence[str], grammar: Grammar
) -> Iterator[_Told]:
    for section in outline.sections:
        for token, line in section.agents:
            value = lines[line - 1].partition("#")[0].partition(":")[2]
            value = value.strip(grammar.white_space)
            if not token:
                message = f"{_quote(value)} is not a product token"
                yield line, _VALUE, DiagnosticKind.NO_PRODUCT_TOKEN, message
            elif value and readable(value).lower() != token:
                message = f"{_quote(value)} is read as {token!r}"
                yield line, _VALUE, DiagnosticKind.CUT_PRODUCT_TOKEN, message


def _about_groups(outline: Outline, records: Sequence[Records]) -> Iterator[_Told]:
    """Report runs of user-agent lines interrupted by other records."""
    for section, read in zip(outline.sections, records[1:], strict=True):
        if not (read.disallows or read.allows):
            continue
        between = [line for _, _, line in (*read.rates, *read.others)]
        between = sorted([*between, *(line for _, line in read.sitemaps)])
        start = section.agents[0][1]
        for (_, line), (_, next_line) in pairwise(section.agents):
            if bisect(between, line) != bisect(between, next_line):
                message = "this group has no rules of its own, so the rules below"
                message += f" line {next_line} apply to it as well"
                yield start, _WHOLE, DiagnosticKind.GROUP_WITHOUT_RULES, message
                start = next_line


def _about_rules(
    records: Records, lines: Sequence[str], grammar: Grammar, *, is_outside: bool
) -> Iterator[_Told]:
    rules = list(records.rules())
    if is_outside:
        message = "a rule before the first user-agent line applies to no agent"
        for _, _, line in rules:
            yield line, _WHOLE, DiagnosticKind.RULE_OUTSIDE_GROUP, message
        return
    for pattern, _, line in rules:
        before, sign, _ = lines[line - 1].partition("#")
        if sign and pattern and before[-1] not in grammar.white_space:
            message = f"'#' starts a comment, so the pattern is {_quote(pattern)}"
            yield line, len(before) + 1, DiagnosticKind.CUT_PATTERN, message
    spelt = grammar.spelling("\n".join(pattern for pattern, _, _ in rules)).split("\n")
    for (pattern, _, line), text in zip(rules, spelt, strict=False):
        literal = text.partition("*")[0].partition("?")[0]
        if pattern and pattern[0] not in "/*":
            message = f"{_quote(pattern)} does not start with / or *,"
            message += " so it matches nothing"
            yield line, _VALUE, DiagnosticKind.UNMATCHABLE_PATTERN, message
        elif (
            "/./" in literal
            or "/../" in literal
            or (literal == text and text.endswith(("/.$", "/..$")))
        ):
            message = f"{_quote(pattern)} contains a dot segment, which few URLs do"
            yield line, _VALUE, DiagnosticKind.UNMATCHABLE_PATTERN, message
    yield from _about_equal_rules(
        [
            (text, is_allow, line)
            for (_, is_allow, line), text in zip(rules, spelt, strict=False)
            if text
        ]
    )


def _about_equal_rules(rules: Sequence[tuple[str, bool, int]]) -> Iterator[_Told]:
    """Report rules without effect; `rules` are (normalized pattern, is_allow, line)."""
    # Among rules that match the same URLs, the longest wins, then allow, then the first
    # line. So a rank is (length, whether it allows, the negated line).
    winners: dict[str, tuple[int, bool, int]] = {}
    for text, is_allow, line in rules:
        rank = (len(text), is_allow, -line)
        key = text.rstrip("*")
        winners[key] = max(rank, winners.get(key, rank))
    wildcards = [
        (text, (len(text), is_allow, -line))
        for text, is_allow, line in rules
        if "*" in text and not text.endswith("$")
    ]
    if len(wildcards) * len(rules) > _MOST_COMPARISONS:
        wildcards = []
    seen: set[tuple[str, bool]] = set()
    for text, is_allow, line in rules:
        winner = winners[text.rstrip("*")]
        if (text, is_allow) in seen:
            message = "this rule repeats an earlier one"
            yield line, _WHOLE, DiagnosticKind.DUPLICATE_RULE, message
            continue
        seen.add((text, is_allow))
        if is_allow == winner[1] and not text.endswith("$") and "*" not in text:
            # A wildcard that matches the pattern matches every target that the pattern
            # matches.
            ranks = (rank for other, rank in wildcards if matches(other, text))
            winner = max([winner, *ranks])
        if is_allow == winner[1]:
            continue
        if winner[0] == len(text):
            message = f"line {-winner[2]} allows the same URLs, and allow wins a tie"
            yield line, _WHOLE, DiagnosticKind.TIED_RULE, message
        else:
            message = f"line {-winner[2]} says the opposite and always wins"
            yield line, _WHOLE, DiagnosticKind.OVERRULED_RULE, message


def _about_rates(records: Records) -> Iterator[_Told]:
    for field, value, line in records.rates:
        if field is LineKind.CRAWL_DELAY and crawl_delay_seconds(value) is None:
            message = (
                f"expected a number of seconds such as 10 or 0.5, got {_quote(value)}"
            )
            yield line, _VALUE, DiagnosticKind.BAD_CRAWL_DELAY, message
        if field is LineKind.REQUEST_RATE and request_rate(value) is None:
            message = f"expected a rate such as 1/5 or 10/1m, got {_quote(value)}"
            yield line, _VALUE, DiagnosticKind.BAD_REQUEST_RATE, message


def _about_fields(records: Records, lines: Sequence[str]) -> Iterator[_Told]:
    for line in records.void:
        words = GOOGLE.split_without_colon(lines[line - 1].partition("#")[0])
        if words and GOOGLE.field(lower(words[0])) is not LineKind.OTHER:
            message = f"expected a colon after {_quote(words[0])}"
        else:
            message = "expected a field, a colon and a value"
        yield line, _FIELD, DiagnosticKind.NO_COLON, message
    for key, line in records.misspelt:
        yield line, _FIELD, *_about_misspelt(key, lines[line - 1])
    for key, _, line in records.others:
        if GOOGLE.field(key.replace("_", "-")) is not LineKind.OTHER:
            yield line, _FIELD, *_about_misspelt(key, lines[line - 1])
        elif key not in USAGE_FIELDS:
            message = f"unknown field {_quote(key)}"
            yield line, _FIELD, DiagnosticKind.UNKNOWN_FIELD, message


def _about_misspelt(key: str, line: str) -> tuple[DiagnosticKind, str]:
    if ":" not in line.partition("#")[0]:
        return DiagnosticKind.NO_COLON, f"expected a colon after {_quote(key)}"
    message = f"only lenient crawlers understand {_quote(key)}"
    return DiagnosticKind.MISSPELT_FIELD, message


def _about_sitemaps(records: Records) -> Iterator[_Told]:
    for value, line in records.sitemaps:
        if not is_absolute_url(value):
            message = "a sitemap must be an absolute URL"
            yield line, _VALUE, DiagnosticKind.RELATIVE_SITEMAP, message
