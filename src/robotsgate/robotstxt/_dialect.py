"""Everything that differs between the two dialects, and how paths are compared.

One dialect follows RFC 9309; the other exactly matches Google's published parser
(github.com/google/robotstxt, robots.cc). Strings in that parser end at a NUL, so a NUL
truncates lines and URLs.

RFC 9309 §2.2.2: before paths and patterns are compared, non-ASCII bytes are
percent-encoded, unreserved characters (RFC 3986 §2.3) are decoded, and hexadecimal
digits are upper-case. The RFC does not mention characters that are invalid in URIs
(space, quotes, brackets, controls). These are encoded as well, because all clients
encode them before sending. A "%" without two digits stays, because in a pattern such as
"/*%" or "/*%D" it begins an escape. A target is also compared with "%25" in its place,
because some clients send that. Text is latin-1 here: one character per byte.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING

from robotsgate._public import set_module
from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH
from robotsgate.robotstxt._model import LineKind
from robotsgate.robotstxt._product_token import (
    crawler_name,
    name_in_browser_like,
    product_tokens,
)
from robotsgate.urls._url import TAB_AND_LINE_ENDS, has_readings, readings, split_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from robotsgate.urls._url import URLLike


@set_module("robotsgate")
class Dialect(enum.Enum):
    """How to parse a robots.txt."""

    RFC9309 = "rfc9309"
    """The standard, except that product tokens may contain digits and dots."""

    GOOGLE = "google"
    """Exactly like Google's published parser, which accepts some misspelt fields."""


def grammar_of(dialect: Dialect) -> Grammar:
    if type(dialect) is not Dialect:  # a str would silently mean RFC 9309
        raise TypeError(f"expected dialect to be a Dialect, got {dialect!r}")
    return GOOGLE if dialect is Dialect.GOOGLE else RFC9309


_NOT_FIELDS = {LineKind.OTHER, LineKind.NO_RECORD, LineKind.COMMENT, LineKind.BLANK}
_FIELDS = {kind.value: kind for kind in LineKind if kind not in _NOT_FIELDS}

FREQUENT_SPELLINGS: Mapping[str, LineKind] = {
    spelling: field
    for name, field in _FIELDS.items()
    for spelling in (name, name.capitalize(), name.title(), name.upper())
}
"""The usual spellings of fields, in every dialect; faster than `Grammar.field`."""

# A header takes up to 0.2 ms to read, and no real file has more than ten of them.
_MOST_HEADERS = 100


class Grammar:
    """Everything that differs between dialects, as RFC 9309 has it.

    Requires full field names and colons, and normalizes percent-encoding. The parser is
    the same for all dialects.
    """

    white_space = " \t"
    """The characters that may surround a field or a value."""

    implied: str | None = ROBOTS_TXT_PATH
    """See `RuleSet.implied`."""

    agent_line: re.Pattern[str] = re.compile(r"\n[ \t]*+user-agent[ \t]*+:([^\n]*)")
    """A user-agent line in lower-case text and the LF before it; 1 is its value."""

    rule_line: re.Pattern[str] = re.compile(r"\n[ \t]*+(?:dis)?allow[ \t]*+:")
    """The start of a rule in lower-case text, and the LF before it."""

    def without_byte_order_mark(self, body: bytes) -> bytes:
        """`body` without its byte order mark; UTF-16 and UTF-32 become UTF-8."""
        encoding = wide_encoding(body)
        if encoding is not None:
            body = body.decode(encoding, "replace").encode()
        return body[len(_mark(body)) :] if body.startswith(_MARKS) else body

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

        def name_in_header(header: str) -> str:
            nonlocal headers
            headers += 1
            return "" if headers > _MOST_HEADERS else name_in_browser_like(header)

        def token(value: str) -> str:
            if value.isalnum() and value.isascii():
                return value.lower()
            if value == "*" or value.startswith(("* ", "*\t")):
                return "*"
            return crawler_name(readable(value), name_in_header)

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
        target = text if is_path else split_url(url)[1]
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

