"""The Redis scripts follow the rules of `_host_record.py`, and add a queue."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate.politeness._host_record import (
    HostRecord,
    TurnEnd,
    after_end,
    after_start,
    after_time,
    forget_at,
    ready_at,
)
from robotsgate.politeness._redis_scripts import (
    END,
    LATENESS,
    START,
    TICK,
    Script,
    StartReply,
    end_arguments,
    record_in,
    start_arguments,
)

from .builders import NOW, pace

if TYPE_CHECKING:
    from robotsgate.politeness._host_record import Pace
    from tests.servers.valkey import Valkey

_NUMBERS = itertools.count()

# Time stands still within a script, so the key has exactly this long to live.
_SET_EXPIRY = "redis.call('PEXPIRE', KEYS[1], ARGV[#ARGV])\n"


class StoredHost:
    """A host's record on a server, at times that the test chooses."""

    def __init__(self, valkey: Valkey, *, tick: float = TICK) -> None:
        self._valkey = valkey
        self._tick = tick
        self.key = f"host{next(_NUMBERS)}"
        self._forget_ms = -math.inf

    def start(
        self,
        now: float,
        host_pace: Pace,
        *,
        is_robots_txt: bool = False,
        process: int = 1,
        is_remembered: bool = False,
    ) -> StartReply:
        arguments = start_arguments(
            host_pace,
            is_robots_txt=is_robots_txt,
            now=now,
            process=process,
            is_remembered=is_remembered,
        )
        reply = self._run(START, now, arguments)
        self._note_expiry(reply[3])
        return StartReply.of((reply[0], reply[1].encode(), reply[2], reply[3].encode()))

    def end(self, now: float, host_pace: Pace, **how: Any) -> HostRecord:  # noqa: ANN401 (after_end's)
        defaults = {"is_robots_txt": False, "seconds": now - how["began_at"]}
        reply = self._run(
            END, now, end_arguments(host_pace, now=now, **{**defaults, **how})
        )
        self._note_expiry(reply[0])
        recorded_at, record = record_in(reply[0].encode())
        assert recorded_at == now
        return record

    def set_clock_back(self, seconds: float) -> None:
        """As on a server: until the next script, the key lives that much longer."""
        self._forget_ms += seconds * 1_000

    def _run(self, script: Script, now: float, arguments: list[str]) -> Any:  # noqa: ANN401 (a reply)
        ttl_ms = int(max(0, self._forget_ms - now * 1_000))
        text = script.text.replace(f"TICK = {TICK!r}", f"TICK = {self._tick!r}")
        return self._valkey.ask(
            "EVAL", _SET_EXPIRY + text, 1, self.key, *arguments, ttl_ms
        )

    def _note_expiry(self, text: str) -> None:
        now_ms, ttl_ms, *_ = map(float, text.split())
        self._forget_ms = now_ms + ttl_ms


@dataclass(kw_only=True)
class HostPair:
    """A host in memory and one on a server, which get the same calls."""

    stored: StoredHost
    now: float = NOW
    pace: Pace = field(default_factory=pace)
    record: HostRecord = field(default_factory=lambda: HostRecord(pace()))
    open_requests: list[tuple[float, bool]] = field(default_factory=list)
    """When each request began, and whether it fetches a robots.txt."""

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= forget_at(self.record):
            self.record = HostRecord(self.pace)

    def start(self, *, is_robots_txt: bool) -> None:
        record, overdue = after_time(self.record, self.now)
        how: dict[str, Any] = {"pace": self.pace, "is_robots_txt": is_robots_txt}
        moment = ready_at(record, self.now, **how)
        if moment <= self.now:
            record = after_start(record, self.now, **how)
            self.open_requests.append((self.now, is_robots_txt))

        reply = self.stored.start(self.now, self.pace, is_robots_txt=is_robots_txt)

        assert reply == StartReply(
            moment <= self.now,
            moment - self.now,
            overdue,
            self.now,
            record,
        )
        self.record = record

    def end(self, which: int, end: TurnEnd, retry_after: float | None = None) -> None:
        if not self.open_requests:
            return
        began_at, is_robots_txt = self.open_requests.pop(
            which % len(self.open_requests)
        )
        how: dict[str, Any] = {
            "began_at": began_at,
            "end": end,
            "is_robots_txt": is_robots_txt,
            "retry_after": retry_after,
            "jitter": 1.05,
        }
        self.record = after_end(self.record, self.now, **how)

        assert self.stored.end(self.now, self.record.pace, **how) == self.record


@pytest.mark.parametrize("seed", range(5))
def test_server_and_memory_agree_on_long_histories(valkey: Valkey, seed: int) -> None:
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)
    both = HostPair(stored=StoredHost(valkey, tick=0))

    for _ in range(2_000):
        step = chance.choices(range(5), weights=[8, 6, 3, 6, 1])[0]
        if step == 0:
            both.start(is_robots_txt=chance.random() < 0.2)
        elif step == 1:
            both.end(chance.randrange(4), TurnEnd.GOOD)
        elif step == 2:
            retry_after = chance.choice([None, None, 0.0, 2.5, 30.0])
            both.end(chance.randrange(4), chance.choice(list(TurnEnd)), retry_after)
        elif step == 3:
            both.pass_time(chance.choice([0, 0.25, 1, 4, 20, 70, 4_000]))
        else:
            both.pace = pace(
                chance.choice([0.0, 0.25, 2.0, 10.0]),
                max_at_once=chance.randrange(1, 4),
                max_delay=15.0,
                max_turn_seconds=8.0,
                delay_factor=chance.choice([0.0, 0.5, 4.0]),
            )
            both.pass_time(0)


ONE = pace(2.0)


