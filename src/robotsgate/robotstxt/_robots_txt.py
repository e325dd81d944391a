"""A parsed robots.txt: the public interface of the parser and matcher."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from robotsgate._public import set_module
from robotsgate.robotstxt._dialect import (
    RFC9309,
    Dialect,
    grammar_of,
    lower,
    readable,
    wide_encoding,
)
from robotsgate.robotstxt._matcher import NO_RULES, RuleLines, RuleSet
from robotsgate.robotstxt._model import Group, Match, OtherLine, Rule, RuleKind, as_json
from robotsgate.robotstxt._parser import (
    LICENSE,
    USAGE_FIELDS,
    USAGE_FIELDS_OF_ALL,
    first_lines,
    first_rates,
    is_absolute_url,
    lines,
    outline,
    read,
)
from robotsgate.urls._url import decisive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Never

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._lint import Diagnostic
    from robotsgate.robotstxt._model import Line, RequestRate
    from robotsgate.robotstxt._parser import Other, Rate, Records, Section
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.urls._url import URLLike

DEFAULT_MAX_BYTES = 512_000
"""500 KiB: the minimum required by RFC 9309 §2.5, and what Google reads."""

_URL = re.compile(r"\s*(?:https?|ftp)://\S+\s*", re.IGNORECASE)
_NOT_A_BODY = (
    "expected the content of a robots.txt, got a URL; to fetch a site's robots.txt,"
    " use RobotsChecker"
)

# Callers use few agents. The limit contains the damage if a caller uses many.
MAX_KNOWN_AGENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRules:
    """The part of a file that applies to one agent, with its groups merged.

    Attributes:
        group: the product token whose groups were merged; "*" for the fallback group;
            `None` if there is no group for the agent.
        crawl_delay: the crawl-delay in seconds, ≥ 0, or `None`.
        request_rate: the request rate, or `None`.
        usage_lines: the usage records (those whose field is in `USAGE_FIELDS`) that
            apply to the agent, in file order.
    """

    group: str | None
    rules: RuleSet
    crawl_delay: float | None = None
    request_rate: RequestRate | None = None
    usage_lines: tuple[Other, ...] = ()

    def match(self, readings: Sequence[str]) -> Match:
        """The match for the first disallowed reading or, without one, the first."""
        target = decisive(readings, self.rules.allows)
        number = self.rules.decisive(target)
        if number is None:
            return Match(
                allowed=True,
                rule=None,
                group=self.group,
                is_robots_txt=target == self.rules.implied,
            )
        return Match(
            allowed=self.rules.is_allow(number),
            rule=_rule_of(self.rules.as_written(number)),
            group=self.group,
        )

    def usage_preferences(
        self,
        readings: Sequence[str],
        grammar: Grammar,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences:
        """The usage preferences for a target, however long they take to determine."""
        from robotsgate.robotstxt._usage_preferences import (  # noqa: PLC0415 (slow to import)
            usage_preferences,
        )

        return usage_preferences(
            self.usage_lines,
            readings,
            grammar,
            allowed=all(map(self.rules.allows, readings)),
            headers=headers,
        )


@set_module("robotsgate")
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
                a UserWarning is emitted, because nothing is fetched.
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
        self = cls.__new__(cls)
        self._prepare(whole, first_lines(whole, max_bytes), dialect)
        return self

    def _prepare(self, whole: bytes, counted: bytes, dialect: Dialect) -> None:
        """Store a file, of which only the lines in `counted` are read."""
        self.dialect: Dialect = dialect
        self._grammar = grammar_of(dialect)
        self._text = _text_of(counted, self._grammar)
        self._is_cut = len(counted) < len(whole)
        self._encoding = wide_encoding(whole)
        self._outline = outline(self._text, self._grammar)
        # Not a cached_property: until Python 3.12, its lock takes a microsecond.
        self._usage_lines_of_all: tuple[Other, ...] | None = None
        self._by_agent: dict[tuple[str, ...], AgentRules] = {}
        self._by_sections: dict[
            tuple[int, ...], tuple[RuleSet, list[Rate], list[Other]]
        ] = {}

    def __repr__(self) -> str:
        """The dialect and the length of the file."""
        dialect, length = self.dialect.value, len(self._text)
        return f"<robotsgate.RobotsTxt dialect={dialect!r} characters={length}>"

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
        return self.rules_for(agent).match(self._grammar.readings(url))

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
        return tuple(dict.fromkeys(_rule_of(rules.as_written(one)) for one in numbers))

    def usage_preferences(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> UsagePreferences:
        """The site's preferences for how the content at `url` is used.

        Preferences come from the agent's groups, and from Content-Signal and License
        lines above the first group; License lines in the groups replace the License
        lines above. If `agent` may not fetch `url`, all preferences are unknown. If
        `url` has several readings, their preferences are combined. The page's response
        headers may state further preferences: see `RobotsChecker.usage_preferences`.
        Raises the same errors as `can_fetch`.
        """
        readings = self._grammar.readings(url)
        return self.rules_for(agent).usage_preferences(readings, self._grammar)

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
        return tuple(map(_group, self._outline.sections, self._records[1:]))

    @cached_property
    def other_lines(self) -> tuple[OtherLine, ...]:
        """The records that are not about fetching, in file order."""
        return _other_lines(
            [other for records in self._records for other in records.others]
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """All lines that were read, with their kinds."""
        return lines(self._text, self._grammar)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Problems that the file's author may want to know about, in line order."""
        from robotsgate.robotstxt._lint import diagnostics  # noqa: PLC0415 (slow to import)

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
        """The part of the file for `agent`: its groups merged, or the "*" groups."""
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
                rules, rates, usage_lines = self._rules_and_records(sections)
                if not rates and not usage_lines:
                    return AgentRules(group=token, rules=rules, usage_lines=of_all)
                is_below = _is_below_agent_line(sections, token)
                delay, rate = first_rates(filter(is_below, rates))
                own = [*filter(is_below, usage_lines)]
                return AgentRules(
                    group=token,
                    rules=rules,
                    crawl_delay=delay,
                    request_rate=rate,
                    usage_lines=_with_own_lines(of_all, own),
                )
        rules = RuleSet(implied=self._grammar.implied)
        return AgentRules(group=None, rules=rules, usage_lines=of_all)

    def _read_usage_lines_of_all(self) -> tuple[Other, ...]:
        """The usage records above the first group, which apply to all agents.

        Content-Usage is left out, because it is a rule within a group.
        """
        outside = self._outline.outside
        text = lower(self._outline.text[: outside.end])
        if not any(field in text for field in USAGE_FIELDS_OF_ALL):
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
                *_spelt_rules(records, self._grammar), implied=self._grammar.implied
            )
            known = rules, records.rates, records.others
            self._by_sections[key] = known
        return known


