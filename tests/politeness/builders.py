"""Builds the paces and the hosts of the tests of politeness/."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from robotsgate.politeness._host_record import (
    HostRecord,
    Pace,
    TurnEnd,
    after_end,
    after_start,
    ready_at,
)

NOW = 1_000.0


def pace(delay: float = 1.0, **fields: float) -> Pace:
    """A pace of one request at a time."""
    usual: dict[str, Any] = {
        "max_at_once": 1,
        "max_delay": 3_600.0,
        "max_turn_seconds": 300.0,
    }
    return Pace(delay=delay, **(usual | fields))


@dataclass
class Host:
    """One host whose requests take no time, unless they are held."""

    record: HostRecord
    now: float = NOW

    def start(self) -> float:
        """Begin a turn as soon as one may begin; when that is."""
        self.now = max(self.now, ready_at(self.record, self.now, pace=self.record.pace))
        self.record = after_start(self.record, self.now, pace=self.record.pace)
        return self.now

    def end(self, began_at: float, end: TurnEnd = TurnEnd.GOOD, **how: float) -> None:
        """End a turn now."""
        self.record = after_end(
            self.record, self.now, began_at=began_at, end=end, **how
        )

    def ask(self, end: TurnEnd = TurnEnd.GOOD, **how: float) -> float:
        """Begin a turn and end it; seconds since what came before it."""
        before = self.now
        began_at = self.start()
        self.end(began_at, end, **how)
        return began_at - before
