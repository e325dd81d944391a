"""Answers from responses that somebody else fetched: what did robots.txt allow then?

Pure: no event loop, no network and no clock; a caller's function finds the responses.
`Hops` is here for what reads responses and their redirects from files.
"""

from robotsgate.archive._archive import RobotsArchive
from robotsgate.archive._response import ArchivedResponse
from robotsgate.archive._selection import last_capture
from robotsgate.caching._hops import Hops

__all__ = ["ArchivedResponse", "Hops", "RobotsArchive", "last_capture"]
