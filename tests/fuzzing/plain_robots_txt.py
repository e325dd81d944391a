"""A simple, slow robots.txt parser, used as the reference for the fast one.

It follows RFC 9309 §2.2 line by line and uses the matcher of
`tests.robotstxt.reference`.
"""

from __future__ import annotations

import math
import re
import string
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from robotsgate.robotstxt._product_token import _BROWSER_LIKE, crawler_name
from tests.robotstxt import reference

if TYPE_CHECKING:
    from collections.abc import Sequence

_pattern_spelling = lru_cache(maxsize=2_000)(reference.pattern_spelling)

_GROUP_FIELDS = {b"user-agent", b"allow", b"disallow", b"crawl-delay", b"request-rate"}
_LINE_END = re.compile(rb"\r\n|\r|\n")
_NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "_.-")
_NOT_IN_NAMES = re.compile("[\x80-\xbf\u2000-\u206f\u3000\ufeff]")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_SECONDS = re.compile(rb"([0-9]+\.?[0-9]*|\.[0-9]+)([smhd]?)", re.IGNORECASE)
_UNITS = {b"": 1, b"s": 1, b"m": 60, b"h": 3_600, b"d": 86_400}


@dataclass(frozen=True, slots=True)
class PlainRule:
    """An allow or disallow line, with its value as bytes."""

    is_allow: bool
    value: bytes
    line: int


@dataclass(frozen=True, slots=True)
class PlainGroup:
    """A run of user-agent lines (token, line), and the lines that follow it.

    Delays are (seconds, line); invalid ones are (None, line).
    """

    agents: list[tuple[str, int]] = field(default_factory=list)
    rules: list[PlainRule] = field(default_factory=list)
    delays: list[tuple[float | None, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A whole robots.txt; other lines are (line, field, value)."""

    groups: list[PlainGroup] = field(default_factory=list)
    sitemaps: list[str] = field(default_factory=list)
    others: list[tuple[int, str, str]] = field(default_factory=list)

    def token_for(self, token: str) -> str | None:
        """`token` if it has a group, otherwise "*" if that has one."""
        named = {name for group in self.groups for name, _ in group.agents}
        return next((name for name in (token, "*") if name in named), None)

    def rules_of(self, token: str | None) -> list[PlainRule]:
        """The rules of all groups that name `token`."""
        return [
            rule
            for group in self.groups
            if token in {name for name, _ in group.agents}
            for rule in group.rules
        ]

    def decisive(self, token: str | None, target: str) -> PlainRule | None:
        """The decisive rule of `token` for `target`."""
        rules = self.rules_of(token)
        spelt = [(rule.is_allow, _pattern_spelling(rule.value)) for rule in rules]
        number = reference.decisive(spelt, target)
        return None if number is None else rules[number]

    def crawl_delay(self, token: str | None) -> float | None:
        """The first delay below a line that names `token`."""
        for group in self.groups:
            named_at = [line for name, line in group.agents if name == token]
            for seconds, line in group.delays:
                if named_at and line > named_at[0]:
                    return seconds
        return None


def lines_of(body: bytes) -> list[bytes]:
    """The lines of `body` without their ends."""
    return _LINE_END.split(body)


def whole_lines(body: bytes, max_bytes: int) -> bytes:
    """`body` without the lines that reach beyond `max_bytes`."""
    kept: list[bytes] = []
    end = 0
    for line in lines_of(body):
        if end + len(line) > max_bytes:
            break
        kept.append(line)
        end += len(line)
        end += len((_LINE_END.match(body, end) or [b""])[0])
    return b"\n".join(kept)


def parse_plainly(body: bytes) -> PlainFile:
    """Parse `body` to the letter of RFC 9309, but allow digits and dots in tokens."""
    file = PlainFile()
    for number, line in enumerate(lines_of(body.removeprefix(b"\xef\xbb\xbf")), 1):
        key, colon, value = line.partition(b"#")[0].partition(b":")
        key, value = key.strip(b" \t").lower(), value.strip(b" \t")
        if key == b"sitemap" and colon:
            file.sitemaps.append(_readable(value))
        elif key in _GROUP_FIELDS and colon:
            _add_to_group(file, key, value, number)
        elif key and colon:
            file.others.append((number, _readable(key), _readable(value)))
    return file


def unique(values: Sequence[str]) -> tuple[str, ...]:
    """The distinct, nonempty `values`."""
    return tuple(filter(None, dict.fromkeys(values)))


@lru_cache(maxsize=50)
def plain_targets(text: str) -> tuple[str, ...]:
    """Normalize a path and query as patterns are, also with "%25" for a lone "%".

    Args:
        text: begins with "/"; without a fragment.
    """
    several = dict.fromkeys((text, _LONE_PERCENT.sub("%25", text)))
    return tuple(
        reference.target_spelling(one.encode("utf-8", "surrogatepass"))
        for one in several
    )


def plain_token(agent: str) -> str | None:
    """The product token in `agent`; `None` if there is none."""
    agent = agent.strip()
    if agent == "*":
        return agent
    if "://" in re.split("[( ]", agent)[0]:
        return None
    return _name(agent) or None


def _add_to_group(file: PlainFile, key: bytes, value: bytes, number: int) -> None:
    groups = file.groups
    if key == b"user-agent":
        if not groups or groups[-1].rules:
            groups.append(PlainGroup())
        groups[-1].agents.append((_token(value), number))
    elif groups and key in {b"allow", b"disallow"}:
        groups[-1].rules.append(PlainRule(key == b"allow", value, number))
    elif groups and key == b"crawl-delay":
        match = _SECONDS.fullmatch(value)
        seconds = float(match[1]) * _UNITS[match[2].lower()] if match else math.inf
        groups[-1].delays.append((seconds if seconds < math.inf else None, number))


def _token(value: bytes) -> str:
    if value[:1] == b"*" and value[1:2] in {b"", b" ", b"\t"}:
        return "*"
    return _name(_readable(value))


def _name(text: str) -> str:
    """The crawler's name in a token or a header; empty if there is none."""
    text = text.lower()
    is_header = text.startswith(_BROWSER_LIKE)
    return crawler_name(text) if is_header else _leading_name(text)


def _leading_name(text: str) -> str:
    for position, one in enumerate(text):
        if one not in _NAME_CHARACTERS and (one.isascii() or _NOT_IN_NAMES.match(one)):
            return text[:position]
    return text


def _readable(data: bytes) -> str:
    return data.decode("utf-8", "replace")
