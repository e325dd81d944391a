"""Reads and combines the page directives that apply to one agent.

If directives disagree, the most restrictive one applies.

Sources: the grammar of the META tag at robotstxt.org (`all`, `none`, `[no]index`,
`[no]follow`); Google Search Central's "Robots meta tag specifications" (2026),
including directives that Google no longer uses; Bing's and Yandex's pages about META
robots (`nocache`, `noodp`; `archive`, `noyaca`); DeviantArt's `noai` and `noimageai`
(2022); Mojeek's `noml` (noml.info, 2023); the TDM Reservation Protocol by a W3C
Community Group (TDMRep, 2024), which has its own tags and headers.

META tags are found by the HTML standard's rules for tags and the head (as of 2026).
`html.parser` is not used, because it gives different answers in different Python
versions.
"""

from __future__ import annotations

import codecs
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING

from robotsgate._numbers import whole_number
from robotsgate._public import set_module
from robotsgate.robotstxt._dialect import wide_encoding
from robotsgate.robotstxt._headers import headers_named
from robotsgate.robotstxt._model import JSONValue, quoted
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.robotstxt._usage_preferences import Preference

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from robotsgate.robotstxt._headers import HeadersLike

_LONGEST_DATE = 100

# Without this limit, a hostile page could use up all memory.
_MOST_DIAGNOSTICS = 100

_NO_LIMIT = -1
_LARGEST_LIMIT = 10**9

_IMAGE_PREVIEWS = {"none": 0.0, "standard": 1.0, "large": 2.0}

_ALIASES = {"all": ("index", "follow"), "none": ("noindex", "nofollow")}

_FLAGS = {
    "archive", "follow", "index", "indexifembedded", "noai", "noarchive", "nocache",
    "nofollow", "noimageai", "noimageindex", "noindex", "noml", "noodp",
    "nositelinkssearchbox", "nosnippet", "notranslate", "noyaca",
}  # fmt: skip

_TDM_RESERVATION = "tdm-reservation"
_TDM_NAMES = (_TDM_RESERVATION, "tdm-policy")
"""The names of TDMRep's tags and headers."""

_OPPOSITES = {"index": "noindex", "follow": "nofollow", "archive": "noarchive"}

MAX_BYTES = 2_000_000
"""How many bytes of a page are read: the same as Googlebot (2026)."""

# HTML §4.2.5.4: the encoding is declared within this many bytes.
_BYTES_WITH_CHARSET = 1_024
_CHARSET = re.compile(
    rb"""<meta[^>]{0,512}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)

_WIDE_STARTS = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}

_DEFAULT_ENCODING = "cp1252"

# The codecs of the encodings that browsers support. Some of Python's other codecs take
# quadratic time, or do not return text.
_ENCODINGS = {
    "ascii", "big5", "big5hkscs", "cp866", "cp874", "cp932", "cp949", "cp1250",
    "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "iso8859-1",
    "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7",
    "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-11", "iso8859-13", "iso8859-14",
    "iso8859-15", "iso8859-16", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman",
    "shift_jis", "utf-8", "utf-16-be", "utf-16-le",
}  # fmt: skip

# HTML §13.2.5.32 to 39: a name, and a value in any quotes.
_ATTRIBUTE = (
    r"[\s/]*([^\s/>][^\s/>=]*)"
    r"""(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^\s>]*)))?"""
)

# A comment, a bogus comment or a tag (HTML §13.2.5.6 to 53). If it is unfinished, it
# extends to the end of the page: every part after a repetition is optional, so no match
# backtracks. Attributes are limited because each takes memory during the match.
_TAG = re.compile(
    rf"""
    <(?: !--(?:-?>|.*?(?:--!?>|\Z))
       | (?:[!?]|/(?![a-z]))[^>]*
       | (?P<slash>/?)(?P<name>[a-z][^\s/>]*)
         (?P<attributes>(?:{_ATTRIBUTE}){{0,1000}})[\s/]*(?P<close>>?)
    )""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

