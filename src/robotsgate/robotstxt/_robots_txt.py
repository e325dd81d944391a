"""A parsed robots.txt: the public interface of the parser and matcher.

This module is longer than the others because it is the public API: half of it is
docstrings.
"""

from __future__ import annotations

import re
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

from robotsgate.robotstxt._agent_rules import (
    AgentRules,
    below_agent_lines,
    rule_of,
    spelt_rules,
)
from robotsgate.robotstxt._dialect import RFC9309, Dialect, grammar_of
from robotsgate.robotstxt._matcher import RuleSet
from robotsgate.robotstxt._model import Group, OtherLine, as_json
from robotsgate.robotstxt._octets import readable, wide_encoding
from robotsgate.robotstxt._parser import first_lines, outline, read
from robotsgate.robotstxt._records import first_crawl_delay, first_request_rate
from robotsgate.robotstxt._usage_lines import (
    USAGE_FIELDS,
    USAGE_FIELDS_OF_ALL,
    may_state_usage,
    with_own_lines,
)
from robotsgate.urls._path import decisive

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Never

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._lint import Diagnostic, Line
    from robotsgate.robotstxt._model import Match, RequestRate, Rule
    from robotsgate.robotstxt._parser import Section
    from robotsgate.robotstxt._records import Other, Rate, Records
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.urls._origin import URLLike

DEFAULT_MAX_BYTES = 512_000
"""500 KiB: the minimum required by RFC 9309 §2.5, and what Google reads."""

_URL = re.compile(r"\s*(?:https?|ftp)://\S+\s*", re.IGNORECASE)
_NOT_A_BODY = (
    "expected the content of a robots.txt, got a URL; to fetch a site's robots.txt,"
    " use RobotsChecker"
)

# The fields in `Dialect.RFC9309`; "^" only matches at the start of a line.
_AGENT_FIELD = re.compile(r"^[ \t]*user-agent[ \t]*:", re.IGNORECASE | re.MULTILINE)
_RULE_FIELD = re.compile(r"^[ \t]*(?:dis)?allow[ \t]*:", re.IGNORECASE | re.MULTILINE)

# Callers use few agents. The limit contains the damage if a caller uses many.
MAX_KNOWN_AGENTS = 1_000