# A key starts with one of these.
_GOOGLE_FIELDS = {
    "user-agent": LineKind.USER_AGENT,
    "useragent": LineKind.USER_AGENT,
    "user agent": LineKind.USER_AGENT,
    "allow": LineKind.ALLOW,
    "disallow": LineKind.DISALLOW,
    "dissallow": LineKind.DISALLOW,
    "dissalow": LineKind.DISALLOW,
    "disalow": LineKind.DISALLOW,
    "diasllow": LineKind.DISALLOW,
    "disallaw": LineKind.DISALLOW,
    "sitemap": LineKind.SITEMAP,
    "site-map": LineKind.SITEMAP,
}
_GOOGLE_FIELD = re.compile("|".join(_GOOGLE_FIELDS))
_UNKNOWN_TO_GOOGLE = {
    field.value: field for field in (LineKind.CRAWL_DELAY, LineKind.REQUEST_RATE)
}


_TWO_WORDS = re.compile(r"([^ \t]++)[ \t]++([^ \t]++)")

# Without a colon, a line has two words.
_REST_OF_WORD = r"[^\n: \t]*+[ \t]++"
_IS_LAST_WORD = r"(?=[^\n: \t]*[^\n: \t\v\f][ \t\v\f]*+(?:\n|\Z))"


def _google_line(*kinds: LineKind) -> re.Pattern[str]:
    """Like `Grammar.agent_line`, for lines of these kinds."""
    fields = [field for field, kind in _GOOGLE_FIELDS.items() if kind in kinds]
    words = [field for field in fields if " " not in field]
    return re.compile(
        rf"\n[ \t\v\f]*+(?:(?:{'|'.join(fields)})[^\n:]*+:"
        rf"|(?:{'|'.join(words)}){_REST_OF_WORD}{_IS_LAST_WORD})([^\n]*)"
    )


class _Google(Grammar):
    """Accepts prefixes of field names, common misspellings and missing colons."""

    white_space = " \t\x0b\x0c"
    implied: str | None = None
    agent_line: re.Pattern[str] = _google_line(LineKind.USER_AGENT)
    rule_line: re.Pattern[str] = _google_line(LineKind.ALLOW, LineKind.DISALLOW)

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
        match = _GOOGLE_FIELD.match(key)
        if match is None:
            return _UNKNOWN_TO_GOOGLE.get(key, LineKind.OTHER)
        return _GOOGLE_FIELDS[match[0]]

    def split_without_colon(self, line: str) -> tuple[str, str] | None:
        """Split a line of two words, separated by white space, into key and value."""
        words = _TWO_WORDS.fullmatch(line.strip(self.white_space))
        return words and (words[1], words[2])

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
        """`values` with %xx in upper case and non-ASCII bytes encoded."""
        if "%" not in values and values.isascii():
            return values
        return _with_escapes(values, _UPPER).translate(_ENCODED_OUTSIDE_ASCII)

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


_UNRESERVED = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
_HEX = "0123456789abcdefABCDEF"

_DECODED = {
    high + low: chr(octet) if chr(octet) in _UNRESERVED else f"%{octet:02X}"
    for high in _HEX
    for low in _HEX
    for octet in (int(high + low, 16),)
}
_UPPER = {pair: f"%{pair.upper()}" for pair in _DECODED}
# A digit that is not followed by another.
_DECODED |= {digit: f"%{digit.upper()}" for digit in "abcdef"}

# Finds a "%" that must be changed. Nearly all escapes are left unchanged: they have two
# upper-case digits and do not encode an unreserved character.
_UNUSUAL_ESCAPE = re.compile(
    r"%(?![0189A-F][0-9A-F]|2[0-9ABCF]|3[A-F]|40|5[BCDE]|60|7[BCDF])"
)

LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
"""Finds a "%" without two digits."""

_PLAIN = (_UNRESERVED | _RESERVED) - set("#$%*")


def _changed_unless(safe: frozenset[str]) -> bytes:
    """A table for `bytes.translate` that changes every character not in `safe`.

    Translating and comparing is twice as fast as deleting the safe characters and
    looking for others.
    """
    return bytes(octet ^ (chr(octet) not in safe) for octet in range(256))


class _Safe:
    """Translation tables that change, or percent-encode, all but the safe characters.

    `encoded` has an entry for each character, because `str.translate` is slow if an
    entry is missing.
    """

    def __init__(self, characters: frozenset[str]) -> None:
        self.changed = _changed_unless(characters)
        self.encoded = {
            octet: octet if chr(octet) in characters else f"%{octet:02X}"
            for octet in range(256)
        }


