"""Everything that differs between the two robots.txt dialects.

One follows RFC 9309; the other exactly matches Google's published parser
(github.com/google/robotstxt, robots.cc). Strings in that parser end at a NUL, so a NUL
truncates lines and URLs.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH
from robotsgate.robotstxt._model import LineKind
from robotsgate.robotstxt._octets import (
    as_octets,
    is_plain,
    normalised_patterns,
    normalised_targets,
    readable,
    wide_encoding,
    with_escapes_upper,
    without_mark,
)
from robotsgate.robotstxt._product_token import (
    crawler_name,
    is_browser_like,
    product_tokens,
)
from robotsgate.urls._origin import target_in
from robotsgate.urls._path import TAB_AND_LINE_ENDS, has_readings, readings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from robotsgate.urls._origin import URLLike


class Dialect(enum.Enum):
    """How to parse a robots.txt."""

    RFC9309 = "rfc9309"
    """The standard, except that product tokens may contain digits and dots."""

    GOOGLE = "google"
    """Exactly like Google's published parser, which accepts some misspelt fields."""


def grammar_of(dialect: Dialect) -> Grammar:
    """The grammar of `dialect`.

    Raises:
        TypeError: `dialect` is not a `Dialect`.
    """
    if type(dialect) is not Dialect:  # a str would silently mean RFC 9309
        raise TypeError(f"expected dialect to be a Dialect, got {dialect!r}")
    return GOOGLE if dialect is Dialect.GOOGLE else RFC9309


_NOT_FIELDS = {LineKind.OTHER, LineKind.NO_RECORD, LineKind.COMMENT, LineKind.BLANK}
_FIELDS = {kind.value: kind for kind in LineKind if kind not in _NOT_FIELDS}

# The usual spellings: Disallow, disallow, User-Agent, ….
_FREQUENT_SPELLINGS: Mapping[str, LineKind] = {
    spelling: field
    for name, field in _FIELDS.items()
    for spelling in (name, name.capitalize(), name.title(), name.upper())
}


# A header takes up to 0.2 ms to read, and no real file has more than ten of them.
_MOST_HEADERS = 100


class Grammar:
    """Everything that differs between dialects, as RFC 9309 has it.

    Requires full field names and colons, and normalizes percent-encoding. The parser is
    the same for all dialects.
    """

    white_space = " \t"
    """The characters that may surround a field or a value."""

    known_fields = _FREQUENT_SPELLINGS
    """Frequent field spellings, exactly as found in files; faster than `field`."""

    implied: str | None = ROBOTS_TXT_PATH
    """See `RuleSet.implied`."""

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark; UTF-16 and UTF-32 become UTF-8."""
        encoding = wide_encoding(body)
        if encoding is not None:
            body = body.decode(encoding, "replace").encode()
        return without_mark(body)

    def counted_text(self, text: str) -> str:
        """`text` with each line truncated to the part that is read; LF line endings."""
        return text

    def field(self, key: str) -> LineKind:
        """The kind of a line whose key is `key` (lower-case); OTHER if unknown."""
        return _FIELDS.get(key, LineKind.OTHER)

    def split_without_colon(self, line: str) -> tuple[str, str] | None:  # noqa: ARG002
        """The key and value of a line without a colon; `None` if it is not a record."""
        return None

    def group_tokens(self) -> Callable[[str], str]:
        """A function that reads one file's user-agent lines.

        It returns a line's lower-case token; "*" for any agent, "" if there is none.
        """
        headers = 0

        def token(value: str) -> str:
            nonlocal headers
            if value.isalnum() and value.isascii():
                return value.lower()
            if value == "*" or value.startswith(("* ", "*\t")):
                return "*"
            text = readable(value)
            headers += is_browser_like(text)
            is_over = headers > _MOST_HEADERS and is_browser_like(text)
            return "" if is_over else crawler_name(text)

        return token

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The lower-case tokens to look for, most specific first."""
        return product_tokens(agent)

    def spelling(self, values: str) -> str:
        """The LF-separated patterns in `values`, normalized like `readings`."""
        if "$" not in values:
            return normalised_patterns(values)
        ends_marked = f"{values}\n".replace("$\n", "\r\n")
        spelt = normalised_patterns(ends_marked).replace("$", "%24")
        return spelt.replace("\r\n", "$\n")[:-1]

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:  # noqa: ARG002
        """Additional patterns implied by allow rules, as (rule index, pattern)."""
        return []

    def readings(self, url: str | URLLike) -> tuple[str, ...]:
        """The readings of the path and query of `url`, to match against patterns.

        Each reading starts with "/"; the first one is the path and query as given.
        """
        text = str(url)
        is_path = text.startswith("/")
        target = text if is_path else target_in(url)
        if is_plain(target):
            return (target,)
        if is_path:
            target = target.partition("#")[0].translate(TAB_AND_LINE_ENDS)  # as clients
        return self.readings_of(target)

    def readings_of(self, target: str) -> tuple[str, ...]:
        """Like `readings`, but for a target returned by `split_url`."""
        if not has_readings(target):
            return normalised_targets(target)
        spelt = [one for each in readings(target) for one in normalised_targets(each)]
        return tuple(dict.fromkeys(spelt))


RFC9309 = Grammar()

# As in robots.cc: the URL limit of an old browser (2,083) times eight, minus one.
_MAX_LINE_LENGTH = 16_663

_TOKEN_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-"

_FROM_NUL = re.compile("\0[^\n]*")

_INDEX_FILE = "/index.htm"

# Key prefixes, in the order in which they are tried.
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


class _Google(Grammar):
    """Accepts prefixes of field names, common misspellings and missing colons."""

    white_space = " \t\x0b\x0c"
    implied: str | None = None

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark, even if the mark is incomplete."""
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
        """Split a line of two words, separated by white space, into key and value."""
        words = [
            word
            for word in line.strip(self.white_space).replace("\t", " ").split(" ")
            if word
        ]
        return (words[0], words[1]) if len(words) == 2 else None  # noqa: PLR2004

    def group_tokens(self) -> Callable[[str], str]:
        return self._token

    def _token(self, value: str) -> str:
        if value.isalpha() and value.isascii():
            return value.lower()
        if value == "*" or (value[:1] == "*" and value[1] in self.white_space):
            return "*"
        rest = value.lstrip(_TOKEN_CHARACTERS)
        return value[: len(value) - len(rest)].lower()

    def asked_tokens(self, agent: str | Sequence[str]) -> tuple[str, ...]:
        """The agents, lower-cased but not shortened, as in Google's matcher."""
        agents = (agent,) if isinstance(agent, str) else agent
        return tuple(
            one.encode("utf-8", "surrogatepass").lower().decode("latin-1")
            for one in agents
        )

    def spelling(self, values: str) -> str:
        return with_escapes_upper(values)

    def folders(self, patterns: list[str]) -> list[tuple[int, str]]:
        """An allow rule for …/index.html also allows the folder."""
        if _INDEX_FILE not in "\n".join(patterns):
            return []
        return [
            (number, f"{pattern[: slash + 1]}$")
            for number, pattern in enumerate(patterns)
            for slash in (pattern.rfind("/"),)
            if pattern.startswith(_INDEX_FILE, slash)
        ]

    def readings(self, url: str | URLLike) -> tuple[str, ...]:
        """The path, parameters and query in any text, as extracted by Google's parser.

        That parser does not resolve dot segments, so there is only one reading.
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
    """The first index from `start` where any of `characters` occurs; -1 if none."""
    places = (text.find(character, start) for character in characters)
    return min((place for place in places if place >= 0), default=-1)


GOOGLE = _Google()
