"""Value types for the parts of a robots.txt (RFC 9309 §2.2), convertible to JSON."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from robotsgate._public import set_module

_LONGEST_QUOTE = 80


class JSONValue:
    """A dataclass with slots that can be converted to a dict of JSON types."""

    __slots__: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The value as JSON-compatible types: enums by value, tuples as lists."""
        return {name: as_json(getattr(self, name)) for name in self.__slots__}


def as_json(value: object) -> object:
    """`value` converted to JSON types; values of other types are left unchanged."""
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


def quoted(text: str) -> str:
    """`text` in quotes, for a sentence; what is beyond 80 characters is left out."""
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…")


@set_module("robotsgate.robotstxt")
class RuleKind(enum.Enum):
    """The two kinds of rules (RFC 9309 §2.2.2)."""

    ALLOW = "allow"
    DISALLOW = "disallow"


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(JSONValue):
    """One allow or disallow line.

    Attributes:
        kind: allow or disallow.
        pattern: the path pattern as written in the file, without comments or
            surrounding white space; invalid UTF-8 is replaced with U+FFFD. May be
            empty.
        line: the line number, starting at 1.
    """

    kind: RuleKind
    pattern: str
    line: int

    def __str__(self) -> str:
        """The rule as a robots.txt line."""
        return f"{self.kind.name.capitalize()}: {self.pattern}"


@set_module("robotsgate.robotstxt")
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


@set_module("robotsgate.robotstxt")
@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLine(JSONValue):
    """A record that is not about fetching (RFC 9309 §2.2.4).

    Its field is either unknown or used by `RobotsTxt.usage_preferences`.

    Attributes:
        line: the line number, starting at 1.
        field: the name before the colon, in lower case.
        value: the text after the colon, without comments or surrounding white space;
            may be empty.
    """

    line: int
    field: str
    value: str


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Group(JSONValue):
    """One group as written in the file, not merged with others for the same token.

    Attributes:
        tokens: the product tokens on its user-agent lines, in lower case and in order;
            "*" for all agents; "" for a line without a token.
        rules: its rules in order, including those that cannot match anything.
        line: the number of its first user-agent line, starting at 1.
        crawl_delay: its first crawl-delay in seconds, ≥ 0; `None` if it is missing or
            invalid. It does not apply to agents whose user-agent line comes after it:
            see `RobotsTxt.crawl_delay`.
        request_rate: its first request-rate; `None` if it is missing or invalid.
        other_lines: its records that are not about fetching.
    """

    tokens: tuple[str, ...]
    rules: tuple[Rule, ...]
    line: int
    crawl_delay: float | None = None
    request_rate: RequestRate | None = None
    other_lines: tuple[OtherLine, ...] = ()

    def __str__(self) -> str:
        """The group as robots.txt lines, without `other_lines`."""
        lines = [f"User-agent: {token}" for token in self.tokens]
        if self.crawl_delay is not None:
            lines.append(f"Crawl-delay: {self.crawl_delay:g}")
        if self.request_rate is not None:
            rate = self.request_rate
            lines.append(f"Request-rate: {rate.requests}/{rate.seconds:g}")
        return "\n".join([*lines, *map(str, self.rules or ["Allow:"])])


@set_module("robotsgate.robotstxt")
class LineKind(enum.Enum):
    """The kind of a line.

    For members that stand for a field, the value is the field's name.
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


@set_module("robotsgate")
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


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Match(JSONValue):
    """The result of matching one URL for one agent. Truthy if the URL is allowed.

    Attributes:
        allowed: whether the agent may fetch the URL.
        rule: the rule that applies; `None` if no rule matches.
        group: the product token whose groups apply; "*" for the fallback group; `None`
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
