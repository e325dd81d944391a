"""Politeness: when the next request to a host may start.

These modules use only the checker, the ledger and the store they are given. They must
not import `sync` or any package above it.
"""

from robotsgate.politeness._gate import HostStatus
from robotsgate.politeness._host_record import HostState, Pace, TurnEnd
from robotsgate.politeness._ledger import Grant, Ledger, LedgerStatus, LocalLedger, Wait
from robotsgate.politeness._schedule import ScheduledTurn, TurnSchedule, URLSchedule

__all__ = [
    "Grant",
    "HostState",
    "HostStatus",
    "Ledger",
    "LedgerStatus",
    "LocalLedger",
    "Pace",
    "ScheduledTurn",
    "TurnEnd",
    "TurnSchedule",
    "URLSchedule",
    "Wait",
]
