"""Applies archived robots.txt responses, for example from a web archive.

Pure: no event loop, no network and no clock; a function supplied by the caller finds
the responses. `Hops` is exported for code that reads responses and redirects from
files.
"""

from robotsgate.archive._archive import ArchivedResponse, RobotsArchive, last_capture
from robotsgate.caching._hops import Hops

__all__ = ["ArchivedResponse", "Hops", "RobotsArchive", "last_capture"]
