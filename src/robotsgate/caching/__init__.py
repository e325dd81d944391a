"""Decides how long a robots.txt is kept, and what an outage means.

Pure: no network, no disk; the time is always an argument.
"""

from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AddressGuard, AfterStaleWindow, Policy

__all__ = ["AddressGuard", "AfterStaleWindow", "Copy", "Entry", "FailureKind", "Policy"]
