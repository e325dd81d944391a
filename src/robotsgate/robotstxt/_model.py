"""The parts of a robots.txt as values (RFC 9309 §2.2), with conversion to JSON."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class JSONValue:
    """A dataclass with slots that can be converted to a dict of JSON types."""

    __slots__: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The value as JSON types: enums by value, tuples as lists."""
        return {name: as_json(getattr(self, name)) for name in self.__slots__}


def as_json(value: object) -> object:
    """`value` as JSON types; unchanged if its type is not listed here."""
    match value:
        case JSONValue():
            return value.as_dict()
        case enum.Enum():
            return value.value
        case tuple():
            return [as_json(one) for one in value]
        case Mapping():
            return {as_json(key): as_json(one) for key, one in value.items()}
        case Exception():
            return f"{type(value).__name__}: {value}"
        case _:
            return value


class RuleKind(enum.Enum):
    """The two kinds of rules (RFC 9309 §2.2.2)."""

    ALLOW = "allow"
    DISALLOW = "disallow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(JSONValue):
    """One allow or disallow line.

    Attributes:
        kind: allow or disallow.
        pattern: the path pattern as written in the file, without comment and
            surrounding white space; invalid UTF-8 is replaced with U+FFFD. May be
            empty.
        line: the line number, 1 for the first line.
    """

    kind: RuleKind
    pattern: str
    line: int

    def __str__(self) -> str:
        """The rule as a line of a robots.txt."""
        return f"{self.kind.name.capitalize()}: {self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRate(JSONValue):
    """A `Request-rate` record: at most `requests` requests in `seconds` seconds.

    Not part of RFC 9309. A time of day after the rate is ignored: the rate applies all
    day.

    Attributes:
        requests: ≥ 1.
        seconds: > 0, finite.
    """

    requests: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(JSONValue):
    """One group as written in the file, not merged with others of the same token.

    Attributes:
        tokens: the product tokens of its user-agent lines, in lower case and in order;
            "*" for all agents; "" for a line without a token.
        rules: its rules in order, including those that cannot match anything.
        line: the first of its user-agent lines, 1 for the first line.
        crawl_delay: its first crawl-delay, seconds ≥ 0; `None` if there is none, or it
            is invalid. It does not apply to agents whose user-agent lines are below it:
            see `RobotsTxt.crawl_delay`.
        request_rate: its first request-rate; `None` as above.
        other_lines: its records that are not about fetching.
    """

    tokens: tuple[str, ...]
    rules: tuple[Rule, ...]
    line: int
    crawl_delay: float | None = None
    request_rate: RequestRate | None = None
    other_lines: tuple[OtherLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLine(JSONValue):
    """A record that is not about fetching (RFC 9309 §2.2.4).

    Its field is unknown, or used by `RobotsTxt.usage_preferences`.

    Attributes:
        line: the line number, 1 for the first line.
        field: the name before the colon, in lower case.
        value: the text after the colon, without comment and surrounding white space;
            may be empty.
    """

    line: int
    field: str
    value: str


class LineKind(enum.Enum):
    """The kind of a line.

    The value of a member for a field is the name of the field.
    """

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    OTHER = "other"
    """A record that is not about fetching (see `OtherLine`)."""
    NO_RECORD = "no-record"
    """Text that is neither a record nor a comment."""
    COMMENT = "comment"
    BLANK = "blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(JSONValue):
    """One line of the file.

    Attributes:
        number: 1 for the first line.
        text: the whole line including comment and white space, without the line end;
            invalid UTF-8 is replaced with U+FFFD.
        kind: the kind of line.
    """

    number: int
    text: str
    kind: LineKind


class Severity(enum.Enum):
    """How much a `Diagnostic` matters."""

    ERROR = "error"
    """Crawlers ignore the line, or read it differently from what its author meant."""
    WARNING = "warning"
    """The line may not do what its author meant."""
    NOTE = "note"
    """The line is harmless, but may be unnecessary."""


class DiagnosticKind(enum.Enum):
    """The kinds of problems that `RobotsTxt.diagnostics` reports."""

    NO_COLON = "no-colon"
    UNKNOWN_FIELD = "unknown-field"
    MISSPELT_FIELD = "misspelt-field"
    RULE_OUTSIDE_GROUP = "rule-outside-group"
    NO_PRODUCT_TOKEN = "no-product-token"
    CUT_PRODUCT_TOKEN = "cut-product-token"
    GROUP_WITHOUT_RULES = "group-without-rules"
    CUT_PATTERN = "cut-pattern"
    UNMATCHABLE_PATTERN = "unmatchable-pattern"
    DUPLICATE_RULE = "duplicate-rule"
    OVERRULED_RULE = "overruled-rule"
    TIED_RULE = "tied-rule"
    RELATIVE_SITEMAP = "relative-sitemap"
    BAD_CRAWL_DELAY = "bad-crawl-delay"
    BAD_REQUEST_RATE = "bad-request-rate"
    LINE_CUT = "line-cut"
    FILE_CUT = "file-cut"
    NOT_UTF8 = "not-utf8"
    NUL = "nul"
    BYTE_ORDER_MARK = "byte-order-mark"
    LOOKS_LIKE_HTML = "looks-like-html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic(JSONValue):
    """A problem in the file that its author may want to know about.

    Attributes:
        line: the line number, 1 for the first; 0 for the whole file.
        column: the first character in the line, 1 for the first; 0 for the whole line.
        severity: how much it matters.
        kind: the kind of problem.
        message: a human-readable sentence, without a final period.
    """

    line: int
    column: int
    severity: Severity
    kind: DiagnosticKind
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(JSONValue):
    """The result of matching one URL for one agent. Truthy if it is allowed.

    Attributes:
        allowed: whether the agent may fetch the URL.
        rule: the rule that applies; `None` if no rule matches.
        group: the product token whose groups apply, "*" for the fallback group, `None`
            if there is no group for this agent.
        is_robots_txt: whether the URL is /robots.txt itself, which is always
            allowed (RFC 9309 §2.2.2).
    """

    allowed: bool
    rule: Rule | None
    group: str | None
    is_robots_txt: bool = False

    def __bool__(self) -> bool:
        """Whether the agent may fetch the URL."""
        return self.allowed


class Preference(enum.Enum):
    """A preference for one category of use; the most restrictive value comes first."""

    DISALLOW = "disallow"
    ALLOW = "allow"
    IMMEDIATE = "immediate"
    """For `use` in Content-Signal: the content may be used, but not stored."""
    REFERENCE = "reference"
    """For `use` in Content-Signal: an index, excerpts and links may be stored."""
    FULL = "full"
    """For `use` in Content-Signal: the content may be summarized and reproduced."""
    UNKNOWN = "unknown"
    """The site states nothing that robotsgate understands."""


Statement = tuple[str, Preference, int | None]
"""One statement: (category, preference, line, or `None` for a header)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryPreference(JSONValue):
    """A site's preference for one category, and where it is stated.

    Attributes:
        preference: the most restrictive one that is stated.
        line: the first line that states it, 1 for the first line; `None` if it is
            stated only in a response header, or not at all.
    """

    preference: Preference
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UsagePreferences(JSONValue):
    """A site's preferences for how one agent uses the content of one URL.

    The vocabularies are kept separate and may contradict each other. A preference does
    not permit fetching: see `RobotsTxt.can_fetch`.

    Attributes:
        content_usage: the Content-Usage preferences for the keys "train-ai" and
            "search": ALLOW, DISALLOW or UNKNOWN.
        content_signal: the Content-Signal preferences for "search", "ai-input" and
            "ai-train", with the same values; for "use", IMMEDIATE, REFERENCE, FULL or
            UNKNOWN.
        license: the absolute URLs of the License lines in the agent's groups, or
            otherwise of those for all agents; each once, in the order of the file.
            robotsgate does not fetch them.
    """

    content_usage: Mapping[str, CategoryPreference]
    content_signal: Mapping[str, CategoryPreference]
    license: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The preferences as JSON types, by vocabulary."""
        return {
            "content-usage": as_json(self.content_usage),
            "content-signal": as_json(self.content_signal),
            "license": as_json(self.license),
        }
