"""Keeps what one process of a fleet knows about hosts; decides while it is alone.

Must never hold a rule of its own: those are in `_schedule.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from robotsgate.politeness._ledger import LocalLedger
from robotsgate.politeness._schedule import (
    HostRecord,
    after_start,
    delay_in_force,
    forget_at,
    ready_at,
)

if TYPE_CHECKING:
    from robotsgate._clock import Clock
    from robotsgate.politeness._schedule import Pace


class FleetMemory(LocalLedger):
    """A ledger of the turns of this process, with what the fleet says of the hosts.

    Attributes:
        is_alone: whether this process does not reach the shared server. It then takes
            only its share of each host.
    """

    def __init__(self, *, workers: int, max_hosts: int, clock: Clock) -> None:
        """Know no host, and do not be alone."""
        super().__init__(max_hosts=max_hosts, clock=clock)
        self._workers = workers
        self.is_alone = False

    def least_wait(
        self, host: str, pace: Pace, *, is_robots_txt: bool
    ) -> tuple[float, bool]:
        """The wait for a request to `host` that is needed whatever the fleet says.

        Returns:
            Seconds, 0 or less if there is no wait, and whether this process remembers
            a request to the host.
        """
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        # Another process may end an incident, but cannot shorten a block or a delay.
        record = record._replace(back_off=0.0, slowed_delay=0.0)
        moment = ready_at(record, now, pace=pace, is_robots_txt=is_robots_txt)
        return moment - now, now < forget_at(record)

    def learn(self, host: str, fleet_now: float, record: HostRecord) -> None:
        """Take over what the fleet knows of `host`, but not who has which turn.

        Args:
            host: the host of `record`.
            fleet_now: the time now by the clock of `record`, seconds.
            record: what the fleet knows.
        """
        now = self._clock.monotonic()
        lag = now - fleet_now
        known, _ = self._record(host, record.pace, now)
        learnt = HostRecord(
            record.pace,
            max(known.ended_at, record.ended_at + lag),
            known.turns,
            known.fetch_began_at,
            record.incident_at + lag,
            max(known.blocked_until, record.blocked_until + lag),
            record.back_off,
            record.slowed_delay,
        )
        self._keep(host, learnt, now)

    def begin(self, host: str, pace: Pace, *, is_robots_txt: bool) -> float:
        """Record a request that the fleet lets this process begin; the time now."""
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        record = after_start(record, now, pace=pace, is_robots_txt=is_robots_txt)
        self._keep(host, record, now)
        return now

    def _own_pace(self, record: HostRecord, pace: Pace) -> Pace:
        if not self.is_alone:
            return pace
        return replace(
            pace,
            delay=self._workers * delay_in_force(record, pace),
            max_at_once=max(1, pace.max_at_once // self._workers),
        )
