"""Determines a URL's origin, how its path may be read, and where redirects lead.

Pure: it does not resolve names or open connections.
"""

from robotsgate.urls._origin import Origin, URLLike, split_url
from robotsgate.urls._path import readings
from robotsgate.urls._redirect import RedirectError, next_hop, wire_url

__all__ = [
    "Origin",
    "RedirectError",
    "URLLike",
    "next_hop",
    "readings",
    "split_url",
    "wire_url",
]
