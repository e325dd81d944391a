"""Cuts the text of a robots.txt into groups and records (RFC 9309 §2.2).

Gives the raw outline: values as they stand, patterns not yet normalised, because
most groups of a file are never asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._octets import lower

if TYPE_CHECKING:
    from robotsgate.robotstxt._dialect import Grammar

__all__ = ["Outline", "Section", "first_lines", "outline"]


@dataclass(slots=True)
class Section:
    """One run of user-agent lines with the records that follow it.

    Attributes:
        agents: (token, line).
        rules: (raw pattern, whether it allows, line); empty patterns included.
        rates: (field, raw value, line) of crawl-delay and request-rate records.
    """

    agents: list[tuple[str, int]] = field(default_factory=list)
    rules: list[tuple[str, bool, int]] = field(default_factory=list)
    rates: list[tuple[Field, str, int]] = field(default_factory=list)


@dataclass(slots=True)
class Outline:
    """A robots.txt, cut up.

    Attributes:
        sections: in the order of the file.
        by_token: for each token, the sections that name it, each once, with the
            first line that does.
        outside: what stands before the first user-agent line.
        sitemaps: (raw value, line).
        others: (lower-case key, raw value, line) of unknown fields.
        misspelt: (key, line) of fields that only a lenient dialect takes.
        void: lines that are no record at all.
    """

    sections: list[Section] = field(default_factory=list)
    by_token: dict[str, list[tuple[Section, int]]] = field(default_factory=dict)
    outside: Section = field(default_factory=Section)
    sitemaps: list[tuple[str, int]] = field(default_factory=list)
    others: list[tuple[str, str, int]] = field(default_factory=list)
    misspelt: list[tuple[str, int]] = field(default_factory=list)
    void: list[int] = field(default_factory=list)


def first_lines(body: bytes, max_bytes: int | None) -> bytes:
    """The lines of `body` that lie wholly within its first `max_bytes`.

    RFC 9309 §2.5. A line that is cut off could say the opposite of what it was
    meant to say, so it does not count.
    """
    if max_bytes is None or len(body) <= max_bytes:
        return body
    if body[max_bytes] in b"\r\n":
        return body[:max_bytes]
    end = max(body.rfind(b"\n", 0, max_bytes), body.rfind(b"\r", 0, max_bytes))
    return body[: end + 1]


def outline(text: str, grammar: Grammar) -> Outline:
    """Cut `text` up.

    Args:
        text: the file as latin-1, one character for each octet.
        grammar: the dialect's way to read it.
    """
    result = Outline()
    section = result.outside
    known_fields = grammar.known_fields
    white_space = grammar.white_space
    disallow, allow, user_agent = Field.DISALLOW, Field.ALLOW, Field.USER_AGENT
    for number, whole_line in enumerate(grammar.lines(text), 1):
        line = whole_line
        if "#" in line:
            line = line[: line.index("#")]
        if not line:
            continue
        key, colon, value = line.partition(":")
        kind = known_fields.get(key) if colon else None
        if kind is None:
            record = _record(line, number, grammar, result)
            if record is None:
                continue
            kind, value = record
        value = value.strip(white_space)
        if kind is disallow or kind is allow:
            section.rules.append((value, kind is allow, number))
        elif kind is user_agent:
            if section.rules or section is result.outside:
                section = Section()
                result.sections.append(section)
            _add_agent(result, section, grammar.group_token(value), number)
        elif kind is Field.SITEMAP:
            result.sitemaps.append((value, number))
        else:
            section.rates.append((kind, value, number))
    return result


def _record(
    line: str, number: int, grammar: Grammar, result: Outline
) -> tuple[Field, str] | None:
    """Field and value of a line that is not spelt as most are.

    `None` where the line is no record of a group or a sitemap; what it is then
    has been noted in `result`.
    """
    key, colon, value = line.partition(":")
    if not colon:
        words = grammar.split_without_colon(line)
        if words is None:
            if line.strip(grammar.white_space):
                result.void.append(number)
            return None
        key, value = words
        result.misspelt.append((key, number))
    key = lower(key.strip(grammar.white_space))
    if not key:
        result.void.append(number)
        return None
    kind = grammar.field(key)
    if kind is Field.OTHER:
        result.others.append((key, value.strip(grammar.white_space), number))
        return None
    if colon and key != kind.value:
        result.misspelt.append((key, number))
    return kind, value


def _add_agent(result: Outline, section: Section, token: str, number: int) -> None:
    section.agents.append((token, number))
    sections = result.by_token.setdefault(token, [])
    if not sections or sections[-1][0] is not section:
        sections.append((section, number))