# HTML §13.2.5.73: a named reference without ";" is text if "=" or a letter follows. The
# digits are limited because Python raises ValueError for 5,000 of them.
_REFERENCE = re.compile(
    r"&(?:#x?[0-9a-f]{1,20};?|[a-z0-9]+(?:;|(?![a-z0-9=])))", re.ASCII | re.IGNORECASE
)

# Elements that may be in a head, or between "</head>" and the body; any other element
# ends it (HTML §13.2.6.4.4 and 6).
_OF_HEAD = {
    "base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes",
    "noscript", "script", "style", "template", "title",
}  # fmt: skip

# Elements whose content is text, or not part of the page.
_WITH_TEXT = {
    "iframe", "noembed", "noframes", "script", "style", "template", "textarea", "title",
    "xmp",
}  # fmt: skip

# Elements whose end tag begins the body.
_OF_BODY = {"body", "br", "html"}


@set_module("robotsgate.page")
@dataclass(frozen=True, slots=True, kw_only=True)
class Directive(JSONValue):
    """One page directive.

    Attributes:
        name: the lower-case name, such as "noindex" or "max-snippet".
        value: for "max-snippet", a number of characters, and for "max-video-preview", a
            number of seconds, both from 0 to 10^9, or -1 for no limit; for
            "max-image-preview", "none", "standard" or "large"; for "unavailable_after",
            a date in epoch seconds; for "tdm-reservation", 1 if the rights are reserved
            and 0 if not; for "tdm-policy", the URL as written on the page; otherwise
            `None`.
        source: the tag or header that contains it.
    """

    name: str
    value: str | float | None
    source: str

    def __str__(self) -> str:
        """The directive as written on a page."""
        value = self.value
        if self.name == "unavailable_after" and isinstance(value, float):
            value = datetime.fromtimestamp(value, UTC).isoformat()
        return self.name if value is None else f"{self.name}: {value}"


