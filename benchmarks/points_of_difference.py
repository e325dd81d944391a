"""Lists what `Dialect.RFC9309` and Google's matcher read differently.

Each `Point` can be settled: `settle` rewrites a question so that both read it the same
way in this point only, without changing its meaning by the standard.
Uses robotsgate's public names only; how Google reads a file is taken from
github.com/google/robotstxt. Sections without a document are those of RFC 9309.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from robotsgate import Dialect, InvalidProductTokenError, RobotsTxt
from robotsgate.urls import readings

if TYPE_CHECKING:
    from collections.abc import Callable

    _Settle = Callable[["Question"], "Question"]

SITE = "https://shop.example"
"""The site in the examples."""

# Questions are grouped by file, and each file is rewritten in a few ways.
_MAX_PARSED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """May `agent` fetch `url`, if `body` is the robots.txt?"""

    body: bytes
    agent: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Something that the standard and Google's matcher read differently.

    Attributes:
        name: its title in the page.
        settle: rewrites a question so that both read it the same way in this point;
            by the standard, its meaning is unchanged.
        example: a question that they answer differently for this reason only.
        standard: what the standard says, and where.
    """

    name: str
    settle: Callable[[Question], Question]
    example: Question
    standard: str


POINTS: list[Point] = []
"""All known points; a difference counts towards the first that explains it."""


def _point(
    name: str, standard: str, body: str | bytes, *, path: str, agent: str = "ExampleBot"
) -> Callable[[_Settle], _Settle]:
    """Register a function that settles a point, with an example."""

    def add(settle: _Settle) -> _Settle:
        data = body.encode() if isinstance(body, str) else body
        example = Question(body=data, agent=agent, url=SITE + path)
        POINTS.append(
            Point(name=name, settle=settle, example=example, standard=standard)
        )
        return settle

    return add


def google(question: Question) -> bool:
    """Google's answer, as `Dialect.GOOGLE` gives it."""
    robots_txt = _parsed(question.body, Dialect.GOOGLE)
    return robots_txt.can_fetch(question.agent, question.url)


def ours(question: Question) -> bool | None:
    """The answer of `Dialect.RFC9309`; `None` if the agent has no product token."""
    robots_txt = _parsed(question.body, Dialect.RFC9309)
    try:
        return robots_txt.can_fetch(question.agent, question.url)
    except InvalidProductTokenError:
        return None


@lru_cache(maxsize=_MAX_PARSED)
def _parsed(body: bytes, dialect: Dialect) -> RobotsTxt:
    return RobotsTxt.parse(body, dialect=dialect, max_bytes=None)


# Changing parts of a file and a URL.

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WHITE_SPACE = b" \t"
_RULES = frozenset({b"allow", b"disallow"})
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BEFORE_VALUE = re.compile(rb"^(?:[^:]*:|[ \t]*[^ \t]+)[ \t]*")
_BEFORE_TARGET = re.compile(r"^[a-z][a-z0-9+.-]*:[/\\]{2}[^/\\?#]*", re.IGNORECASE)


def _by_lines(question: Question, change: Callable[[bytes], bytes]) -> Question:
    """`question` with each line of the file changed, except for comments."""
    body = question.body
    mark = _BYTE_ORDER_MARK if body.startswith(_BYTE_ORDER_MARK) else b""
    lines = []
    for line in _LINE_END.split(body[len(mark) :]):
        record, number_sign, comment = line.partition(b"#")
        lines.append(change(record) + number_sign + comment)
    return replace(question, body=mark + b"\n".join(lines))


def _field(record: bytes) -> bytes:
    """The field of a record, read by the standard."""
    return record.partition(b":")[0].strip(_WHITE_SPACE).lower()


def _by_value(record: bytes, change: Callable[[str], str]) -> bytes:
    """`record` with what follows its colon (otherwise its first word) changed.

    `change` takes stripped Latin-1, one character per byte.
    """
    rest = _BEFORE_VALUE.sub(b"", record, count=1)
    value = rest.rstrip(_WHITE_SPACE)
    start = record[: len(record) - len(rest)]
    changed = change(value.decode("latin-1")).encode("latin-1")
    return start + changed + rest[len(value) :]


