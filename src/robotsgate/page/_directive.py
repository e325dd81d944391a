"""Parses lists of directives, as found in META tags and X-Robots-Tag.

Sources: the grammar of the META tag at robotstxt.org (`all`, `none`, `[no]index`,
`[no]follow`); Google Search Central's "Robots meta tag specifications" (2026),
including directives that Google no longer uses; Bing's and Yandex's pages about META
robots (`nocache`, `noodp`; `archive`, `noyaca`); DeviantArt's `noai` and `noimageai`
(2022); Mojeek's `noml` (noml.info, 2023); the TDM Reservation Protocol by a W3C
Community Group (TDMRep, 2024), which has its own tags and headers.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from robotsgate._numbers import whole_number
from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_LONGEST_DATE = 100
_LONGEST_QUOTE = 80

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

TDM_RESERVATION = "tdm-reservation"
TDM_NAMES = (TDM_RESERVATION, "tdm-policy")
"""The names of TDMRep's tags and headers."""


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


def directives_in(
    parts: Sequence[str], source: str, diagnostics: list[str]
) -> Iterator[Directive]:
    """The directives in a list that was split at every comma, even within a date.

    `source` is the tag or header that contains the list. For each part that is not
    understood, a sentence is added to `diagnostics`.
    """
    rest = [*reversed(parts)]
    while rest:
        part = rest.pop().strip()
        name = name_of(part)
        text = part.partition(":")[2]
        if name == "unavailable_after" and rest and _date(text) is None:
            with_weekday = f"{text},{rest[-1]}"
            if _date(with_weekday) is not None:
                text = with_weekday
                rest.pop()
        value = VALUES[name](text.strip()) if name in VALUES else None
        if value is not None:
            yield Directive(name=name, value=value, source=source)
        elif name in VALUES:
            note(diagnostics, f"{_quote(part)} in {source} has no usable value")
        elif part.lower() in NAMES:
            for flag in _ALIASES.get(name, (name,)):
                yield Directive(name=flag, value=None, source=source)
        elif part:
            note(diagnostics, f"unknown directive {_quote(part)} in {source}")


def tdm_directives(
    name: str, value: str, source: str, diagnostics: list[str]
) -> Iterator[Directive]:
    """The directive in a tag or header named in `TDM_NAMES`; see `directives_in`."""
    is_flag = name == TDM_RESERVATION
    # A client may have joined two headers; a URL may contain commas.
    for part in map(str.strip, value.split(",") if is_flag else [value]):
        if not part or (is_flag and part not in {"0", "1"}):
            note(diagnostics, f"{_quote(part)} in {source} is not a TDMRep value")
        else:
            yield Directive(
                name=name, value=int(part) if is_flag else part, source=source
            )


def name_of(part: str) -> str:
    """The text of `part` up to its first colon, if any, in lower case."""
    return part.partition(":")[0].strip().lower()


def permissiveness(directive: Directive) -> float:
    """A sort key: of two directives with the same name, the stricter one is smaller."""
    value = directive.value
    if directive.name in TDM_NAMES:  # a tag replaces a header
        is_header = not directive.source.startswith("<")
        return 2.0 * is_header + (value == 0)
    if isinstance(value, str):
        return _IMAGE_PREVIEWS[value]
    if value == _NO_LIMIT and directive.name != "unavailable_after":
        return math.inf
    return value or 0.0


def note(diagnostics: list[str], message: str) -> None:
    """Add `message`, unless there are already too many messages."""
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


VALUES: Mapping[str, Callable[[str], str | float | None]] = {
    "max-snippet": _limit,
    "max-video-preview": _limit,
    "max-image-preview": _image_preview,
    "unavailable_after": _date,
}
"""Parsers for values, by directive name; they return `None` for an invalid value."""

NAMES = _FLAGS | _ALIASES.keys() | VALUES.keys()
"""The names of all directives that robotsgate understands."""


def _quote(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "…")
