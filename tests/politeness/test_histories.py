"""Random histories of a host, judged only by the requests that the host sees."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    NEVER,
    HostRecord,
    Pace,
    TurnEnd,
    after_end,
    after_start,
    after_time,
    ready_at,
)

from .builders import pace

MAX_TURN_SECONDS = 8.0
MAX_DELAY = 50.0
FIRST_PACE = pace(max_delay=MAX_DELAY, max_turn_seconds=MAX_TURN_SECONDS)

# Multiples of 1/4 and their sums are exact, so gaps are compared without tolerance.
SECONDS = st.integers(0, 100).map(lambda number: number / 4)
PACES = st.builds(
    pace,
    SECONDS,
    max_at_once=st.integers(1, 3),
    max_delay=st.just(MAX_DELAY),
    max_turn_seconds=st.just(MAX_TURN_SECONDS),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.booleans()),
        st.tuples(st.just("arrive"), st.booleans()),
        st.tuples(st.just("give_up"), st.booleans()),
        st.tuples(
            st.just("end"),
            st.integers(0, 3),
            st.sampled_from(TurnEnd),
            st.none() | SECONDS,
        ),
        st.tuples(st.just("pass_time"), SECONDS),
        st.tuples(st.just("change"), PACES),
    ),
    min_size=10,
    max_size=40,
)


@dataclass
class Request:
    """One request as the host sees it."""

    began_at: float
    is_robots_txt: bool


@dataclass
class Judge:
    """Checks that what a host sees obeys the rules."""

    ended_at: float = -math.inf
    under_way: list[Request] = field(default_factory=list)
    pace: Pace = FIRST_PACE
    """At the last start."""
    incident_at: float = -math.inf
    blocked_until: float = -math.inf
    probing_delay: float | None = None
    """From an incident until the next good response."""

    def begin(self, now: float, host_pace: Pace, *, is_robots_txt: bool) -> Request:
        """Check a start."""
        self.end_overdue(now)
        last_at = max((self.ended_at, *(each.began_at for each in self.under_way)))
        assert now - last_at >= max(host_pace.delay, self.probing_delay or 0.0)
        assert now >= self.blocked_until
        assert not any(request.is_robots_txt for request in self.under_way)
        if not is_robots_txt:
            is_probing = self.probing_delay is not None
            max_at_once = 1 if is_probing else host_pace.max_at_once
            assert len(self.under_way) < max_at_once
        request = Request(now, is_robots_txt)
        self.under_way.append(request)
        self.pace = host_pace
        return request

    def end(
        self, request: Request, now: float, end: TurnEnd, retry_after: float | None
    ) -> None:
        """Record the end of a request; the host never saw an unused one."""
        if request in self.under_way:
            self.under_way.remove(request)
        if end is not TurnEnd.UNUSED:
            self.ended_at = now
        is_new = request.began_at > self.incident_at
        if end is TurnEnd.INCIDENT:
            block = FIRST_BACK_OFF if is_new else 0.0
            block = block if retry_after is None else retry_after
            self.blocked_until = max(self.blocked_until, now + block)
            if is_new:
                self.incident_at = now
                self.probing_delay = min(2 * self.pace.delay, self.pace.max_delay)
        if end is TurnEnd.GOOD and is_new:
            self.probing_delay = None

    def end_overdue(self, now: float) -> None:
        """Consider overdue requests ended."""
        for request in list(self.under_way):
            ended_at = request.began_at + MAX_TURN_SECONDS
            if ended_at <= now:
                self.under_way.remove(request)
                self.ended_at = max(self.ended_at, ended_at)


@dataclass
class Crawler:
    """Sends requests to one host as often as permitted."""

    now: float = 0.0
    pace: Pace = FIRST_PACE
    record: HostRecord = field(default_factory=lambda: HostRecord(FIRST_PACE))
    judge: Judge = field(default_factory=Judge)
    waiting: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    """How many requests for robots.txt are waiting, and how many for pages."""
    open_requests: list[Request] = field(default_factory=list)

    def arrive(self, is_robots_txt: bool) -> None:  # noqa: FBT001 (drawn)
        self.waiting[is_robots_txt] += 1
        self.pass_time(0.0)

    def give_up(self, is_robots_txt: bool) -> None:  # noqa: FBT001 (drawn)
        self.waiting[is_robots_txt] = max(0, self.waiting[is_robots_txt] - 1)

    def end(self, which: int, end: TurnEnd, retry_after: float | None) -> None:
        if not self.open_requests:
            return
        request = self.open_requests.pop(which % len(self.open_requests))
        self.judge.end(request, self.now, end, retry_after)
        self.record = after_end(
            self.record,
            self.now,
            began_at=request.began_at,
            end=end,
            is_robots_txt=request.is_robots_txt,
            retry_after=retry_after,
        )
        self.pass_time(0.0)

    def change(self, host_pace: Pace) -> None:
        self.pace = host_pace
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, and start each waiting request as soon as it may start."""
        end = self.now + seconds
        while (moment := self.next_start()) <= end:
            self.now = moment
        self.now = end

    def next_start(self) -> float:
        """Start what may start now; return when to try again, a multiple of 1/4."""
        moments = [math.inf]
        for is_robots_txt in (True, False):
            while self.waiting[is_robots_txt]:
                moment = self.start(is_robots_txt=is_robots_txt)
                if moment > self.now:
                    moments.append(math.ceil(moment * 4) / 4)
                    break
                self.waiting[is_robots_txt] -= 1
        return min(moments)

    def start(self, *, is_robots_txt: bool) -> float:
        """Start a request if it may start; return the earliest time it may."""
        self.record, _ = after_time(self.record, self.now)
        moment = ready_at(
            self.record, self.now, pace=self.pace, is_robots_txt=is_robots_txt
        )
        if moment <= self.now:
            self.record = after_start(
                self.record, self.now, pace=self.pace, is_robots_txt=is_robots_txt
            )
            self.open_requests.append(
                self.judge.begin(self.now, self.pace, is_robots_txt=is_robots_txt)
            )
        return moment


@given(steps=STEPS, are_closed=st.booleans())
def test_any_history_obeys_the_rules_and_starves_no_request(
    steps: list[tuple[str, ...]], *, are_closed: bool
) -> None:
    crawler = Crawler()

    for name, *arguments in steps:
        getattr(crawler, name)(*arguments)

    longest = MAX_DELAY + MAX_TURN_SECONDS + 1
    turns = sum(crawler.waiting.values()) + len(crawler.open_requests) + 1
    deadline = max(crawler.now, crawler.record.blocked_until) + turns * longest
    while any(crawler.waiting.values()) and crawler.now < deadline:
        while are_closed and crawler.open_requests:
            crawler.end(0, TurnEnd.GOOD, None)
        crawler.pass_time(1.0)
    assert not any(crawler.waiting.values()), "a request starves"

    crawler.now += MAX_TURN_SECONDS
    record, _ = after_time(crawler.record, crawler.now)
    assert (record.turns, record.fetch_began_at) == ((), NEVER), "a turn never ends"
