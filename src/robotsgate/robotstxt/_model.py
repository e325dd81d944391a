"""The parts of a robots.txt as values (RFC 9309 §2.2), and values as JSON types."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class JSONValue:
    """A dataclass with slots that can become a dict of JSON types."""

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
        pattern: the path pattern as the file writes it, without comment and white
            space around it; bytes that are not UTF-8 appear as U+FFFD. May be empty.
        line: where it stands, 1 for the first line.
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

    Not part of RFC 9309. A time of day behind the rate is ignored: the rate
    holds all day.

    Attributes:
        requests: ≥ 1.
        seconds: > 0, finite.
    """

    requests: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(JSONValue):
    """One group as it stands in the file, not merged with others of its token.

    Attributes:
        tokens: the product tokens of its user-agent lines, in lower case and in
            order; "*" for any agent; "" for a line that names no token.
        rules: its rules in order, also those that can match nothing.
        line: the first of its user-agent lines, 1 for the first line.
        crawl_delay: seconds that its first crawl-delay asks for, ≥ 0; `None` if
            there is none, or if it makes no sense. It does not bind agents whose
            user-agent lines stand below it: see `RobotsTxt.crawl_delay`.
        request_rate: what its first request-rate asks for; `None` as above.
        other_lines: its records that say nothing about fetching.
    """

    tokens: tuple[str, ...]
    rules: tuple[Rule, ...]
    line: int
    crawl_delay: float | None = None
    request_rate: RequestRate | None = None
    other_lines: tuple[OtherLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLine(JSONValue):
    """A record that says nothing about fetching (RFC 9309 §2.2.4).

    Its field is unknown, or one of those that `RobotsTxt.usage_preferences` reads.

    Attributes:
        line: where it stands, 1 for the first line.
        field: the name before the colon, in lower case.
        value: the text after the colon, without comment and white space around it;
            may be empty.
    """

    line: int
    field: str
    value: str


class LineKind(enum.Enum):
    """What a line is.

    A member for a field has its name as the value.
    """

    USER_AGENT = "user-agent"
    ALLOW = "allow"
    DISALLOW = "disallow"
    SITEMAP = "sitemap"
    CRAWL_DELAY = "crawl-delay"
    REQUEST_RATE = "request-rate"
    OTHER = "other"
    """A record that says nothing about fetching (see `OtherLine`)."""
    NO_RECORD = "no-record"
    """Text that is neither a record nor a comment."""
    COMMENT = "comment"
    BLANK = "blank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(JSONValue):
    """What the rules say about one agent and one URL; true if they allow it.

    Attributes:
        allowed: whether the agent may fetch the URL.
        rule: the rule that decided; `None` if no rule matches.
        group: the product token whose groups were used, "*" for the fallback,
            `None` if there is no group for this agent.
        is_robots_txt: whether the URL is /robots.txt itself, which is always
            allowed (RFC 9309 §2.2.2).
    """

    allowed: bool
    rule: Rule | None
    group: str | None
    is_robots_txt: bool = False

    def __bool__(self) -> bool:
        """Whether it allows."""
        return self.allowed
