"""Decides where a URL is dialled: its origin, a redirect, the class of an address.

Pure: resolves no names and opens no connections.
"""

from robotsgate.urls._origin import Origin, URLLike
from robotsgate.urls._path import without_dots

__all__ = ["Origin", "URLLike", "without_dots"]