def _by_target(question: Question, change: Callable[[str], str]) -> Question:
    """`question` with the part of its URL after the host changed."""
    target = _BEFORE_TARGET.sub("", question.url, count=1)
    start = question.url[: len(question.url) - len(target)]
    return replace(question, url=start + change(target))


def _by_paths(question: Question, change: Callable[[str], str]) -> Question:
    """`question` with its URL and all values except agent names changed."""

    def changed(record: bytes) -> bytes:
        is_name = _field(record).startswith(b"user")
        return record if is_name else _by_value(record, change)

    return _by_target(_by_lines(question, changed), change)


# The points, and how each is settled.

# Not after a stray "%", which could become an escape by decoding.
_UNRESERVED = re.compile(
    "(?<!%)(?<!%[0-9A-F])%(2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])",
    re.IGNORECASE,
)
# Without NUL, vertical tab and form feed, which are separate points.
_NOT_IN_URIS = re.compile(r'[\x01-\x0a\x0d-\x20"<>\\^`{|}\x7f]')
_ESCAPE = re.compile("%[0-9A-Fa-f]{1,2}")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_OUTSIDE_ASCII = re.compile("[^\x00-\x7f]+")
_TOKEN = re.compile("^[A-Za-z0-9_.-]*")
_HEX_IN_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_DIGIT_OR_DOT = re.compile("[0-9.]")
_N_OR_J = re.compile("%6[AEae]|[nj]")
_N_AND_J = {"n": "j", "j": "n", "%6e": "%6A", "%6a": "%6E"}
_PARTIAL_MARK = re.compile(rb"^\xef(?!\xbb\xbf)")
_MAX_LINE = 16_663
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
# A path may end with these, but a URL may not.
_LOST_IN_URL = re.compile(r"[\x00-\x20]")


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"%{one:02X}" for one in match[0].encode("utf-8", "surrogatepass"))


def _leading_token(text: str) -> str:
    return text[: len(text) - len(_TOKEN.sub("", text, count=1))]


def _token_of(name: str) -> str:
    """The product token in a user-agent line; empty if there is none."""
    robots_txt = _parsed(f"User-agent: {name}".encode(), Dialect.RFC9309)
    return robots_txt.groups[0].tokens[0]


def _in_ascii(name: str) -> str:
    """`name` with letters outside ASCII replaced by ASCII letters."""

    def letters(match: re.Match[str]) -> str:
        return f"-_{match[0].encode().hex().translate(_HEX_IN_LETTERS)}"

    return _OUTSIDE_ASCII.sub(letters, name)


def _replace_digits(text: str) -> str:
    """`text` with digits and dots in its token replaced by letters Google accepts."""

    def letters(match: re.Match[str]) -> str:
        return f"_-_-{'abcdefghijk'['0123456789.'.index(match[0])]}"

    token = _leading_token(text)
    return _DIGIT_OR_DOT.sub(letters, token) + text[len(token) :]


def _replace_digits_in_names(question: Question, *, agent_only: bool) -> Question:
    """`question` with digits replaced in the file's names: the agent's, or others."""
    token = _token_of(question.agent).lower()

    def replaced(value: str) -> str:
        is_agent = _leading_token(value).lower() == token
        return _replace_digits(value) if is_agent is agent_only else value

    def name(record: bytes) -> bytes:
        is_name = _field(record) == b"user-agent"
        return _by_value(record, replaced) if is_name else record

    return _by_lines(question, name)


def _bytes_escaped(question: Question, pattern: re.Pattern[bytes]) -> Question:
    """`question` with `pattern` escaped in values, and fields with it removed."""

    def escaped(record: bytes) -> bytes:
        key, colon, value = record.partition(b":")
        if pattern.search(key):
            return b""
        return key + colon + pattern.sub(lambda match: b"%%%02X" % ord(match[0]), value)

    return _by_lines(question, escaped)