@set_module("robotsgate.page")
@dataclass(frozen=True, slots=True, kw_only=True)
class PageDirectives(JSONValue):
    """The page directives that apply to one agent.

    Attributes:
        directives: the most restrictive directive for each name, keyed by name. "all"
            and "none" are replaced by the directives they stand for; "index", "follow"
            and "archive" are omitted if their opposites are present. TDMRep directives
            are named "tdm-reservation" and "tdm-policy"; for these, a tag replaces a
            header.
        diagnostics: problems that the site may want to know about: unknown, repeated or
            contradictory directives; one sentence each, without a final period.
            `from_html` and `from_headers` each keep at most about a hundred.
    """

    directives: Mapping[str, Directive]
    diagnostics: tuple[str, ...]

    @classmethod
    def from_html(
        cls,
        html: bytes | str,
        agent: str | Sequence[str],
        *,
        encoding: str | None = None,
    ) -> PageDirectives:
        """Read the META tags in the head of `html`; malformed HTML never raises.

        It reads the tags named "robots", the tags named after `agent`, and TDMRep's
        tags. Tags after the head, or after 2,000,000 bytes, are ignored.

        Args:
            html: the page, as bytes or as decoded text.
            agent: as in `RobotsTxt.can_fetch`; "*" to skip tags named after an agent.
            encoding: the encoding in the Content-Type header. It is overridden by a
                byte order mark, and overrides the encoding declared in the page.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            TypeError: `html` is neither bytes nor str.
        """
        if not isinstance(html, bytes | str):
            raise TypeError(
                f"expected html to be bytes or str, got {type(html).__name__}"
            )
        names = {"robots", *product_tokens(agent), *_TDM_NAMES}
        tags, is_whole = _meta_tags(html, names, encoding=encoding)
        message = "the head is too long: only its beginning is read"
        diagnostics = [] if is_whole else [message]
        directives: list[Directive] = []
        for name, content in tags:
            source = f'<meta name="{name}">'
            if name in _TDM_NAMES:
                directives += _tdm_directives(name, content, source, diagnostics)
            else:
                directives += _directives_in(content.split(","), source, diagnostics)
        return _page_directives(directives, diagnostics)

    @classmethod
    def from_headers(
        cls, headers: HeadersLike, agent: str | Sequence[str]
    ) -> PageDirectives:
        """Read X-Robots-Tag and the TDMRep headers. Malformed headers never raise.

        Headers for all agents apply, as do headers for `agent`, such as
        "googlebot: noindex, nofollow".

        Args:
            headers: response headers from any client. If the client joins repeated
                headers, an agent's name applies to everything that follows it.
            agent: as in `from_html`.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`.
            TypeError: `headers` does not consist of pairs of str.
        """
        agents = {"*", "robots", *product_tokens(agent)}
        diagnostics: list[str] = []
        directives: list[Directive] = []
        for name, value in headers_named(headers, ("x-robots-tag", *_TDM_NAMES)):
            if name in _TDM_NAMES:
                source = f"the header {name}"
                directives += _tdm_directives(name, value, source, diagnostics)
                continue
            for source, parts in _for_agents(value, agents):
                directives += _directives_in(parts, source, diagnostics)
        return _page_directives(directives, diagnostics)

    def combined(self, *others: PageDirectives) -> PageDirectives:
        """Combine these directives with `others`, keeping the strictest for each name.

        Can also be called as `PageDirectives.combined(in_html, in_headers)`.
        """
        pages = (self, *others)
        directives = [one for page in pages for one in page.directives.values()]
        diagnostics = [one for page in pages for one in page.diagnostics]
        return _strictest(directives, diagnostics)

    def may_index(self, now: float) -> bool:
        """Whether the page may be indexed at `now` (epoch seconds).

        Ignores "indexifembedded", which permits a page with "noindex" to be indexed as
        part of another page.
        """
        end = self.directives.get("unavailable_after")
        until = math.inf if end is None else float(end.value or 0)
        return "noindex" not in self.directives and now < until

    @property
    def may_follow(self) -> bool:
        """Whether the links on the page may be followed."""
        return "nofollow" not in self.directives

    @property
    def tdm_reservation(self) -> Preference:
        """Whether TDMRep permits text and data mining of the page.

        DISALLOW if the page reserves these rights ("tdm-policy" may then point to a
        license); ALLOW if it does not; UNKNOWN if it does not specify. The site's
        tdmrep.json file is not read.
        """
        stated = self.directives.get(_TDM_RESERVATION)
        if stated is None:
            return Preference.UNKNOWN
        return Preference.DISALLOW if stated.value else Preference.ALLOW

    def explain(self) -> str:
        """All directives and their sources, in one human-readable line."""
        said = [f"{one} in {one.source}" for one in self.directives.values()]
        return "; ".join(said) or "no directives"


def first_element(page: str, name: str) -> str:
    """The HTML inside the first element `name` (lower-case) of a page.

    Empty if there is none, or if it has no end. A tag in a comment, a script or a text
    field is not an element.
    """
    for tag in _tags(page):
        if tag["name"].lower() == name and not tag["slash"]:
            end = _end_tag(page, name, tag.end())
            return page[tag.end() : end.start()] if end else ""
    return ""


def _for_agents(
    value: str, agents: Collection[str]
) -> Iterator[tuple[str, Sequence[str]]]:
    """The parts of an X-Robots-Tag that apply to `agents`, as (source, parts) pairs.

    An agent's name applies until the next name. Text before a colon is a name only if a
    directive follows it: "max-foo: 3, noindex" applies to all agents.
    """
    source = "X-Robots-Tag"
    is_for_us = True
    parts: list[str] = []
    for part in value.split(","):
        name, _, rest = part.partition(":")
        name = name.strip().lower()
        if name not in _VALUES and _name_of(rest) in _NAMES:
            if is_for_us:
                yield source, parts
            source, is_for_us = f"X-Robots-Tag: {name}", name in agents
            parts = [rest]
        else:
            parts.append(part)
    if is_for_us:
        yield source, parts


def _page_directives(
    directives: Sequence[Directive], diagnostics: list[str]
) -> PageDirectives:
    names: set[str] = set()
    for one in directives:
        if one.name in names:
            _note(diagnostics, f"{one.name!r} is repeated in {one.source}")
        names.add(one.name)
    return _strictest(directives, diagnostics)