def has_rules(body: bytes, *, max_bytes: int) -> bool:
    """Whether `Dialect.RFC9309` finds an allow or disallow line in a group in `body`.

    An empty allow or disallow line counts too. Runs on the event loop, so it searches a
    whole body without a rule in milliseconds, which the parser could not.
    """
    text = lower(f"\n{_text_of(first_lines(body, max_bytes), RFC9309)}")
    group = RFC9309.agent_line.search(text)
    return bool(group and RFC9309.rule_line.search(text, group.end()))


def _text_of(body: bytes, grammar: Grammar) -> str:
    """`body` in latin-1, one character per byte; lines end with LF."""
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


def _group(section: Section, records: Records) -> Group:
    delay, rate = first_rates(records.rates)
    return Group(
        tokens=tuple(token for token, _ in section.agents),
        rules=tuple(map(_rule_of, records.rules())),
        line=section.lines_before + 1,
        crawl_delay=delay,
        request_rate=rate,
        other_lines=_other_lines(records.others),
    )


def _other_lines(raw: Iterable[Other]) -> tuple[OtherLine, ...]:
    return tuple(
        OtherLine(field=readable(key), value=readable(value), line=line)
        for key, value, line in raw
    )


def _rule_of(raw: tuple[str, bool, int]) -> Rule:
    """The `Rule` for one tuple from `RuleSet.as_written` or `Records.rules`."""
    written, is_allow, line = raw
    kind = RuleKind.ALLOW if is_allow else RuleKind.DISALLOW
    return Rule(kind=kind, pattern=readable(written), line=line)


def _spelt_rules(records: Records, grammar: Grammar) -> tuple[RuleLines, RuleLines]:
    """The disallow and allow rules in `records`, normalized the same way as targets."""
    disallows = _spelt_lines(records.disallows, records.disallow_lines, grammar)
    allows = _spelt_lines(records.allows, records.allow_lines, grammar)
    folders = grammar.folders(allows.patterns)
    return disallows, _with_more(allows, folders) if folders else allows


def _is_below_agent_line(
    sections: Sequence[Section], token: str
) -> Callable[[tuple[object, str, int]], bool]:
    """Whether a record follows the agent's user-agent line in the same section."""
    starts = [section.lines_before for section in sections]
    agent_lines = [section.first_line_of(token) for section in sections]
    return lambda record: agent_lines[bisect_left(starts, record[2]) - 1] < record[2]


def _spelt_lines(written: list[str], lines: list[int], grammar: Grammar) -> RuleLines:
    if not written:
        return NO_RULES
    joined = "\n".join(written)
    spelt = grammar.spelling(joined)
    patterns = written
    if spelt != joined:
        patterns = [
            text if text == pattern else pattern  # share one string
            for text, pattern in zip(written, spelt.split("\n"), strict=True)
        ]
    return RuleLines(patterns, lines, written)


def _with_more(rules: RuleLines, more: Sequence[tuple[int, str]]) -> RuleLines:
    """`rules` with each pattern in `more` inserted after the rule at its index."""
    rows = [
        *zip(*rules, strict=True),
        *((text, rules.lines[number], rules.written[number]) for number, text in more),
    ]
    rows.sort(key=itemgetter(1))
    return RuleLines(*map(list, zip(*rows, strict=True)))


def _with_own_lines(of_all: Iterable[Other], own: Sequence[Other]) -> tuple[Other, ...]:
    """All lines for an agent: the lines for all agents, followed by its own.

    An agent's own licenses replace the licenses for all agents (RSL 1.0 §4.4).
    """
    has_license = any(
        field == LICENSE and is_absolute_url(value) for field, value, _ in own
    )
    kept = [one for one in of_all if not (has_license and one[0] == LICENSE)]
    return (*kept, *own)
