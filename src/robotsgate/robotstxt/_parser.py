"""Cuts the text of a robots.txt into groups, and those into records (RFC 9309 §2.2).

In two steps, because most groups of a file are never asked for: `outline` finds
the user-agent lines and what each group spans, `read` reads the lines of one group.
Values are given as they stand, patterns not yet normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._octets import lower, wide_encoding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.robotstxt._dialect import Grammar

Rate = tuple[Field, str, int]
"""A crawl-delay or request-rate record: (field, raw value, line)."""

Other = tuple[str, str, int]
"""A record of an unknown field: (lower-case key, raw value, line)."""

# Every spelling of the user-agent field that any dialect takes has this in it.
_PART_OF_USER_AGENT = "agent"

_RULES = (Field.DISALLOW, Field.ALLOW)


@dataclass(slots=True)
class Section:
    """One run of user-agent lines with the lines that follow it, up to the next run.

    Attributes:
        start: how many lines stand before it.
        end: how many lines stand before what follows it.
        agents: (token, line) of its user-agent lines.
    """

    start: int
    end: int
    agents: list[tuple[str, int]]


class Records:
    """What stands in one or more sections, in the order of the file.

    Attributes:
        disallows: raw patterns, empty ones included.
        disallow_lines: where each of them stands.
        allows: raw patterns, empty ones included.
        allow_lines: where each of them stands.
        rates: crawl-delay and request-rate records.
        sitemaps: (raw value, line).
        others: records of unknown fields.
        misspelt: (key, line) of fields that only a lenient dialect takes.
        void: lines that are no record at all.
    """

    __slots__ = (
        "allow_lines",
        "allows",
        "disallow_lines",
        "disallows",
        "misspelt",
        "others",
        "rates",
        "sitemaps",
        "void",
    )

    def __init__(self) -> None:
        """Hold nothing yet."""
        self.disallows: list[str] = []
        self.disallow_lines: list[int] = []
        self.allows: list[str] = []
        self.allow_lines: list[int] = []
        self.rates: list[Rate] = []
        self.sitemaps: list[tuple[str, int]] = []
        self.others: list[Other] = []
        self.misspelt: list[tuple[str, int]] = []
        self.void: list[int] = []

    def rules(self) -> Iterator[tuple[str, bool, int]]:
        """(raw pattern, whether it allows, line) in the order of the file."""
        disallows = zip(
            self.disallow_lines,
            self.disallows,
            [False] * len(self.disallows),
            strict=True,
        )
        allows = zip(
            self.allow_lines, self.allows, [True] * len(self.allows), strict=True
        )
        for line, pattern, is_allow in sorted([*disallows, *allows]):
            yield pattern, is_allow, line


@dataclass(slots=True)
class Outline:
    """A robots.txt, cut up.

    Attributes:
        lines: all lines, without comments.
        outside: what stands before the first user-agent line.
        sections: in the order of the file.
        by_token: for each token, the sections that name it, each once, with the
            first line that does.
    """

    lines: list[str]
    outside: Section
    sections: list[Section]
    by_token: dict[str, list[tuple[Section, int]]]


def first_lines(body: bytes, max_bytes: int | None) -> bytes:
    """The lines of `body` that lie wholly within its first `max_bytes`.

    RFC 9309 §2.5. A line that is cut off could say the opposite of what it was
    meant to say, so it does not count.
    """
    if max_bytes is None or len(body) <= max_bytes:
        return body
    encoding = wide_encoding(body)
    if encoding is not None:
        text = body[:max_bytes].decode(encoding, "replace")
        return text[: max(text.rfind("\n"), text.rfind("\r")) + 1].encode(encoding)
    if body[max_bytes] in b"\r\n":
        return body[:max_bytes]
    end = max(body.rfind(b"\n", 0, max_bytes), body.rfind(b"\r", 0, max_bytes))
    return body[: end + 1]


def outline(text: str, grammar: Grammar) -> Outline:
    """Find the groups of `text`.

    Args:
        text: the file as latin-1, one character for each byte; lines end with LF.
        grammar: the dialect's way to read it.
    """
    lines = grammar.lines(text)
    if "#" in text:
        lines = [line.partition("#")[0] if "#" in line else line for line in lines]
    section = Section(0, len(lines), [])
    result = Outline(lines, section, [], {})
    rest = 0
    for index, value in _user_agent_lines(text, lines, grammar):
        if section is result.outside or _has_rule(lines, rest, index, grammar):
            section.end = index
            section = Section(index, len(lines), [])
            result.sections.append(section)
        rest = index + 1
        token = grammar.group_token(value)
        section.agents.append((token, rest))
        sections = result.by_token.get(token)
        if sections is None:
            result.by_token[token] = [(section, rest)]
        elif sections[-1][0] is not section:
            sections.append((section, rest))
    return result


def read(file: Outline, section: Section, grammar: Grammar, result: Records) -> None:
    """Add to `result` what stands in `section` of `file`."""
    known_fields = grammar.known_fields
    white_space = grammar.white_space
    disallow, allow, user_agent = Field.DISALLOW, Field.ALLOW, Field.USER_AGENT
    # Unknown fields as they are written, in lower case: mostly the same ones again.
    unknown: dict[str, str] = {}
    lines = file.lines[section.start : section.end]
    for number, line in enumerate(lines, section.start + 1):
        key, colon, value = line.partition(":")
        kind = known_fields.get(key)
        if kind is None or not colon:
            if not line:
                continue
            record = _record(line, number, grammar, result, unknown)
            if record is None:
                continue
            kind, value = record
        if kind is disallow:
            result.disallows.append(value.strip(white_space))
            result.disallow_lines.append(number)
        elif kind is allow:
            result.allows.append(value.strip(white_space))
            result.allow_lines.append(number)
        elif kind is Field.SITEMAP:
            result.sitemaps.append((value.strip(white_space), number))
        elif kind is not user_agent:
            result.rates.append((kind, value.strip(white_space), number))


def _user_agent_lines(
    text: str, lines: list[str], grammar: Grammar
) -> Iterator[tuple[int, str]]:
    """Place and value of each user-agent line."""
    lower_text = lower(text)
    index = counted = 0
    previous = -1
    place = lower_text.find(_PART_OF_USER_AGENT)
    while place >= 0:
        index += text.count("\n", counted, place)
        counted = place
        if index != previous:
            previous = index
            key, colon, value = lines[index].partition(":")
            kind = grammar.known_fields.get(key)
            if kind is None or not colon:
                kind, value = _unusual(lines[index], grammar)
            if kind is Field.USER_AGENT:
                yield index, value.strip(grammar.white_space)
        place = lower_text.find(_PART_OF_USER_AGENT, place + 1)


def _has_rule(lines: list[str], start: int, end: int, grammar: Grammar) -> bool:
    """Whether an allow or disallow record stands there; it ends a group's start."""
    known_fields = grammar.known_fields
    for index in range(start, end):
        line = lines[index]
        if not line:
            continue
        key, colon, _ = line.partition(":")
        kind = known_fields.get(key)
        if kind is None or not colon:
            kind, _ = _unusual(line, grammar)
        if kind in _RULES:
            return True
    return False