@_point(
    "a URL that clients change before they send it",
    "§2.2.2: rules are matched against the URI. A URI can't contain a tab; clients drop"
    " it, and the rules apply to what they send.",
    "User-agent: *\nDisallow: /private/",
    path="/pri\tvate/orders",
)
def settle_spelling_of_url(question: Question) -> Question:
    """Write the URL as clients read it: stripped, and without tabs."""
    url = question.url
    if url.startswith("/"):
        return replace(question, url=SITE + _LOST_IN_URL.sub(_escaped, url))
    url = url.strip(_CONTROLS_AND_SPACE)
    url = url.translate(dict.fromkeys(map(ord, "\t\r\n")))
    target = _BEFORE_TARGET.sub("", url, count=1).partition("#")[0]
    slash = "" if target.startswith("/") else "/"
    return replace(question, url=SITE + slash + target)


@_point(
    "a letter, a digit or one of `-._~` written as an escape",
    "§2.2.2: an escape of an unreserved character is decoded before paths are"
    " compared.",
    "User-agent: *\nDisallow: /checkout/",
    path="/chec%6Bout/",
)
def settle_unreserved(question: Question) -> Question:
    """Decode escapes of letters, digits and "-._~"."""
    decode = partial(_UNRESERVED.sub, lambda escape: chr(int(escape[1], 16)))
    return _by_paths(question, decode)


@_point(
    "a group whose name starts with the agent's name and a digit or a dot",
    "§2.2.1: a group applies to the crawler whose product token it names, and"
    " `News24Bot` doesn't name `News`.",
    "User-agent: News24Bot\nDisallow: /",
    path="/",
    agent="News",
)
def settle_other_names(question: Question) -> Question:
    """Replace digits and dots in names other than the agent's."""
    return _replace_digits_in_names(question, agent_only=False)


@_point(
    "an agent whose own name has digits or dots",
    "§2.2.1: a crawler obeys the group that matches its product token. We accept"
    " digits and dots in a token; §2.2 does not.",
    "User-agent: News24Bot\nDisallow: /",
    path="/",
    agent="News24Bot",
)
def settle_own_name(question: Question) -> Question:
    """Replace digits and dots in the agent's name, including in the file."""
    return replace(
        _replace_digits_in_names(question, agent_only=True),
        agent=_replace_digits(question.agent),
    )


@_point(
    "an agent that contains more than a product token",
    "§2.2.1: the product token is only part of the identification that the crawler"
    " sends, and groups are matched by the token.",
    "User-agent: ExampleBot\nDisallow: /",
    path="/",
    agent="ExampleBot/1.0",
)
def settle_header(question: Question) -> Question:
    """Use only the product token."""
    return replace(question, agent=_token_of(question.agent.strip()) or question.agent)


@_point(
    "a user-agent line with a whole header, or with letters outside ASCII",
    "§2.2.1: the line names a product token. A header means the token that it contains,"
    " not every agent that starts with `Mozilla`, and a name must match as a whole.",
    "User-agent: Mozilla/5.0 (compatible; ExampleBot/1.0)\nDisallow: /",
    path="/",
)
def settle_names(question: Question) -> Question:
    """Write only the product token, in ASCII; "/" if there is none."""

    def plain(value: str) -> str:
        token = _token_of(value.encode("latin-1").decode("utf-8", "replace"))
        is_plain = token in {"*", _leading_token(value).lower()}
        return value if is_plain else _in_ascii(token) or "/"

    def name(record: bytes) -> bytes:
        return _by_value(record, plain) if _field(record) == b"user-agent" else record

    renamed = replace(question, agent=_in_ascii(question.agent))
    return _by_lines(renamed, name)


