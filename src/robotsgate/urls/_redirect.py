"""Resolves the target of a redirect (RFC 9110 §10.2.2). Pure.

httpx's redirect handling is not used: it reads the entire body, raises on some
Locations, and follows redirects to other schemes.
"""

from __future__ import annotations

import re

from robotsgate.errors import InvalidURLError
from robotsgate.urls._origin import URLLike, split_url
from robotsgate.urls._path import resolved

_MAX_LOCATION_LENGTH = 16_384

_SCHEMES = frozenset({"http", "https"})
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

# The characters besides letters and digits that the WHATWG URL Standard does not escape
# in paths and queries.
_SENT_AS_IT_IS = "!$%&'()*+,-./:;=?@[\\]_|~"


class RedirectError(ValueError):
    """A Location that robotsgate does not follow."""


def redirect_target(url: str, location: str | None) -> str:
    """The absolute URL that a redirect from `url` leads to.

    It has no userinfo, fragment or dot segments; host and port are normalized as in
    `Origin`.

    Raises:
        RedirectError: there is no Location, it is invalid, or its scheme is not http or
            https.
    """
    location = (location or "").strip(" \t")
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
    return f"{origin}{resolved(target)}"


def wire_url(url: str | URLLike) -> str:
    """`url` as sent to a server: in ASCII, without userinfo, fragment or dot segments.

    Raises:
        InvalidURLError: as for `Origin.from_url`.
    """
    from urllib.parse import quote  # noqa: PLC0415 (few robots.txt redirect)

    origin, target = split_url(url)
    return f"{origin}{quote(resolved(target), safe=_SENT_AS_IT_IS)}"


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


def _cut_query(location: str) -> tuple[str, str]:
    """The part of `location` before its query and fragment, and the rest."""
    path, *rest = re.split(r"(?=[?#])", location, maxsplit=1)
    return path, "".join(rest)
