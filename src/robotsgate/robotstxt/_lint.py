"""Value types for the lines of a robots.txt and for its diagnostics.

Crawlers don't need them, so this module is imported only when it is used.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import JSONValue, LineKind
from robotsgate.robotstxt._octets import lower, readable

if TYPE_CHECKING:
    from robotsgate.robotstxt._dialect import Grammar


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(JSONValue):
    """One line of a robots.txt.

    Attributes:
        number: the line number, starting at 1.
        text: the whole line, including any comment and white space, but without its
            line ending; invalid UTF-8 is replaced with U+FFFD.
        kind: the kind of line.
    """

    number: int
    text: str
    kind: LineKind


class Severity(enum.Enum):
    """How serious a `Diagnostic` is."""

    ERROR = "error"
    """Crawlers ignore the line, or read it differently than its author meant."""
    WARNING = "warning"
    """The line may not do what its author meant."""
    NOTE = "note"
    """The line is harmless, but may be unnecessary."""


class DiagnosticKind(enum.Enum):
    """The kinds of problems that `RobotsTxt.diagnostics` reports."""

    NO_COLON = "no-colon"
    JOINED_LINES = "joined-lines"
    BARE_URL = "bare-url"
    COMMENT_SIGN = "comment-sign"
    UNKNOWN_FIELD = "unknown-field"
    MISSPELT_FIELD = "misspelt-field"
    RULE_OUTSIDE_GROUP = "rule-outside-group"
    NO_PRODUCT_TOKEN = "no-product-token"
    CUT_PRODUCT_TOKEN = "cut-product-token"
    GROUP_WITHOUT_RULES = "group-without-rules"
    CUT_PATTERN = "cut-pattern"
    UNMATCHABLE_PATTERN = "unmatchable-pattern"
    OPEN_ESCAPE = "open-escape"
    SEVERAL_PATTERNS = "several-patterns"
    DUPLICATE_RULE = "duplicate-rule"
    OVERRULED_RULE = "overruled-rule"
    TIED_RULE = "tied-rule"
    RELATIVE_SITEMAP = "relative-sitemap"
    BAD_SITEMAP = "bad-sitemap"
    SEVERAL_SITEMAPS = "several-sitemaps"
    BAD_CRAWL_DELAY = "bad-crawl-delay"
    BAD_REQUEST_RATE = "bad-request-rate"
    SECOND_RATE = "second-rate"
    BAD_USAGE_PREFERENCE = "bad-usage-preference"
    LINE_CUT = "line-cut"
    FILE_CUT = "file-cut"
    NOT_UTF8 = "not-utf8"
    NUL = "nul"
    BYTE_ORDER_MARK = "byte-order-mark"
    INVISIBLE_CHARACTER = "invisible-character"
    LOOKS_LIKE_HTML = "looks-like-html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic(JSONValue):
    """A problem that the file's author may want to know about.

    Attributes:
        line: the line number, starting at 1; 0 for the whole file.
        column: where in the line the problem starts, counting characters from 1; 0
            for the whole line.
        severity: how serious the problem is.
        kind: the kind of problem.
        message: a human-readable sentence, without a final period.
    """

    line: int
    column: int
    severity: Severity
    kind: DiagnosticKind
    message: str


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
    key, colon, _ = record.partition(":")
    if not colon:
        key, _ = grammar.split_without_colon(record) or ("", "")
    key = lower(key.strip(grammar.white_space))
    return grammar.field(key) if key else LineKind.NO_RECORD