def _strictest(
    directives: Sequence[Directive], diagnostics: Iterable[str]
) -> PageDirectives:
    return PageDirectives(
        directives=_most_restrictive(directives),
        diagnostics=(*diagnostics, *_contradictions(directives)),
    )


def _contradictions(directives: Sequence[Directive]) -> list[str]:
    first = {one.name: one for one in reversed(directives)}
    return [
        f"{permission!r} in {first[permission].source} contradicts"
        f" {restriction!r} in {first[restriction].source}, which takes precedence"
        for permission, restriction in _OPPOSITES.items()
        if permission in first and restriction in first
    ]


def _most_restrictive(directives: Iterable[Directive]) -> dict[str, Directive]:
    """The most restrictive directive for each name; on a tie, the first."""
    result: dict[str, Directive] = {}
    for one in directives:
        known = result.get(one.name)
        if known is None or _permissiveness(one) < _permissiveness(known):
            result[one.name] = one
    for permission, restriction in _OPPOSITES.items():
        if restriction in result:
            result.pop(permission, None)
    return result


def _directives_in(
    parts: Sequence[str], source: str, diagnostics: list[str]
) -> Iterator[Directive]:
    """The directives in a list that was split at every comma, even within a date.

    `source` is the tag or header that contains the list. For each part that is not
    understood, a sentence is added to `diagnostics`.
    """
    rest = [*reversed(parts)]
    while rest:
        part = rest.pop().strip()
        name = _name_of(part)
        text = part.partition(":")[2]
        if name == "unavailable_after" and rest and _date(text) is None:
            with_weekday = f"{text},{rest[-1]}"
            if _date(with_weekday) is not None:
                text = with_weekday
                rest.pop()
        value = _VALUES[name](text.strip()) if name in _VALUES else None
        if value is not None:
            yield Directive(name=name, value=value, source=source)
        elif name in _VALUES:
            _note(diagnostics, f"{quoted(part)} in {source} has no usable value")
        elif part.lower() in _NAMES:
            for flag in _ALIASES.get(name, (name,)):
                yield Directive(name=flag, value=None, source=source)
        elif part:
            _note(diagnostics, f"unknown directive {quoted(part)} in {source}")


def _tdm_directives(
    name: str, value: str, source: str, diagnostics: list[str]
) -> Iterator[Directive]:
    """The directive in a tag or header named in `_TDM_NAMES`; see `_directives_in`."""
    is_flag = name == _TDM_RESERVATION
    # A client may have joined two headers; a URL may contain commas.
    for part in map(str.strip, value.split(",") if is_flag else [value]):
        if not part or (is_flag and part not in {"0", "1"}):
            _note(diagnostics, f"{quoted(part)} in {source} is not a TDMRep value")
        else:
            yield Directive(
                name=name, value=int(part) if is_flag else part, source=source
            )


def _name_of(part: str) -> str:
    """The text of `part` up to its first colon, if any, in lower case."""
    return part.partition(":")[0].strip().lower()


def _permissiveness(directive: Directive) -> float:
    """A sort key: of two directives with the same name, the stricter one is smaller."""
    value = directive.value
    if directive.name in _TDM_NAMES:  # a tag replaces a header
        is_header = not directive.source.startswith("<")
        return 2.0 * is_header + (value == 0)
    if isinstance(value, str):
        return _IMAGE_PREVIEWS[value]
    if value == _NO_LIMIT and directive.name != "unavailable_after":
        return math.inf
    return value or 0.0


def _note(diagnostics: list[str], message: str) -> None:
    if len(diagnostics) < _MOST_DIAGNOSTICS:
        diagnostics.append(message)


def _limit(text: str) -> int | None:
    if text == str(_NO_LIMIT):
        return _NO_LIMIT
    return whole_number(text, most=_LARGEST_LIMIT)


def _image_preview(text: str) -> str | None:
    return text.lower() if text.lower() in _IMAGE_PREVIEWS else None


