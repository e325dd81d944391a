"""Determines a URL's origin, how its path may be read, and where redirects lead.

Pure: it does not resolve names or open connections.
"""

from robotsgate.urls._url import (
    Origin,
    RedirectError,
    URLLike,
    next_hop,
    readings,
    split_url,
    wire_url,
)

__all__ = [
    "Origin",
    "RedirectError",
    "URLLike",
    "next_hop",
    "readings",
    "split_url",
    "wire_url",
]
