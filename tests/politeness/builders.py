"""Paces and hosts for the politeness tests."""

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
    defaults: dict[str, Any] = {
        "max_at_once": 1,
        "max_delay": 3_600.0,
        "max_turn_seconds": 300.0,
    }
    return Pace(delay=delay, **(defaults | fields))


@dataclass
class Host:
    """A host whose requests take no time unless `now` is moved before they end."""

    record: HostRecord
    now: float = NOW

    def start(self) -> float:
        """Begin a turn as soon as possible; return when that is."""
        self.now = max(self.now, ready_at(self.record, self.now, pace=self.record.pace))
        self.record = after_start(self.record, self.now, pace=self.record.pace)
        return self.now

    def end(
        self, began_at: float, end: TurnEnd = TurnEnd.GOOD, **details: float
    ) -> None:
        """End a turn now."""
        self.record = after_end(
            self.record, self.now, began_at=began_at, end=end, **details
        )

    def request(self, end: TurnEnd = TurnEnd.GOOD, **details: float) -> float:
        """Begin and end a turn; return how long it had to wait, in seconds."""
        before = self.now
        began_at = self.start()
        self.end(began_at, end, **details)
        return began_at - before