# Line ends separate patterns. `_UNUSUAL_ESCAPE` finds the "%" to change.
_IN_PATTERNS = _Safe(_PLAIN | set("#$*%\r\n"))
_IN_TARGETS = _Safe(_PLAIN | set("#%"))

UNLESS_PLAIN_CHANGED = _changed_unless(_PLAIN)
"""A table that changes an ASCII target unless `is_plain` may be true for it."""

_ENCODED_OUTSIDE_ASCII = _Safe(frozenset(map(chr, range(0x80)))).encoded


# UTF-32 first, because one of its marks starts with a UTF-16 mark.
_WIDE_ENCODINGS = {
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}
_MARKS = (b"\xef\xbb\xbf", *_WIDE_ENCODINGS)

# Every file and every page contains an ASCII word: a field or a tag name. ASCII text
# decoded as a wide encoding contains none.
_WORD = re.compile("[A-Za-z]{4}")


def wide_encoding(body: bytes) -> str | None:
    """The encoding that a UTF-16 or UTF-32 byte order mark indicates, if plausible.

    Otherwise `None`: some editors put such a mark before ASCII text.
    """
    if not body.startswith(_MARKS):  # almost no file has one
        return None
    encoding = _WIDE_ENCODINGS.get(_mark(body))
    if encoding is None:
        return None
    return encoding if _WORD.search(body.decode(encoding, "replace")) else None


def _mark(body: bytes) -> bytes:
    return next(filter(body.startswith, _MARKS))


def as_octets(text: str) -> str:
    """`text` encoded in UTF-8, with one latin-1 character per byte."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def readable(octets: str) -> str:
    """`octets` decoded as UTF-8, with U+FFFD for invalid bytes."""
    if octets.isascii():
        return octets
    return octets.encode("latin-1").decode("utf-8", "replace")


def lower(octets: str) -> str:
    """`octets` with only ASCII letters changed to lower case."""
    if octets.isascii():
        return octets.lower()
    return octets.encode("latin-1").lower().decode("latin-1")


def is_plain(target: str) -> bool:
    """Quickly check whether `target` is already normalized.

    True for most targets on most sites: they neither need nor contain escapes, and
    contain no "." segment, no fragment, and no "*" or "$".
    """
    if "/." in target or not target.isascii():
        return False
    octets = target.encode()
    return octets.translate(UNLESS_PLAIN_CHANGED) == octets


def normalised_patterns(octets: str) -> str:
    """LF-separated patterns, normalized as in `normalised_targets`.

    "*" and "$" are left unchanged.
    """
    if _UNUSUAL_ESCAPE.search(octets):
        octets = _with_escapes(octets, _DECODED)
    return _encoded(octets, _IN_PATTERNS)


def normalised_targets(target: str) -> tuple[str, ...]:
    """Path and query, normalized for comparison with patterns.

    `target` has no fragment; any "*" or "$" in it is an ordinary character. If it has a
    "%" without two digits, there is a second result, with "%25" instead.
    """
    octets = as_octets(target)
    if not _UNUSUAL_ESCAPE.search(octets):
        return (_encoded(octets, _IN_TARGETS),)
    spelt = _encoded(_with_escapes(octets, _DECODED), _IN_TARGETS)
    if not LONE_PERCENT.search(octets):
        return (spelt,)
    return spelt, *normalised_targets(LONE_PERCENT.sub("%25", octets))


def _encoded(octets: str, safe: _Safe) -> str:
    raw = octets.encode("latin-1")
    is_encoded = raw.translate(safe.changed) == raw
    return octets if is_encoded else octets.translate(safe.encoded)


def _with_escapes(octets: str, spellings: dict[str, str]) -> str:
    """`octets` with each "%" and its digits, one or two, replaced by `spellings`."""
    first, *rest = octets.split("%")
    parts = [first]
    for part in rest:
        spelling = spellings.get(part[:2])
        if spelling is not None:
            parts.append(spelling + part[2:])
        elif part[:1] in spellings:
            parts.append(spellings[part[:1]] + part[1:])
        else:
            parts.append("%" + part)
    return "".join(parts)
