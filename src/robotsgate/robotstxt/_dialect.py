"""Everything in which the two dialects of robots.txt differ.

RFC 9309, and Google's published parser to the letter (github.com/google/robotstxt,
robots.cc). Strings of that parser end at a NUL, so NUL cuts its lines and URLs.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Protocol

from robotsgate.robotstxt._model import LineKind
from robotsgate.robotstxt._octets import (
    as_octets,
    is_plain,
    normalised_patterns,
    normalised_target,
    readable,
    wide_encoding,
    with_escapes_upper,
    without_mark,
)
from robotsgate.robotstxt._product_token import crawler_name, product_tokens
from robotsgate.urls._origin import target_in
from robotsgate.urls._path import TAB_AND_LINE_ENDS, readings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate.urls._origin import URLLike


class Dialect(enum.Enum):
    """The way to read a robots.txt."""

    RFC9309 = "rfc9309"
    """The standard, with product tokens that may hold digits and dots."""

    GOOGLE = "google"
    """Google's published parser to the letter; it accepts some misspelt fields."""


class Grammar(Protocol):
    """Everything in which the dialects differ; the parser knows none by name."""

    white_space: str
    """The characters that may stand around a field and a value."""

    known_fields: Mapping[str, LineKind]
    """Frequent spellings, exactly as files write them: quicker than `field`."""

    implies_robots_txt: bool
    """Whether /robots.txt itself is always allowed (RFC 9309 §2.2.2)."""

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark; a dialect may change it to UTF-8."""
        ...

    def counted_text(self, text: str) -> str:
        """`text` with each line cut to the part that counts; lines end with LF."""
        ...

    def field(self, key: str) -> LineKind:
        """What a line with the lower-case `key` is; OTHER for an unknown field."""
        ...

    def split_without_colon(self, line: str) -> tuple[str, str] | None:
        """Key and value of a line without a colon; `None` if it is not a record."""
        ...

    def group_token(self, value: str) -> str:
        """The lower-case token of a user-agent line; "*" for any; may be empty."""
        ...

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The lower-case tokens to look for, most specific first."""
        ...

    def spelling(self, values: str) -> str:
        """The patterns `values`, joined by LF, in the spelling of `readings`."""
        ...

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:
        """Further patterns that allow rules stand for: (index of the rule, pattern)."""
        ...

    def readings(self, url: str | URLLike) -> tuple[str, ...]:
        """The path and query of `url`, from "/" on, as patterns are matched with it.

        Each in a reading of its own; the first is the one that was given.
        """
        ...

    def readings_of(self, target: str) -> tuple[str, ...]:
        """As `readings`, for the path and query that `split_url` gives."""
        ...


def grammar_of(dialect: Dialect) -> Grammar:
    """How a robots.txt is read in `dialect`.

    Raises:
        TypeError: `dialect` is not a `Dialect`.
    """
    if type(dialect) is not Dialect:  # a str would be read as RFC 9309 in silence
        raise TypeError(f"expected dialect to be a Dialect, got {dialect!r}")
    return GOOGLE if dialect is Dialect.GOOGLE else RFC9309


_NOT_FIELDS = {LineKind.OTHER, LineKind.NO_RECORD, LineKind.COMMENT, LineKind.BLANK}
_FIELDS = {kind.value: kind for kind in LineKind if kind not in _NOT_FIELDS}

# The fields as most files write them: Disallow, disallow, User-Agent, ….
_FREQUENT_SPELLINGS: Mapping[str, LineKind] = {
    spelling: field
    for name, field in _FIELDS.items()
    for spelling in (name, name.capitalize(), name.title(), name.upper())
}


class _Rfc9309:
    """Takes fields by their whole names, needs colons, and normalises escapes."""

    white_space = " \t"
    known_fields = _FREQUENT_SPELLINGS
    implies_robots_txt = True

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its mark, and in UTF-8 if it is in another encoding."""
        encoding = wide_encoding(body)
        if encoding is not None:
            body = body.decode(encoding, "replace").encode()
        return without_mark(body)

    def counted_text(self, text: str) -> str:
        return text

    def field(self, key: str) -> LineKind:
        return _FIELDS.get(key, LineKind.OTHER)

    def split_without_colon(self, line: str) -> None:  # noqa: ARG002
        return None

    def group_token(self, value: str) -> str:
        if value.isalnum() and value.isascii():
            return value.lower()
        if value == "*" or value.startswith(("* ", "*\t")):
            return "*"
        return crawler_name(readable(value))

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        return product_tokens(agent)

    def spelling(self, values: str) -> str:
        if "$" not in values:
            return normalised_patterns(values)
        ends_marked = f"{values}\n".replace("$\n", "\r\n")
        spelt = normalised_patterns(ends_marked).replace("$", "%24")
        return spelt.replace("\r\n", "$\n")[:-1]

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:  # noqa: ARG002
        return []

    def readings(self, url: str | URLLike) -> tuple[str, ...]:
        text = str(url)
        is_path = text.startswith("/")
        target = text if is_path else target_in(url)
        if is_plain(target):
            return (target,)
        if is_path:
            target = target.partition("#")[0].translate(TAB_AND_LINE_ENDS)  # as clients
        return self.readings_of(target)

    def readings_of(self, target: str) -> tuple[str, ...]:
        several = readings(target)
        if len(several) == 1:
            return (normalised_target(target),)
        return tuple(dict.fromkeys(map(normalised_target, several)))


RFC9309: Grammar = _Rfc9309()

# As in robots.cc: the longest URL of an old browser (2,083) times eight, less one.
_MAX_LINE_LENGTH = 16_663

_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

_FROM_NUL = re.compile("\0[^\n]*")

_INDEX_FILE = "/index.htm"

# Starts of keys, in the order in which they are tried.
_GOOGLE_FIELDS = (
    ("user-agent", LineKind.USER_AGENT),
    ("useragent", LineKind.USER_AGENT),
    ("user agent", LineKind.USER_AGENT),
    ("allow", LineKind.ALLOW),
    ("disallow", LineKind.DISALLOW),
    ("dissallow", LineKind.DISALLOW),
    ("dissalow", LineKind.DISALLOW),
    ("disalow", LineKind.DISALLOW),
    ("diasllow", LineKind.DISALLOW),
    ("disallaw", LineKind.DISALLOW),
    ("sitemap", LineKind.SITEMAP),
    ("site-map", LineKind.SITEMAP),
)
_UNKNOWN_TO_GOOGLE = {
    field.value: field for field in (LineKind.CRAWL_DELAY, LineKind.REQUEST_RATE)
}


class _Google:
    """Takes fields by their start, frequent misspellings and missing colons."""

    white_space = " \t\x0b\x0c"
    known_fields = _FREQUENT_SPELLINGS
    implies_robots_txt = False

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

    def field(self, key: str) -> LineKind:
        for start, field in _GOOGLE_FIELDS:
            if key.startswith(start):
                return field
        return _UNKNOWN_TO_GOOGLE.get(key, LineKind.OTHER)

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

    def readings(self, url: str | URLLike) -> tuple[str, ...]:
        """Path, parameters and query of any text, as Google's parser finds them.

        That parser resolves nothing, so there is one reading.
        """
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
            return ("/",)
        target = text[path_start : fragment if fragment >= 0 else None]
        target = target.partition("\0")[0]
        return (target if target.startswith("/") else f"/{target}",)

    def readings_of(self, target: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(as_octets(one).partition("\0")[0] for one in readings(target))
        )


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
