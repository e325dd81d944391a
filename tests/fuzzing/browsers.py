"""What the WHATWG URL parser can-ada makes of a URL, as far as it can judge ours."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

import can_ada

from robotsgate import Origin
from robotsgate.robotstxt._dialect import normalised_target
from robotsgate.urls._path import resolved

_PORTS = {"http:": 80, "https:": 443, "ftp:": 21}


def dialled_by_browsers(
    url: str, *, base: str | None = None
) -> tuple[Origin, str] | None:
    """The origin, and the target in our spelling; `None` where there is no telling.

    Args:
        url: an absolute URL, or one that is relative to `base`.
        base: where a redirect comes from.

    Raises:
        ValueError: browsers would not dial it.
    """
    if not _is_judge_of(url) or not (base is None or can_ada.can_parse(base)):
        return None
    parsed = can_ada.parse(url) if base is None else can_ada.parse(base) + url
    origin = Origin(
        scheme=parsed.protocol[:-1],
        host=parsed.hostname.removesuffix("."),
        port=int(parsed.port or _PORTS[parsed.protocol]),
    )
    # can-ada 3.0 leaves the dot segments of //.a/. alone.
    return origin, as_browsers_spell_it(resolved(parsed.pathname) + parsed.search)


def as_browsers_spell_it(target: str) -> str:
    """`target` in our spelling, but for "'", which browsers escape in queries."""
    return normalised_target(target).replace("%27", "'").removesuffix("?")


def _is_judge_of(url: str) -> bool:
    """Whether can-ada takes `url`, and maps its letters as our IDNA tables do.

    It takes no lone surrogates; and tables of different editions of Unicode differ
    in a few letters.
    """
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in url)
    return not has_surrogates and "\u1e9e" not in unicodedata.normalize(
        "NFKC", unquote(url)
    )