@_point(
    "`/robots.txt` itself",
    "§2.2.2: `/robots.txt` is implicitly allowed.",
    "User-agent: *\nDisallow: /",
    path="/robots.txt",
)
def settle_robots_txt(question: Question) -> Question:
    """Drop all rules if the URL is /robots.txt itself."""
    closed = Question(body=b"User-agent: *\nDisallow: /", agent="a", url=question.url)
    return replace(question, body=b"") if ours(closed) else question


@_point(
    "a character that URIs can't contain, escaped on one side only",
    "§2.2.2: paths are compared percent-encoded, as RFC 3986 defines it. A URI can't"
    " contain a space (RFC 3986 §2), so clients can only request `%20`.",
    "User-agent: *\nDisallow: /media library/",
    path="/media%20library/",
)
def settle_unsafe(question: Question) -> Question:
    """Escape characters that URIs can't contain."""
    return _by_paths(question, partial(_NOT_IN_URIS.sub, _escaped))


@_point(
    "the first one or two bytes of a byte order mark",
    "§2.3: the file is UTF-8, where the mark has three bytes. An incomplete one becomes"
    " part of the field, which is then unknown (§2.2).",
    b"\xef\xbbUser-agent: *\nDisallow: /private/",
    path="/private/",
)
def settle_half_a_mark(question: Question) -> Question:
    """Turn a first line that begins with a partial byte order mark into a comment."""
    body = _PARTIAL_MARK.sub(b"#", question.body, count=1)
    return replace(question, body=body)


@_point(
    "vertical tab and form feed",
    "§2.2: only spaces and tabs are white space.",
    "User-agent: *\nDisallow:\x0c/private/",
    path="/private/",
)
def settle_white_space(question: Question) -> Question:
    """Escape vertical tabs and form feeds, which only Google treats as white space."""
    escaped = _bytes_escaped(question, re.compile(rb"[\x0b\x0c]"))
    return _by_target(
        escaped, lambda target: target.replace("\x0b", "%0B").replace("\x0c", "%0C")
    )


@_point(
    "NUL",
    "§2.2: a line ends with CR or LF, not with any other control character.",
    "User-agent: *\nDisallow: /a\0b",
    path="/able",
)
def settle_nul(question: Question) -> Question:
    """Escape NUL, which ends Google's strings."""
    escaped = _bytes_escaped(question, re.compile(rb"\0"))
    return _by_target(escaped, lambda target: target.replace("\0", "%00"))


@_point(
    "a misspelled field",
    "§2.2: the fields are `user-agent`, `allow` and `disallow`. §2.2.4 permits"
    " leniency only for other records.",
    "User Agent: *\nDisallow: /account/",
    path="/account/",
)
def settle_fields(question: Question) -> Question:
    """Drop records whose field is not in the standard."""

    def known(record: bytes) -> bytes:
        is_known = _field(record) in _RULES | {b"user-agent"}
        return record if is_known or b":" not in record else b""

    return _by_lines(question, known)


@_point(
    "the case of hexadecimal digits",
    "§2.2.2: percent-encoding is that of RFC 3986, whose §6.2.2.1 treats `%3a` and"
    " `%3A` as equal.",
    "User-agent: *\nDisallow: /wiki/Special%3a",
    path="/wiki/Special%3aLog",
)
def settle_case_of_escapes(question: Question) -> Question:
    """Write escapes in upper case, including those that a pattern leaves open."""
    return _by_paths(question, partial(_ESCAPE.sub, lambda escape: escape[0].upper()))


@_point(
    "a `%` without two digits in the URL",
    "§2.2.2: rules are matched against the URI. A URI can't contain such a `%`"
    " (RFC 3986 §2.4); some clients send it unchanged and others send `%25`, so both"
    " must be allowed.",
    "User-agent: *\nDisallow: /100%25",
    path="/100%",
)
def settle_lone_percent(question: Question) -> Question:
    """Escape each such "%" if the URL is only then disallowed."""
    escaped = _by_target(question, partial(_LONE_PERCENT.sub, "%25"))
    return escaped if google(question) and not google(escaped) else question


