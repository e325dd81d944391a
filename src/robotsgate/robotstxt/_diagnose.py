"""Tells the author of a robots.txt which lines do not do what they seem to."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._model import Diagnostic, DiagnosticKind
from robotsgate.robotstxt._octets import is_utf8, readable
from robotsgate.robotstxt._records import (
    crawl_delay_seconds,
    is_absolute_url,
    request_rate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._parser import Outline, Records

_LONGEST_QUOTE = 80

_Told = tuple[int, DiagnosticKind, str]
"""Line, kind and message of a `Diagnostic`."""


def diagnostics(
    outline: Outline,
    records: Sequence[Records],
    text: str,
    grammar: Grammar,
    *,
    is_cut: bool,
) -> tuple[Diagnostic, ...]:
    """What is odd about a file, in the order of its lines.

    Args:
        outline: the file, cut up.
        records: what stands outside of its sections, then in each of them.
        text: what they were cut from; lines end with LF.
        grammar: the dialect they were read in.
        is_cut: whether the file was longer than its limit.
    """
    told = [
        *_about_the_file(text, is_cut=is_cut),
        *_about_lengths(text, grammar),
        *_about_agents(outline, text, grammar),
    ]
    for number, read in enumerate(records):
        told += _about_rules(read, is_outside=number == 0)
        told += _about_rates(read)
        told += _about_void_lines(read)
        told += _about_sitemaps(read)
    return tuple(
        Diagnostic(line=line, kind=kind, message=message)
        for line, kind, message in sorted(told, key=itemgetter(0))
    )


def _quoted(octets: str) -> str:
    text = readable(octets)
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")


def _about_the_file(text: str, *, is_cut: bool) -> Iterator[_Told]:
    if is_cut:
        yield 0, DiagnosticKind.FILE_CUT, "the file is longer than what is read of it"
    if text.lstrip()[:1] == "<":
        yield (
            0,
            DiagnosticKind.LOOKS_LIKE_HTML,
            "this looks like a page, not robots.txt",
        )
    for number, line in enumerate(text.split("\n"), 1):
        if not is_utf8(line):
            yield number, DiagnosticKind.NOT_UTF8, "bytes that are not UTF-8"
            break


def _about_lengths(text: str, grammar: Grammar) -> Iterator[_Told]:
    whole = text.split("\n")
    for number, line in enumerate(grammar.lines(text), 1):
        if len(line) != len(whole[number - 1]):
            yield number, DiagnosticKind.LINE_CUT, f"only {len(line)} bytes count"


def _about_void_lines(records: Records) -> Iterator[_Told]:
    for line in records.void:
        yield line, DiagnosticKind.NO_COLON, "expected a field, a colon and a value"
    for key, _, line in records.others:
        yield line, DiagnosticKind.UNKNOWN_FIELD, f"unknown field {_quoted(key)}"
    for key, line in records.misspelt:
        yield (
            line,
            DiagnosticKind.MISSPELT_FIELD,
            f"only lenient crawlers understand {_quoted(key)}",
        )


def _about_rules(records: Records, *, is_outside: bool) -> Iterator[_Told]:
    for pattern, _, line in records.rules():
        if is_outside:
            yield (
                line,
                DiagnosticKind.RULE_OUTSIDE_GROUP,
                "a rule before the first user-agent line binds no agent",
            )
        elif pattern and pattern[0] not in "/*":
            yield (
                line,
                DiagnosticKind.UNMATCHABLE_PATTERN,
                f"{_quoted(pattern)} begins with neither / nor * and matches nothing",
            )


def _about_rates(records: Records) -> Iterator[_Told]:
    for field, value, line in records.rates:
        if field is Field.CRAWL_DELAY and crawl_delay_seconds(value) is None:
            yield (
                line,
                DiagnosticKind.BAD_CRAWL_DELAY,
                f"expected seconds such as 10 or 0.5, got {_quoted(value)}",
            )
        if field is Field.REQUEST_RATE and request_rate(value) is None:
            yield (
                line,
                DiagnosticKind.BAD_REQUEST_RATE,
                f"expected a rate such as 1/5 or 10/1m, got {_quoted(value)}",
            )


def _about_sitemaps(records: Records) -> Iterator[_Told]:
    for value, line in records.sitemaps:
        if not is_absolute_url(value):
            yield (
                line,
                DiagnosticKind.RELATIVE_SITEMAP,
                "a sitemap must be an absolute URL",
            )


def _about_agents(outline: Outline, text: str, grammar: Grammar) -> Iterator[_Told]:
    lines = grammar.lines(text)
    for section in outline.sections:
        for token, line in section.agents:
            value = lines[line - 1].partition("#")[0].partition(":")[2]
            value = value.strip(grammar.white_space)
            if not token:
                yield (
                    line,
                    DiagnosticKind.NO_PRODUCT_TOKEN,
                    f"{_quoted(value)} names no product token",
                )
            elif value and readable(value).lower() != token:
                yield (
                    line,
                    DiagnosticKind.CUT_PRODUCT_TOKEN,
                    f"{_quoted(value)} is read as {token!r}",
                )
