"""Answers from responses that somebody else fetched: what did robots.txt allow then?

Pure: no event loop, no network and no clock; a caller's function finds the responses.
"""

from robotsgate.archive._archive import RobotsArchive
from robotsgate.archive._response import ArchivedResponse

__all__ = ["ArchivedResponse", "RobotsArchive"]
