"""Finds where a redirect leads (RFC 9110 §10.2.2); pure.

httpx's own redirects are not used: it reads their bodies whole, raises on some
Locations, and hands out other schemes.
"""

from __future__ import annotations

import re
from urllib.parse import urljoin

from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt._origin import split_url

__all__ = ["RedirectError", "redirect_target"]

_MAX_LOCATION_LENGTH = 16_384

_SCHEMES = frozenset({"http", "https"})


class RedirectError(ValueError):
    """A Location that leads nowhere robotsgate would follow."""


def redirect_target(url: str, location: str | None) -> str:
    """The absolute URL that a redirect from `url` leads to.

    Without userinfo and fragment, host and port in the form of an `Origin`.

    Raises:
        RedirectError: there is no Location, it cannot be read, or it leads to
            another scheme than http and https.
    """
    location = (location or "").strip()
    if not location:
        message = "a redirect without a Location"
        raise RedirectError(message)
    if len(location) > _MAX_LOCATION_LENGTH:
        message = f"a redirect to a Location of {len(location)} characters"
        raise RedirectError(message)
    if not location.isprintable():
        message = "a redirect to a Location with control characters"
        raise RedirectError(message)
    path, *query = re.split(r"(?=[?#])", location, maxsplit=1)
    try:
        origin, target = split_url(
            urljoin(url, "".join((path.replace("\\", "/"), *query)))
        )
    except InvalidURLError as error:
        message = f"a redirect to an unusable Location: {error}"
        raise RedirectError(message) from error
    except ValueError as error:
        message = "a redirect to an unusable Location"
        raise RedirectError(message) from error
    if origin.scheme not in _SCHEMES:
        message = f"a redirect to the scheme {origin.scheme!r}"
        raise RedirectError(message)
    return f"{origin}{target}"