def _unusual(line: str, grammar: Grammar) -> tuple[Field, str]:
    """What a line that is not spelt as most are is about, and its value.

    `Field.OTHER` where it is no record.
    """
    key, value = _split(line, grammar) or ("", "")
    return grammar.field(lower(key.strip(grammar.white_space))), value


def _split(line: str, grammar: Grammar) -> tuple[str, str] | None:
    """Key and value of `line` as they stand; `None` where it is no record."""
    key, colon, value = line.partition(":")
    return (key, value) if colon else grammar.split_without_colon(line)


def _record(
    line: str, number: int, grammar: Grammar, result: Records, unknown: dict[str, str]
) -> tuple[Field, str] | None:
    """Field and value of a line that is not spelt as most are.

    `None` where the line is no record of a group or a sitemap; what it is then
    has been noted in `result`, and what its field is called in `unknown`.
    """
    words = _split(line, grammar)
    if words is None:
        if line.strip(grammar.white_space):
            result.void.append(number)
        return None
    written, value = words
    if written in unknown and ":" in line:
        value = value.strip(grammar.white_space)
        result.others.append((unknown[written], value, number))
        return None
    key = written and lower(written.strip(grammar.white_space))
    if ":" not in line:
        result.misspelt.append((written, number))
    if not key:
        result.void.append(number)
        return None
    kind = grammar.field(key)
    if kind is Field.OTHER:
        result.others.append((key, value.strip(grammar.white_space), number))
        if ":" in line:
            unknown[written] = key
        return None
    if ":" in line and key != kind.value:
        result.misspelt.append((key, number))
    return kind, value
