"""Decides how long a robots.txt is kept, and what an outage means.

Pure: no network, no disk; the time is always an argument.
"""

from robotsgate.caching._outcome import AccessResult, FailureKind
from robotsgate.caching._policy import AddressGuard, AfterUnreachableLimit, Policy
from robotsgate.caching._verdict import Reason, Verdict

__all__ = [
    "AccessResult",
    "AddressGuard",
    "AfterUnreachableLimit",
    "FailureKind",
    "Policy",
    "Reason",
    "Verdict",
]
