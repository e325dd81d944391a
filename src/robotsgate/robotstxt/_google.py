"""Reads a robots.txt as Google's published parser does, to the letter.

Source: github.com/google/robotstxt, robots.cc.
Strings of that parser end at a NUL, so NUL cuts lines and URLs here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import Field
from robotsgate.robotstxt._octets import as_octets, with_escapes_upper
from robotsgate.robotstxt._rfc9309 import frequent_spellings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.urls._origin import URLLike

# As in robots.cc: the longest URL of an old browser (2,083) times eight, less one.
_MAX_LINE_LENGTH = 16_663

_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

_FROM_NUL = re.compile("\0[^\n]*")

_INDEX_FILE = "/index.htm"

# Starts of keys, in the order in which they are tried.
_FIELDS = (
    ("user-agent", Field.USER_AGENT),
    ("useragent", Field.USER_AGENT),
    ("user agent", Field.USER_AGENT),
    ("allow", Field.ALLOW),
    ("disallow", Field.DISALLOW),
    ("dissallow", Field.DISALLOW),
    ("dissalow", Field.DISALLOW),
    ("disalow", Field.DISALLOW),
    ("diasllow", Field.DISALLOW),
    ("disallaw", Field.DISALLOW),
    ("sitemap", Field.SITEMAP),
    ("site-map", Field.SITEMAP),
)
_UNKNOWN_TO_GOOGLE = {
    field.value: field for field in (Field.CRAWL_DELAY, Field.REQUEST_RATE)
}


class _Google:
    """Takes fields by their start, frequent misspellings and missing colons."""

    white_space = " \t\x0b\x0c"
    implies_robots_txt = False

    def __init__(self) -> None:
        self.known_fields: Mapping[str, Field] = frequent_spellings()

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark, even if only a part of that is there."""
        for start in (b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"):
            if body.startswith(start):
                return body[len(start) :]
        return body

    def counted_text(self, text: str) -> str:
        if _has_overlong_line(text):
            text = "\n".join(line[:_MAX_LINE_LENGTH] for line in text.split("\n"))
        return _FROM_NUL.sub("", text) if "\0" in text else text

    def field(self, key: str) -> Field:
        for start, field in _FIELDS:
            if key.startswith(start):
                return field
        return _UNKNOWN_TO_GOOGLE.get(key, Field.OTHER)

    def split_without_colon(self, line: str) -> tuple[str, str] | None:
        """Two words are a key and a value; only space and tab separate words."""
        words = [
            word
            for word in line.strip(self.white_space).replace("\t", " ").split(" ")
            if word
        ]
        return (words[0], words[1]) if len(words) == 2 else None  # noqa: PLR2004

    def group_token(self, value: str) -> str:
        if value.isalpha() and value.isascii():
            return value.lower()
        if value == "*" or (value[:1] == "*" and value[1] in self.white_space):
            return "*"
        rest = value.lstrip(_TOKEN_CHARACTERS)
        return value[: len(value) - len(rest)].lower()

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The agents as they are: Google's matcher reduces only those of the file."""
        agents = (agent,) if isinstance(agent, str) else agent
        return tuple(
            one.encode("utf-8", "surrogatepass").lower().decode("latin-1")
            for one in agents
        )

    def spelling(self, values: str) -> str:
        return with_escapes_upper(values)

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:
        """An allow rule for …/index.html allows the folder as well."""
        if _INDEX_FILE not in "\n".join(patterns):
            return []
        return [
            (number, f"{pattern[: slash + 1]}$")
            for number, pattern in enumerate(patterns)
            for slash in (pattern.rfind("/"),)
            if pattern.startswith(_INDEX_FILE, slash)
        ]

    def target(self, url: str | URLLike) -> str:
        """Path, parameters and query of any text, as Google's parser finds them."""
        text = as_octets(str(url))
        start = 2 if text.startswith("//") else 0
        scheme_end = text.find("://", start)
        early = _first_of("/?;", text, start)
        if scheme_end < 0 or 0 <= early < scheme_end:
            host_start = start
        else:
            host_start = scheme_end + 3
        path_start = _first_of("/?;", text, host_start)
        fragment = text.find("#", start)
        if path_start < 0 or 0 <= fragment < path_start:
            return "/"
        target = text[path_start : fragment if fragment >= 0 else None]
        target = target.partition("\0")[0]
        return target if target.startswith("/") else f"/{target}"

    def target_of_path(self, path: str) -> str:
        return as_octets(path).partition("\0")[0]


def _has_overlong_line(text: str) -> bool:
    start = 0
    while len(text) - start > _MAX_LINE_LENGTH:
        end = text.rfind("\n", start, start + _MAX_LINE_LENGTH + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def _first_of(characters: str, text: str, start: int) -> int:
    """The index of the first of `characters` at or after `start`; -1 if none."""
    places = (text.find(character, start) for character in characters)
    return min((place for place in places if place >= 0), default=-1)


GOOGLE: Grammar = _Google()
