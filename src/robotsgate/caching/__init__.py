"""Caching: how long a robots.txt is valid, and what applies during an outage.

Pure: no network, no disk; the time is always an argument.
"""

from robotsgate.caching._codec import entry_as_dict, file_in_entry
from robotsgate.caching._freshness import freshness_lifetime, seconds_asked_for
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import (
    AccessResult,
    AddressGuard,
    AfterUnreachableLimit,
    Policy,
)
from robotsgate.caching._verdict import (
    DisallowedError,
    Reason,
    Verdict,
    date_text,
    file_of,
    printable,
    reason_text,
)

__all__ = [
    "AccessResult",
    "AddressGuard",
    "AfterUnreachableLimit",
    "DisallowedError",
    "FailureKind",
    "Policy",
    "Reason",
    "Verdict",
    "date_text",
    "entry_as_dict",
    "file_in_entry",
    "file_of",
    "freshness_lifetime",
    "printable",
    "reason_text",
    "seconds_asked_for",
]
