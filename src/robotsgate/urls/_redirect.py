"""Decides where a response redirects (RFC 9110 §10.2.2 and §15.4). Pure.

httpx's redirect handling is not used: it reads the entire body, raises on some
Locations, and follows redirects to other schemes.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from robotsgate.errors import InvalidURLError
from robotsgate.urls._origin import Origin, URLLike, split_url
from robotsgate.urls._path import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_LOCATION_LENGTH = 16_384

_SCHEMES = frozenset({"http", "https"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

# The characters besides letters and digits that the WHATWG URL Standard does not escape
# in paths and queries.
_SENT_AS_IT_IS = "!$%&'()*+,-./:;=?@[\\]_|~"


class RedirectError(ValueError):
    """A redirect without a usable Location."""


def is_redirect(status: int) -> bool:
    """Whether `status` is a 3xx other than 304, which answers a conditional request."""
    return 300 <= status <= 399 and status != HTTPStatus.NOT_MODIFIED  # noqa: PLR2004


def next_hop(
    url: str, status: int, locations: Iterable[str]
) -> tuple[Origin, str] | None:
    """The origin and URL of the next GET; `None` if the response does not redirect.

    Args:
        url: the URL of the response.
        status: its status. Any 3xx except 304 redirects, even one that is not
            understood (RFC 9110 §15.4).
        locations: the values of its Location headers.

    Raises:
        RedirectError: there is no Location, or several different ones, or it is invalid
            or has a scheme other than http and https.
    """
    if not is_redirect(status):
        return None
    values = set(locations)
    if len(values) > 1:
        raise RedirectError(f"a redirect with {len(values)} different Location headers")
    location = next(iter(values), "").strip(" \t")
    if not location:
        raise RedirectError("a redirect without a Location")
    if len(location) > _MAX_LOCATION_LENGTH:
        raise RedirectError(f"a redirect to a Location of {len(location)} characters")
    if not location.isprintable():
        raise RedirectError("a redirect to a Location with control characters")
    absolute = absolute_url(url, location)
    scheme = absolute.partition(":")[0].lower()
    if scheme not in _SCHEMES:
        raise RedirectError(f"a redirect to the scheme {scheme!r}")
    try:
        origin, target = split_url(absolute)
    except InvalidURLError as error:
        raise RedirectError(f"a redirect to an invalid Location: {error}") from error
    return origin, _sent(origin, target)


def wire_url(url: str | URLLike) -> str:
    """`url` as sent to a server: in ASCII, without userinfo, fragment or dot segments.

    Raises:
        InvalidURLError: as for `Origin.from_url`.
    """
    return _sent(*split_url(url))


def absolute_url(url: str, location: str) -> str:
    """`location` as an absolute URL, resolved against `url` as browsers do (WHATWG).

    `urllib.parse.urljoin` is not used, because it drops double slashes and a final ";".
    Dot segments are kept.
    """
    scheme, _, rest = url.partition("://")
    authority, _, old_target = rest.partition("/")
    old_path, _, _ = old_target.partition("?")
    path, query = _cut_query(location)
    path = path.replace("\\", "/")
    own_scheme = _SCHEME.match(path)
    if own_scheme:
        name = own_scheme[1].lower()
        path = path[own_scheme.end() :]
        if name not in _SCHEMES:
            return location
        if name != scheme or path.startswith("//"):
            return f"{name}://{path.lstrip('/')}{query}"
    if path.startswith("//"):
        return f"{scheme}://{path.lstrip('/')}{query}"
    start = f"{scheme}://{authority}"
    if path.startswith("/"):
        return f"{start}{path}{query}"
    if path:
        folder = old_path[: old_path.rfind("/") + 1]
        return f"{start}/{folder}{path}{query}"
    if query.startswith("?"):
        return f"{start}/{old_path}{query}"
    return f"{start}/{old_target}"


def _sent(origin: Origin, target: str) -> str:
    from urllib.parse import quote  # noqa: PLC0415 (few robots.txt redirect)

    return f"{origin}{quote(resolved(target), safe=_SENT_AS_IT_IS)}"


def _cut_query(location: str) -> tuple[str, str]:
    """The part of `location` before its query and fragment, and the rest."""
    path, *rest = re.split(r"(?=[?#])", location, maxsplit=1)
    return path, "".join(rest)
