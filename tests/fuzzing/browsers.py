"""How can-ada, a WHATWG URL parser, reads a URL, for comparison with ours."""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

from robotsgate import Origin
from robotsgate.robotstxt._dialect import normalised_targets
from robotsgate.urls._path import resolved

try:
    import can_ada
except ImportError:  # it has no wheels for Python 3.15 and later
    can_ada = None  # type: ignore[assignment]

_PORTS = {"http:": 80, "https:": 443, "ftp:": 21}


def dialled_by_browsers(
    url: str, *, base: str | None = None
) -> tuple[Origin, str] | None:
    """The origin and the normalized target; `None` if can-ada cannot tell.

    Args:
        url: an absolute URL, or one relative to `base`.
        base: the URL that redirects to `url`.

    Raises:
        ValueError: browsers would not dial it.
    """
    if can_ada is None or not _is_comparable(url):
        return None
    if base is not None and not can_ada.can_parse(base):
        return None
    parsed = can_ada.parse(url) if base is None else can_ada.parse(base) + url
    origin = Origin(
        scheme=parsed.protocol[:-1],
        host=parsed.hostname.removesuffix("."),
        port=int(parsed.port or _PORTS[parsed.protocol]),
    )
    # can-ada 3.0 does not resolve the dot segments of //.a/.
    return origin, as_browsers_spell_it(resolved(parsed.pathname) + parsed.search)


def as_browsers_spell_it(target: str) -> str:
    """`target`, normalized except for "'", which browsers escape in queries."""
    spelt = normalised_targets(target)[0]
    return spelt.replace("%27", "'").removesuffix("?")


def _is_comparable(url: str) -> bool:
    """Whether can-ada accepts `url` and maps its letters as our IDNA tables do.

    It rejects lone surrogates, and the tables of Unicode versions differ in a few
    letters.
    """
    has_surrogates = any("\ud800" <= character <= "\udfff" for character in url)
    return not has_surrogates and "\u1e9e" not in unicodedata.normalize(
        "NFKC", unquote(url)
    )
