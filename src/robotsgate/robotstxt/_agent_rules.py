"""The merged groups of a robots.txt for one agent (RFC 9309 §2.2.1)."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, TypeVar

from robotsgate.robotstxt._model import Match, Rule, RuleKind
from robotsgate.robotstxt._octets import readable
from robotsgate.robotstxt._records import NO_RULES, RuleLines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._matcher import RuleSet
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.robotstxt._parser import Section
    from robotsgate.robotstxt._records import Other, Rate, Records

_Record = TypeVar("_Record", "Rate", "Other")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRules:
    """The part of a file that applies to one agent, with its groups merged.

    Attributes:
        group: the product token whose groups were merged; "*" for the fallback group;
            `None` if there is no group for the agent.
        rules: the merged rules.
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

    def match(self, target: str) -> Match:
        """The match for `target`."""
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
            rule=rule_of(self.rules.as_written(number)),
            group=self.group,
        )


def rule_of(raw: tuple[str, bool, int]) -> Rule:
    """The `Rule` for one tuple from `RuleSet.as_written` or `Records.rules`."""
    written, is_allow, line = raw
    kind = RuleKind.ALLOW if is_allow else RuleKind.DISALLOW
    return Rule(kind=kind, pattern=readable(written), line=line)


def spelt_rules(records: Records, grammar: Grammar) -> tuple[RuleLines, RuleLines]:
    """The disallow and allow rules in `records`, normalized the same way as targets."""
    disallows = _spelt_lines(records.disallows, records.disallow_lines, grammar)
    allows = _spelt_lines(records.allows, records.allow_lines, grammar)
    folders = grammar.folders(allows.patterns)
    return disallows, _with_more(allows, folders) if folders else allows


def below_agent_lines(
    records: Sequence[_Record], sections: Sequence[tuple[Section, int]]
) -> Iterator[_Record]:
    """The records that follow the agent's user-agent line in the same section."""
    ends = [*(section.lines_before for section, _ in sections[1:]), math.inf]
    for (_, agent_line), end in zip(sections, ends, strict=True):
        index = bisect_right(records, agent_line, key=itemgetter(2))
        while index < len(records) and records[index][2] <= end:
            yield records[index]
            index += 1


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
