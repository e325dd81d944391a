"""Parses the text of a robots.txt into groups and records (RFC 9309 §2.2).

Parsing takes two steps, because most groups in a file are never needed: `outline` finds
the user-agent lines and the extent of each group, and `read` parses the lines of one
group. Values are left unchanged; patterns are not normalized yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import LineKind
from robotsgate.robotstxt._octets import lower, wide_encoding
from robotsgate.robotstxt._records import Records

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from robotsgate.robotstxt._dialect import Grammar

# Every spelling of user-agent that any dialect accepts contains this.
_PART_OF_USER_AGENT = "agent"

_RULES = (LineKind.DISALLOW, LineKind.ALLOW)
_RATES = (LineKind.CRAWL_DELAY, LineKind.REQUEST_RATE)

_SHORTEST_RECORD = 2

_COMMENT = re.compile("#[^\n]*")


@dataclass(slots=True)
class Section:
    """A run of user-agent lines and the lines that follow, up to the next run.

    Attributes:
        start: the section's start index in the text.
        end: the start index of the next section.
        lines_before: the number of lines before the section.
        agents: (token, line number) for each user-agent line in the section.
    """

    start: int
    end: int
    lines_before: int
    agents: list[tuple[str, int]]


@dataclass(slots=True)
class Outline:
    """A robots.txt, split into sections.

    Attributes:
        text: the part of the file that is used, without comments.
        outside: the lines before the first user-agent line.
        sections: the sections, in file order.
        by_token: for each token, the sections that name it, without duplicates, each
            with the first line that names the token.
    """

    text: str
    outside: Section
    sections: list[Section]
    by_token: dict[str, list[tuple[Section, int]]]


def first_lines(body: bytes, max_bytes: int | None) -> bytes:
    """The lines of `body` that are entirely within its first `max_bytes`.

    RFC 9309 §2.5. A truncated line could mean the opposite of the original, so it is
    dropped.
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
    """Find the groups in `text` (latin-1, one character per byte; LF line endings)."""
    text = grammar.counted_text(text)
    if "#" in text:
        text = _COMMENT.sub("", text)
    section = Section(0, len(text), 0, [])
    result = Outline(text, section, [], {})
    token_of = grammar.group_tokens()
    rest = 0
    for start, end, line, value in _user_agent_lines(text, grammar):
        if section is result.outside or (
            rest < start and _has_rule(text, rest, start, grammar)
        ):
            section.end = start
            section = Section(start, len(text), line - 1, [])
            result.sections.append(section)
        rest = end + 1
        token = token_of(value)
        section.agents.append((token, line))
        sections = result.by_token.get(token)
        if sections is None:
            result.by_token[token] = [(section, line)]
        elif sections[-1][0] is not section:
            sections.append((section, line))
    return result


def read(
    file: Outline,
    sections: Iterable[Section],
    grammar: Grammar,
    *,
    others: Collection[str] | None = None,
) -> Records:
    """The records in `sections` of `file`.

    Of the records with unknown fields, only those whose key is in `others` are kept, or
    all if it is `None`: a hostile file may consist of nothing else.
    """
    result = Records()
    white_space = grammar.white_space
    disallow, allow, user_agent = LineKind.DISALLOW, LineKind.ALLOW, LineKind.USER_AGENT
    unwanted = LineKind.OTHER
    # Unknown fields are added as spelt in the file, because most occur repeatedly.
    fields: dict[str, LineKind | str] = {**grammar.known_fields}
    for section in sections:
        lines = file.text[section.start : section.end].split("\n")
        for number, line in enumerate(lines, section.lines_before + 1):
            if len(line) < _SHORTEST_RECORD:
                if line and line.strip(white_space):
                    result.void.append(number)
                continue
            key, colon, value = line.partition(":")
            kind = fields.get(key)
            if kind is None or not colon:
                kind, value = _record(
                    line, number, grammar, result, fields, others=others
                )
            if kind is disallow:
                result.disallows.append(value.strip(white_space))
                result.disallow_lines.append(number)
            elif kind is allow:
                result.allows.append(value.strip(white_space))
                result.allow_lines.append(number)
            elif kind is not user_agent and kind is not unwanted:
                _note(kind, value.strip(white_space), number, result)
    return result


def _user_agent_lines(
    text: str, grammar: Grammar
) -> Iterator[tuple[int, int, int, str]]:
    """The start, end, number and value of each user-agent line."""
    known_fields = grammar.known_fields
    white_space = grammar.white_space
    lower_text = lower(text)
    end, number = 0, 1
    place = lower_text.find(_PART_OF_USER_AGENT)
    while place >= 0:
        number += text.count("\n", end, place)
        start = text.rfind("\n", end, place) + 1 or end
        end = text.find("\n", place)
        if end < 0:
            end = len(text)
        line = text[start:end]
        key, colon, value = line.partition(":")
        kind = known_fields.get(key)
        if kind is None or not colon:
            kind, value = _unusual(line, grammar)
        if kind is LineKind.USER_AGENT:
            yield start, end, number, value.strip(white_space)
        place = lower_text.find(_PART_OF_USER_AGENT, end)


def _has_rule(text: str, start: int, end: int, grammar: Grammar) -> bool:
    """Whether a rule, which ends a run of user-agent lines, starts in [start, end)."""
    while start < end:
        line_end = text.find("\n", start, end)
        if line_end > start:
            line = text[start:line_end]
            key, colon, _ = line.partition(":")
            kind = grammar.known_fields.get(key)
            if kind is None or not colon:
                kind, _ = _unusual(line, grammar)
            if kind in _RULES:
                return True
        start = line_end + 1
    return False


def _unusual(line: str, grammar: Grammar) -> tuple[LineKind, str]:
    """The kind and value of an unusually spelt line; OTHER if it is not a record."""
    key, value = _split(line, grammar) or ("", "")
    return grammar.field(lower(key.strip(grammar.white_space))), value


def _split(line: str, grammar: Grammar) -> tuple[str, str] | None:
    """The raw key and value of `line`; `None` if it is not a record."""
    key, colon, value = line.partition(":")
    return (key, value) if colon else grammar.split_without_colon(line)


def _record(
    line: str,
    number: int,
    grammar: Grammar,
    result: Records,
    fields: dict[str, LineKind | str],
    *,
    others: Collection[str] | None,
) -> tuple[LineKind | str | None, str]:
    """The kind and value of an unusually spelt line.

    For an unknown field, the kind is the field's name, or OTHER if it is not in
    `others`. The kind is "" if the line is not a record, and `None` if the line is
    blank. Misspelt fields are added to `result`, and other spellings to `fields`.
    """
    words = _split(line, grammar)
    if words is None:
        return "" if line.strip(grammar.white_space) else None, ""
    written, value = words
    key = lower(written.strip(grammar.white_space))
    known = grammar.field(key)
    is_unknown = known is LineKind.OTHER
    kind = key if is_unknown and (others is None or key in others) else known
    if ":" not in line:
        result.misspelt.append((written, number))
    elif not is_unknown and key != known.value:
        result.misspelt.append((key, number))
    else:
        fields[written] = kind
    return kind, value


def _note(
    kind: LineKind | str | None, value: str, number: int, result: Records
) -> None:
    """Add to `result` a line that is neither a rule nor a user-agent line."""
    if kind == "":
        result.void.append(number)
    elif isinstance(kind, str):
        result.others.append((kind, value, number))
    elif kind is LineKind.SITEMAP:
        result.sitemaps.append((value, number))
    elif kind in _RATES:
        result.rates.append((kind, value, number))
    elif kind is not None:
        result.others.append((kind.value, value, number))