class RobotsTxt:
    """A parsed robots.txt.

    Create it with `RobotsTxt.parse`. It is immutable; its parts are parsed when first
    needed.

    Attributes:
        dialect: the dialect used to parse the file.
    """

    def __init__(self, *_: Never, **__: Never) -> None:
        """Raise a TypeError; use `RobotsTxt.parse` instead."""
        raise TypeError("expected RobotsTxt.parse(body) instead of RobotsTxt(…)")

    @classmethod
    def parse(
        cls,
        body: bytes | str,
        *,
        dialect: Dialect = Dialect.RFC9309,
        max_bytes: int | None = DEFAULT_MAX_BYTES,
    ) -> RobotsTxt:
        """Parse a robots.txt. A malformed file never raises an exception.

        Args:
            body: the file's content; a `str` is encoded in UTF-8. If it is just a URL,
                there is a UserWarning, because this does not fetch anything.
            dialect: how to parse the file.
            max_bytes: the maximum number of bytes to read, ≥ 0 (RFC 9309 §2.5); a line
                cut short by the limit is dropped. `None` for no limit.

        Raises:
            TypeError: `body` is neither bytes nor str.
            ValueError: `max_bytes` is negative.
        """
        if isinstance(body, str) and _URL.fullmatch(body):
            warnings.warn(_NOT_A_BODY, stacklevel=2)
        whole = _bytes_of(body)
        if max_bytes is not None and max_bytes < 0:
            raise ValueError(
                f"expected max_bytes to be 0 or more, or None, got {max_bytes!r}"
            )
        counted = first_lines(whole, max_bytes)
        self = cls.__new__(cls)
        self._prepare(
            _text_of(counted, grammar_of(dialect)),
            dialect=dialect,
            is_cut=len(counted) < len(whole),
            encoding=wide_encoding(whole),
        )
        return self

    def _prepare(
        self, text: str, *, dialect: Dialect, is_cut: bool, encoding: str | None
    ) -> None:
        """Use a file whose parts are parsed later.

        Args:
            text: latin-1, one character per byte; lines end with LF.
            dialect: the file's dialect.
            is_cut: whether `text` is only the beginning of the file.
            encoding: the UTF-16 or UTF-32 encoding indicated by a byte order mark, or
                `None`.
        """
        self.dialect: Dialect = dialect
        self._grammar = grammar_of(dialect)
        self._text = text
        self._is_cut = is_cut
        self._encoding = encoding
        self._outline = outline(text, self._grammar)
        # Not a cached_property: until Python 3.12, its lock takes a microsecond.
        self._usage_lines_of_all: tuple[Other, ...] | None = None
        self._by_agent: dict[tuple[str, ...], AgentRules] = {}
        self._by_sections: dict[
            tuple[int, ...], tuple[RuleSet, list[Rate], list[Other]]
        ] = {}

    def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """Whether `agent` may fetch `url`.

        Args:
            agent: a product token, a whole User-Agent header that names a crawler, "*"
                for just the fallback group, or a sequence of these, most specific
                first. `Dialect.GOOGLE` uses agents unchanged, like Google's matcher.
            url: an absolute URL, or just its path and query, starting with "/". If it
                has dot segments, backslashes or a "%" without two digits, all of its
                readings must be allowed. `Dialect.GOOGLE` accepts any text and uses it
                unchanged.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            InvalidURLError: `url` is neither an absolute URL nor a path.
        """
        rules = self.rules_for(agent).rules
        return all(map(rules.allows, self._grammar.readings(url)))

    def match(self, agent: str | Sequence[str], url: str | URLLike) -> Match:
        """Like `can_fetch`, but also returns the rule that applies.

        If `url` has several readings, the first disallowed reading is used or, if all
        are allowed, the URL as given. Raises the same errors as `can_fetch`.
        """
        rules = self.rules_for(agent)
        return rules.match(decisive(self._grammar.readings(url), rules.rules.allows))

    def matches(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> tuple[Rule, ...]:
        """All rules that match; raises the same errors as `match`.

        Returns:
            The rules in order of priority, without duplicates. Longer patterns come
            first, then allow before disallow, then earlier lines. `match` returns the
            first rule. Empty for /robots.txt if the dialect always allows it.
        """
        rules = self.rules_for(agent).rules
        numbers = rules.matching(decisive(self._grammar.readings(url), rules.allows))
        # In `Dialect.GOOGLE`, an allow rule may imply two patterns.
        return tuple(dict.fromkeys(rule_of(rules.as_written(one)) for one in numbers))

    def usage_preferences(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> UsagePreferences:
        """The site's preferences for how the content at `url` is used.

        Preferences come from the agent's groups, and from Content-Signal and License
        lines above the first group; License lines in the groups replace those above.
        If `agent` may not fetch `url`, all preferences are unknown. If `url` has
        several readings, their preferences are combined. The page's response headers
        may state further preferences: see `RobotsChecker.usage_preferences`. Raises
        the same errors as `can_fetch`.
        """
        from robotsgate.robotstxt._usage_preferences import (  # noqa: PLC0415 (slow to import)
            usage_preferences,
        )

        rules = self.rules_for(agent)
        readings = self._grammar.readings(url)
        allowed = all(map(rules.rules.allows, readings))
        return usage_preferences(
            rules.usage_lines, readings, self._grammar, allowed=allowed
        )

    def crawl_delay(self, agent: str | Sequence[str]) -> float | None:
        """The crawl-delay for `agent`: seconds between requests, ≥ 0, or `None`.

        This is the first crawl-delay in the agent's groups, in seconds or with a unit:
        s, m, h or d ("2m", without a space). `None` if it is missing or invalid. A
        crawl-delay above a user-agent line does not apply to that agent. Raises the
        same errors as `can_fetch`.
        """
        return self.rules_for(agent).crawl_delay

    def request_rate(self, agent: str | Sequence[str]) -> RequestRate | None:
        """The first request-rate in the agent's groups.

        `None` if it is missing or invalid. Raises the same errors as `can_fetch`.
        """
        return self.rules_for(agent).request_rate

    @cached_property
    def sitemaps(self) -> tuple[str, ...]:
        """The sitemaps as written in the file, in order, without duplicates.

        They should be absolute URLs; resolve any relative ones against the file's URL.
        """
        values = (
            readable(value)
            for records in self._records
            for value, _ in records.sitemaps
            if value
        )
        return tuple(dict.fromkeys(values))

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups as written in the file, not merged."""
        return tuple(
            Group(
                tokens=tuple(token for token, _ in section.agents),
                rules=tuple(map(rule_of, records.rules())),
                line=section.lines_before + 1,
                crawl_delay=first_crawl_delay(records.rates),
                request_rate=first_request_rate(records.rates),
                other_lines=_other_lines(records.others),
            )
            for section, records in zip(
                self._outline.sections, self._records[1:], strict=True
            )
        )

    @cached_property
    def other_lines(self) -> tuple[OtherLine, ...]:
        """The records that are not about fetching, in file order."""
        return _other_lines(
            [other for records in self._records for other in records.others]
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines that were read, with their kinds."""
        from robotsgate.robotstxt._lint import lines  # noqa: PLC0415 (slow to import)

        return lines(self._text, self._grammar)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Problems that the file's author may want to know about, in line order."""
        from robotsgate.robotstxt._diagnose import diagnostics  # noqa: PLC0415 (as above)

        return diagnostics(
            self._outline,
            self._records,
            self._text,
            self._grammar,
            is_cut=self._is_cut,
            encoding=self._encoding,
        )

    def as_dict(self) -> dict[str, Any]:
        """The dialect, groups, sitemaps, other lines and diagnostics, for JSON."""
        return {
            "dialect": self.dialect.value,
            "groups": as_json(self.groups),
            "sitemaps": as_json(self.sitemaps),
            "other_lines": as_json(self.other_lines),
            "diagnostics": as_json(self.diagnostics),
        }

    def rules_for(self, agent: str | Sequence[str]) -> AgentRules:
        """The part of the file for `agent`: its own groups merged, or the "*" groups.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
        """
        tokens = self._grammar.asked_tokens(agent)
        known = self._by_agent.get(tokens)
        if known is None:
            if len(self._by_agent) >= MAX_KNOWN_AGENTS:
                self._by_agent.clear()
                self._by_sections.clear()
            known = self._by_agent[tokens] = self._agent_rules(tokens)
        return known

    @cached_property
    def _records(self) -> tuple[Records, ...]:
        """The records before the first group, then the records of each group."""
        sections = (self._outline.outside, *self._outline.sections)
        return tuple(
            read(self._outline, [section], self._grammar) for section in sections
        )

    def _agent_rules(self, tokens: Sequence[str]) -> AgentRules:
        if self._usage_lines_of_all is None:
            self._usage_lines_of_all = self._read_usage_lines_of_all()
        of_all = self._usage_lines_of_all
        for token in (*tokens, "*"):
            sections = self._outline.by_token.get(token)
            if sections is not None:
                rules, rates, usage_lines = self._rules_and_records(
                    [section for section, _ in sections]
                )
                if not rates and not usage_lines:
                    return AgentRules(group=token, rules=rules, usage_lines=of_all)
                valid = [*below_agent_lines(rates, sections)]
                own = [*below_agent_lines(usage_lines, sections)]
                return AgentRules(
                    group=token,
                    rules=rules,
                    crawl_delay=first_crawl_delay(valid),
                    request_rate=first_request_rate(valid),
                    usage_lines=with_own_lines(of_all, own),
                )
        rules = RuleSet(implied=self._grammar.implied)
        return AgentRules(group=None, rules=rules, usage_lines=of_all)

    def _read_usage_lines_of_all(self) -> tuple[Other, ...]:
        """The usage records above the first group, which apply to all agents.

        Content-Usage is left out, because it is a rule within a group.
        """
        outside = self._outline.outside
        if not (outside.end and may_state_usage(self._outline.text[: outside.end])):
            return ()  # nearly all files; parsing would take longer
        records = read(
            self._outline, [outside], self._grammar, others=USAGE_FIELDS_OF_ALL
        )
        return tuple(records.others)

    def _rules_and_records(
        self, sections: Sequence[Section]
    ) -> tuple[RuleSet, list[Rate], list[Other]]:
        """The contents of `sections`, cached for all agents that share them."""
        key = tuple(map(id, sections))
        known = self._by_sections.get(key)
        if known is None:
            records = read(self._outline, sections, self._grammar, others=USAGE_FIELDS)
            rules = RuleSet(
                *spelt_rules(records, self._grammar),
                implied=self._grammar.implied,
            )
            known = rules, records.rates, records.others
            self._by_sections[key] = known
        return known


def has_rules(body: bytes, *, max_bytes: int) -> bool:
    """Whether `Dialect.RFC9309` finds an allow or disallow line in a group in `body`.

    An empty allow or disallow line counts too. Runs on the event loop, so it searches a
    whole body without a rule in milliseconds, which the parser could not.
    """
    text = _text_of(first_lines(body, max_bytes), RFC9309)
    group = _AGENT_FIELD.search(text)
    return group is not None and _RULE_FIELD.search(text, group.end()) is not None


def _text_of(body: bytes, grammar: Grammar) -> str:
    """`body` as text: latin-1, one character per byte; lines end with LF."""
    text = grammar.without_byte_order_mark(body).decode("latin-1")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def _bytes_of(body: object) -> bytes:
    if type(body) is bytes:
        return body
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise TypeError(f"expected the body to be bytes or str, got {type(body).__name__}")


def _other_lines(raw: Iterable[Other]) -> tuple[OtherLine, ...]:
    return tuple(
        OtherLine(field=readable(key), value=readable(value), line=line)
        for key, value, line in raw
    )