def granted(replies: list[StartReply]) -> list[bool]:
    return [reply.is_granted for reply in replies]


def test_delay_is_one_millisecond_longer_to_allow_for_rounding(
    valkey: Valkey,
) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE)
    host.end(NOW, ONE, began_at=NOW, end=TurnEnd.GOOD)

    replies = [host.start(NOW + seconds, ONE) for seconds in (2.0, 2.001)]

    assert granted(replies) == [False, True]
    assert replies[0].seconds == pytest.approx(0.001)


def test_processes_get_turns_in_order_of_arrival(
    valkey: Valkey,
) -> None:
    """Even though the first process is always the first to try again."""
    host, now, order = StoredHost(valkey), NOW, []

    for _ in range(12):
        now += 2.25
        replies = [host.start(now, ONE, process=process) for process in (1, 2, 3)]
        order += [number for number, reply in enumerate(replies) if reply.is_granted]
        host.end(now, ONE, began_at=now, end=TurnEnd.GOOD)

    assert order == [0, 1, 2] * 4


def test_process_tries_again_once_the_turns_ahead_of_it_should_be_over(
    valkey: Valkey,
) -> None:
    """Each used to try again after every delay: 365 scripts per turn with 256."""
    host = StoredHost(valkey)
    host.start(NOW, ONE, process=1)
    host.end(NOW + 1, ONE, began_at=NOW, end=TurnEnd.GOOD)

    replies = [host.start(NOW + 2, ONE, process=process) for process in range(2, 50)]

    waits = [reply.seconds for reply in replies]
    turns_of_one_second = [1.001 + 3.001 * ahead for ahead in range(20)]
    assert waits[:20] == pytest.approx(turns_of_one_second)
    assert max(waits) == pytest.approx(61.001), "processes ahead may have died"


def test_one_long_turn_does_not_make_the_others_wait_as_long(valkey: Valkey) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE, process=1)
    host.end(NOW + 120, ONE, began_at=NOW, seconds=120.0, end=TurnEnd.GOOD)

    waits = [host.start(NOW + 120, ONE, process=number).seconds for number in (2, 3)]

    assert waits == pytest.approx([2.001, 2.001 + 4.001])


def test_ready_host_is_not_reserved_for_a_process_that_tries_much_later(
    valkey: Valkey,
) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE, process=1)
    host.end(NOW + 1, ONE, began_at=NOW, end=TurnEnd.GOOD)
    for process in (2, 3):
        host.start(NOW + 2, ONE, process=process)
    host.start(NOW + 3.001, ONE, process=2)
    host.end(NOW + 3.001, ONE, began_at=NOW + 3.001, end=TurnEnd.UNUSED)

    reply = host.start(NOW + 3.001, ONE, process=4)

    assert reply.is_granted


@pytest.mark.parametrize(("processes", "most_scripts"), [(16, 4.0), (64, 5.0)])
def test_few_scripts_run_per_turn_even_with_many_processes(
    valkey: Valkey, processes: int, most_scripts: float
) -> None:
    host, scripts = StoredHost(valkey), 0
    begins: list[float] = []
    # When each process tries next, and when its turn began (0 if it has none).
    steps = [(NOW, process, 0.0) for process in range(processes)]

    while len(begins) < 3 * processes:
        now, process, began_at = heapq.heappop(steps)
        scripts += len(begins) >= processes
        if began_at:
            host.end(now, ONE, began_at=began_at, end=TurnEnd.GOOD)
            began_at, seconds = 0.0, 2.001
        elif (reply := host.start(now, ONE, process=process)).is_granted:
            begins.append(now)
            began_at, seconds = now, 0.5
        else:
            seconds = reply.seconds
        heapq.heappush(steps, (round(now + seconds + 0.001, 3), process, began_at))

    turns = 2 * processes
    assert scripts / turns <= most_scripts
    assert begins[-1] - begins[processes] < 2.55 * turns


def test_process_that_tries_again_too_late_loses_its_place(valkey: Valkey) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE, process=1)
    host.end(NOW, ONE, began_at=NOW, end=TurnEnd.GOOD)
    reply, _ = (host.start(NOW + 1, ONE, process=process) for process in (2, 3))
    in_time = NOW + 1 + reply.seconds + LATENESS - 0.01

    replies = [host.start(at, ONE, process=3) for at in (in_time, in_time + 0.01)]

    assert granted(replies) == [False, True]


def test_robots_txt_fetch_goes_ahead_of_pages_that_waited_longer(
    valkey: Valkey,
) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE, process=1)
    host.end(NOW, ONE, began_at=NOW, end=TurnEnd.GOOD)
    host.start(NOW + 1, ONE, process=2)
    host.start(NOW + 1, ONE, process=3, is_robots_txt=True)

    page = host.start(NOW + 2.001, ONE, process=2)
    fetch = host.start(NOW + 2.001, ONE, process=3, is_robots_txt=True)

    assert granted([page, fetch]) == [False, True]


def test_server_clock_set_back_does_not_block_a_host(valkey: Valkey) -> None:
    host = StoredHost(valkey)
    host.start(NOW, ONE)
    host.end(NOW, ONE, began_at=NOW, end=TurnEnd.GOOD)

    host.set_clock_back(86_400)
    replies = [host.start(NOW, ONE), host.start(NOW + 2.001, ONE)]

    assert granted(replies) == [False, True]


def test_server_drops_a_host_once_it_no_longer_matters(valkey: Valkey) -> None:
    host = StoredHost(valkey)

    host.start(NOW, ONE)

    ttl_ms = valkey.ask("PTTL", host.key)
    assert isinstance(ttl_ms, int)
    assert 3_890_000 < ttl_ms <= 3_900_000