def _date(text: str) -> float | None:
    """A date in RFC 822, 850, 1123 or ISO 8601 format, as epoch seconds.

    A date without a time zone is treated as UTC.
    """
    # Imported here, because it imports `socket`.
    from email.utils import parsedate_to_datetime  # noqa: PLC0415

    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError, IndexError):
            date = read(text.strip()[:_LONGEST_DATE])
            return date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC).timestamp()
    return None


def _meta_tags(
    html: bytes | str, names: Collection[str], *, encoding: str | None
) -> tuple[list[tuple[str, str]], bool]:
    """(name, content) of a page's META tags, and whether its head is complete.

    Only tags whose name is in `names` (lower-case) are included. `encoding` is the
    encoding declared in the response headers. At most `MAX_BYTES` are read.
    """
    page = html[:MAX_BYTES]
    if isinstance(page, bytes):
        page = page.decode(_encoding(page, encoding), "replace")
    metas: list[tuple[str, str]] = []
    is_in_noscript = False
    for tag in _tags(page):
        element = tag["name"].lower()
        if tag["slash"]:
            if element in _OF_BODY:
                return metas, True
            is_in_noscript = is_in_noscript and element not in {"head", "noscript"}
        elif element not in _OF_HEAD and not is_in_noscript:
            return metas, True
        elif element == "noscript":
            is_in_noscript = True  # it may contain a tracking pixel
        elif element == "meta":
            values = _attributes(tag)
            name = values.get("name", "").strip().lower()
            if name in names:
                metas.append((name, values.get("content", "")))
    return metas, len(html) <= MAX_BYTES


def _end_tag(page: str, name: str, position: int) -> re.Match[str] | None:
    return re.compile(rf"</{name}(?=[\s/>])", _TAG.flags).search(page, position)


def _tags(page: str) -> Iterator[re.Match[str]]:
    """All tags, except those in comments and in the content of `_WITH_TEXT`."""
    position = 0
    while tag := _TAG.search(page, position):
        position = tag.end()
        if not tag["close"]:  # a comment, or unfinished
            continue
        yield tag
        element = tag["name"].lower()
        if element in _WITH_TEXT and not tag["slash"]:
            end = _end_tag(page, element, position)
            position = end.start() if end else len(page)


def _attributes(tag: re.Match[str]) -> dict[str, str]:
    """The values by lower-case name; if a name is repeated, the first value is used."""
    attributes = re.findall(_ATTRIBUTE, tag["attributes"], re.ASCII)
    return {
        name.lower(): _REFERENCE.sub(_character, "".join(value))
        for name, *value in reversed(attributes)
    }


def _character(reference: re.Match[str]) -> str:
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" or name in html5 else reference[0]


def _encoding(html: bytes, declared: str | None) -> str:
    """The codec for a page, chosen in the order prescribed by HTML §13.2.3.2."""
    wide = wide_encoding(html)
    if html.startswith(codecs.BOM_UTF8) or wide:
        return wide or "utf-8"
    codec = _codec(declared or "") or _WIDE_STARTS.get(html[:2])
    if codec is not None:
        return codec
    charset = _CHARSET.search(html, 0, _BYTES_WITH_CHARSET)
    codec = _codec(charset[1].decode("latin-1")) if charset else None
    # A tag that is readable as ASCII is not in a wide encoding.
    is_wide = codec is not None and codec.startswith("utf-16")
    return "utf-8" if is_wide else codec or _DEFAULT_ENCODING


def _codec(label: str) -> str | None:
    """The name of the codec for `label`, or `None` if browsers do not support it."""
    if not label.isascii():  # Python 3.15 warns about them
        return None
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return None
    if name == "utf-16":  # without a byte order mark, or it would have been seen
        return "utf-16-le"
    return name if name in _ENCODINGS else None


_VALUES: Mapping[str, Callable[[str], str | float | None]] = {
    "max-snippet": _limit,
    "max-video-preview": _limit,
    "max-image-preview": _image_preview,
    "unavailable_after": _date,
}
"""Parsers for values, by directive name; they return `None` for an invalid value."""

_NAMES = _FLAGS | _ALIASES.keys() | _VALUES.keys()
"""The names of all directives that robotsgate understands."""
