"""Decides where a URL is dialled, and in how many ways its path may be read.

Pure: resolves no names and opens no connections.
"""

from robotsgate.urls._origin import Origin, URLLike, split_url
from robotsgate.urls._path import readings

__all__ = ["Origin", "URLLike", "readings", "split_url"]
