"""The counters of a gate, and how a host stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from robotsgate.politeness._schedule import HostState


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStats(JSONValue):
    """What a gate has done since it was made; a snapshot.

    Attributes:
        turns: turns that have begun.
        incidents: turns that ended with 429, 503 or a failure.
        disallowed: turns that robots.txt refused.
        not_in_time: turns that would have come after the patience of their callers.
        overdue: turns that count as ended because they were too old.
        waiting: callers and fetches of a robots.txt that wait for a host now.
        under_way: turns that have not ended yet.
        event_failures: calls of `on_event` that raised.
    """

    turns: int = 0
    incidents: int = 0
    disallowed: int = 0
    not_in_time: int = 0
    overdue: int = 0
    waiting: int = 0
    under_way: int = 0
    event_failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus(JSONValue):
    """How a host stands, as far as this process knows.

    Attributes:
        host: its name.
        state: what it has been through.
        delay: seconds between two requests, with what is left of incidents.
        waiting: how many callers and fetches of a robots.txt wait for it.
        under_way: how many turns and fetches of a robots.txt have not ended.
        ready_at: the earliest time at which a new caller would have a turn, epoch
            seconds.
    """

    host: str
    state: HostState
    delay: float
    waiting: int
    under_way: int
    ready_at: float
