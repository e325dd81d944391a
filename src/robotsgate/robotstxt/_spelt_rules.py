"""Brings the rules of a file to the spelling that targets have."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from robotsgate.robotstxt._matcher import NO_RULES, RuleLines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._parser import Records


def spelt_rules(records: Records, grammar: Grammar) -> tuple[RuleLines, RuleLines]:
    """The disallow and the allow rules of `records`."""
    disallows = _spelt_lines(records.disallows, records.disallow_lines, grammar)
    allows = _spelt_lines(records.allows, records.allow_lines, grammar)
    folders = grammar.folders(allows.patterns)
    return disallows, _with_more(allows, folders) if folders else allows


def _spelt_lines(written: list[str], lines: list[int], grammar: Grammar) -> RuleLines:
    if not written:
        return NO_RULES
    joined = "\n".join(written)
    spelt = grammar.spelling(joined)
    patterns = written
    if spelt != joined:
        patterns = [
            text if text == pattern else pattern  # one string for both
            for text, pattern in zip(written, spelt.split("\n"), strict=True)
        ]
    return RuleLines(patterns, lines, written)


def _with_more(rules: RuleLines, more: Sequence[tuple[int, str]]) -> RuleLines:
    """`rules` with each pattern of `more` after the rule at its index."""
    rows = [
        *zip(*rules, strict=True),
        *((text, rules.lines[number], rules.written[number]) for number, text in more),
    ]
    rows.sort(key=itemgetter(1))
    return RuleLines(*map(list, zip(*rows, strict=True)))