@_point(
    "bytes outside ASCII in the URL",
    "§2.2.2: bytes outside ASCII are percent-encoded, including those in the URL.",
    "User-agent: *\nDisallow: /café/",
    path="/café/menu",
)
def settle_outside_ascii(question: Question) -> Question:
    """Escape the bytes outside ASCII in the URL."""
    return _by_target(question, partial(_OUTSIDE_ASCII.sub, _escaped))


@_point(
    "literal `*` and `$`",
    "§2.2.3: a rule matches a special character of the URL by its escape, as in"
    " `/path/foo-%24`.",
    "User-agent: *\nDisallow: /price-%24",
    path="/price-$",
)
def settle_special_characters(question: Question) -> Question:
    """Escape "*" and "$" where they stand for themselves."""

    def without_dollars(pattern: str) -> str:
        return pattern[:-1].replace("$", "%24") + pattern[-1:]

    def rule(record: bytes) -> bytes:
        is_rule = _field(record) in _RULES
        return _by_value(record, without_dollars) if is_rule else record

    def target(text: str) -> str:
        return text.replace("*", "%2A").replace("$", "%24")

    return _by_target(_by_lines(question, rule), target)


@_point(
    "a missing colon",
    "§2.2: a colon separates the field from the value.",
    "User-agent: *\nDisallow /account/",
    path="/account/",
)
def settle_colons(question: Question) -> Question:
    """Drop lines without a colon."""
    return _by_lines(question, lambda line: line if b":" in line else b"")


@_point(
    "an allow rule for `index.html`",
    "§2.2.2: a rule matches only URLs that start with its path.",
    "User-agent: *\nDisallow: /\nAllow: /news/index.html",
    path="/news/",
)
def settle_index(question: Question) -> Question:
    """Swap two letters everywhere, so that "index.html" is no longer special."""
    exchange = partial(_N_OR_J.sub, lambda letter: _N_AND_J[letter[0].lower()])
    return _by_paths(question, exchange)


@_point(
    "dot segments and backslashes",
    "§2.2.2: rules are matched against the URI; RFC 3986 §6.2.2.3 removes dot"
    " segments from it. Clients and servers resolve them differently, so every reading"
    " of the URL must be allowed.",
    "User-agent: *\nDisallow: /private/",
    path="/public/../private/",
)
def settle_readings(question: Question) -> Question:
    """Use the first reading of the URL that is disallowed."""

    def decisive(target: str) -> str:
        several = readings(target.partition("#")[0])
        for one in several:
            if not google(_by_target(question, lambda _, one=one: one)):
                return one
        return several[0]

    return _by_target(question, decisive)


@_point(
    "a line of more than 16,663 bytes",
    "§2.2: a line ends with CR or LF. §2.5 permits only a limit on the file.",
    f"User-agent: *\nDisallow:{' ' * 17_000}/private/",
    path="/private/",
)
def settle_long_lines(question: Question) -> Question:
    """Drop white space in lines that are longer than Google reads."""

    def trimmed(record: bytes) -> bytes:
        if len(record) <= _MAX_LINE:
            return record
        key, colon, value = record.partition(b":")
        return key.strip(_WHITE_SPACE) + colon + value.strip(_WHITE_SPACE)

    return _by_lines(question, trimmed)


REFUSED = Point(
    name="an agent without a product token",
    settle=lambda question: question,
    example=Question(
        body=b"User-agent: *\nDisallow: /cart/", agent=": *", url=f"{SITE}/"
    ),
    standard=(
        "§2.2.1: a product token is made of letters, `_` and `-`. Calling us"
        " with an agent that has none is a mistake, so we raise an error."
    ),
)
"""Not a difference in answers, since we raise an error."""

SEVERAL = Question(
    body=b"User-agent: *\nDisallow: /media library/",
    agent="ExampleBot",
    url=f"{SITE}/m%65dia%20library/",
)
"""An example that takes two points to explain."""
