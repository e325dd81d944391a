"""Runs a list of steps on a real checker and judges each one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from robotsgate import Policy, RobotsChecker
from robotsgate.caching._entry import key_of
from robotsgate.caching._policy import terms_of
from robotsgate.testing import ManualClock

from .answers import RULEBOOKS
from .judge import Decision, Judge
from .network import SimulatedNetwork
from .scenario import (
    HOSTS,
    PATHS,
    Action,
    Advance,
    AdvanceToTransition,
    Calls,
    Change,
    Jump,
    LoseEntry,
    Restart,
    SetMood,
    scenario,
)
from .store import Mood, UnreliableStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate import Verdict

    from .scenario import Caller, Step

STEPS = 150
"""The number of steps in a simulation."""

AGENT = "ExampleBot"
DAY = 86_400.0

# The clock stays within the range of HTTP dates.
_EARLIEST = 700_000_000.0
_LATEST = 7_000_000_000.0
_START = 1_800_000_000.0

# No crawler makes two calls at the same instant. If one did, an answer could be dated
# marginally later than a fetch that has not begun yet. A power of two keeps sums exact.
_BETWEEN_STEPS = 2**-10

# Transitions further ahead are ignored.
_MAX_WAIT = 400 * DAY

# In real seconds; a step takes about a millisecond.
STEP_TIMEOUT = 20.0


class SimulationError(AssertionError):
    """A step led to complaints."""

    def __init__(
        self, number: int, complaints: Sequence[str], log: Sequence[str]
    ) -> None:
        self.number = number
        self.complaints = tuple(complaints)
        self.log = tuple(log)
        super().__init__("\n".join(self.complaints))


@dataclass(kw_only=True)
class Report:
    """Totals over the simulated steps."""

    days: float = 0.0
    calls: int = 0
    cancelled: int = 0
    gets: int = 0
    attempts: int = 0
    store_failures: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        """Add `other` to the totals."""
        self.days += other.days
        self.calls += other.calls
        self.cancelled += other.cancelled
        self.gets += other.gets
        self.attempts += other.attempts
        self.store_failures += other.store_failures
        self.seen += other.seen

    def __str__(self) -> str:
        return (
            f"{self.days:,.0f} days, {self.calls:,} calls"
            f" ({self.cancelled:,} cancelled), {self.attempts:,} fetches,"
            f" {self.gets:,} GETs, {self.store_failures:,} store failures"
        )


async def run_seed(seed: int) -> Report:
    """Simulate `seed`.

    Raises:
        SimulationError: a step led to complaints.
    """
    return await run(scenario(seed, STEPS))


async def run(steps: Iterable[tuple[int, Step]]) -> Report:
    """Simulate `steps`, each with the salt for its randomness.

    Raises:
        SimulationError: a step led to complaints.
    """
    simulation = _Simulation()
    log: list[str] = []
    for number, (salt, step) in enumerate(steps):
        log.append(f"{salt:4} {simulation.date}  {step}")
        await simulation.take(step, salt)
        if simulation.judge.complaints:
            raise SimulationError(number, simulation.judge.complaints, log)
    await simulation.end()
    return simulation.report


class _Simulation:
    """The simulated world, with its checker and judge."""

    def __init__(self) -> None:
        self.report = Report()
        self._clock = ManualClock(_START)
        self.judge = Judge(self._clock)
        self._network = SimulatedNetwork(self._clock, self.judge)
        self._store = UnreliableStore(self.judge)
        self._checker = self._new_checker(Restart(name="default", policy=Policy()))

    @property
    def date(self) -> str:
        """The simulated time, formatted."""
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S}"

    async def take(self, step: Step, salt: int) -> None:
        """Run `step` and judge its effects."""
        self.judge.begin_step()
        self._network.salt = salt
        self._store.begin_step(salt)
        self.report.seen[f"step {type(step).__name__}"] += 1
        try:
            with anyio.move_on_after(STEP_TIMEOUT) as scope:
                await self._do(step)
            if scope.cancelled_caught:
                self.judge.complain("a call hangs")
        except Exception as error:  # noqa: BLE001 (no step may raise)
            self.judge.complain(f"raised: {error!r}")
        await self._settle()
        self._check_idle()

    async def _settle(self) -> None:
        """Let fetches that no caller waits for finish."""
        for _ in range(1_000):
            if not self._checker.stats.fetches_under_way:
                return
            await anyio.lowlevel.checkpoint()

    async def end(self) -> None:
        """Close the checker and complete the report."""
        await self._close_checker()
        self.report.gets = self._network.gets
        self.report.attempts = self._network.gets - self._network.redirected
        self.report.store_failures = self._store.failures
        self.report.seen += self.judge.seen

    async def _do(self, step: Step) -> None:
        match step:
            case Advance():
                self._advance(step.seconds)
            case AdvanceToTransition():
                self._advance_to_transition(step)
            case Jump():
                self._set_clock(self._clock.now() + step.seconds)
            case Change():
                self._network.answer_with(step.host, step.answer)
            case Calls():
                await self._make_calls(step)
            case Restart():
                await self._close_checker()
                self._checker = self._new_checker(step)
            case SetMood():
                self.report.seen[f"store {step.mood.value}"] += 1
                self._store.mood = step.mood
            case LoseEntry():
                self._store.lose(f"https://{step.host}")

    # --- the clock ------------------------------------------------------------------

    def _advance(self, seconds: float) -> None:
        self.report.days += seconds / DAY
        self._set_clock(self._clock.now() + seconds)

    def _advance_to_transition(self, step: AdvanceToTransition) -> None:
        now = self._clock.now()
        transitions = sorted(
            {
                transition + step.offset
                for transition in self.judge.transitions(step.host)
                if 0 < transition + step.offset - now < _MAX_WAIT
            }
        )
        if transitions:
            self._advance(transitions[step.number % len(transitions)] - now)

    def _set_clock(self, now: float) -> None:
        self._clock.set(min(max(now, _EARLIEST), _LATEST))
        self.judge.time_passed()

    # --- the checker ----------------------------------------------------------------

    async def _close_checker(self) -> None:
        self.report.seen["lookup that joined a fetch"] += self._checker.stats.joined
        await self._checker.aclose()

    def _new_checker(self, step: Restart) -> RobotsChecker:
        self.report.seen[f"policy {step.name}"] += 1
        overrides = dict(step.overrides)
        self.judge.checker_began(
            step.policy, may_evict=step.max_origins < len(HOSTS), overrides=overrides
        )
        return RobotsChecker(
            user_agent=AGENT,
            client=self._network,
            store=self._store,
            policy=step.policy,
            max_origins=step.max_origins,
            max_concurrent_fetches=step.max_concurrent_fetches,
            clock=self._clock,
            overrides={
                f"https://{host}": RULEBOOKS[name].body
                for host, name in overrides.items()
            },
            on_event=self.judge.event_received,
        )

    async def _make_calls(self, step: Calls) -> None:
        self._clock.set(self._clock.now() + _BETWEEN_STEPS)
        self.judge.time_passed()
        self._network.slowness = step.slowness
        self.report.calls += len(step.callers)
        if len(step.callers) == 1:
            await self._answer(step.callers[0], is_alone=True)
            self._check_forgotten(step.callers[0])
        else:
            answered = await self._call_concurrently(step.callers)
            self._check_answered(step.callers, answered)
        self._network.slowness = 0.0
        self._check_schedule(step)

    async def _call_concurrently(self, callers: Sequence[Caller]) -> set[int]:
        """Run `callers` concurrently; return the numbers of those answered."""
        answered: set[int] = set()

        async def ask(number: int, caller: Caller) -> None:
            await _checkpoints(caller.starts_after)
            with anyio.CancelScope() as scope:
                if caller.cancelled_after is not None:
                    tasks.start_soon(cancel, scope, caller.cancelled_after)
                await self._answer(caller, is_alone=False)
                answered.add(number)
            self.report.cancelled += scope.cancelled_caught

        async def cancel(scope: anyio.CancelScope, rounds: int) -> None:
            await _checkpoints(rounds)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            for number, caller in enumerate(callers):
                tasks.start_soon(ask, number, caller)
        return answered

    def _check_answered(self, callers: Sequence[Caller], answered: set[int]) -> None:
        for number, caller in enumerate(callers):
            if number not in answered and caller.cancelled_after is None:
                self.judge.complain(f"never answered: {caller}")

    async def _answer(self, caller: Caller, *, is_alone: bool) -> None:
        """Make the call of `caller` and judge the answer."""
        host, path = caller.hosts[0], caller.path
        urls = [f"https://{host}{path}" for host in caller.hosts]
        url, checker, judge = urls[0], self._checker, self.judge
        self.report.seen[f"call of {caller.action.value}"] += 1
        match caller.action:
            case Action.CAN_FETCH:
                answer = await checker.can_fetch(AGENT, url)
                judge.judge_answer(host, path, answer, how="can_fetch")
            case Action.CHECK:
                self._judge_verdict(host, path, await checker.check([AGENT], url))
            case Action.CHECK_TWICE:
                await self._check_twice(host, path, is_alone=is_alone)
            case Action.MANY:
                answers = await checker.can_fetch_many(f"{AGENT}/1.0 (+x)", urls)
                for one, answer in zip(caller.hosts, answers, strict=True):
                    judge.judge_answer(one, path, answer, how="can_fetch_many")
            case Action.PEEK:
                self._peek(host, path)
            case Action.CRAWL_DELAY:
                delay = await checker.crawl_delay(AGENT, url)
                judge.judge_rules(host, "crawl-delay", delay)
            case Action.ROBOTS_TXT:
                file = await checker.robots_txt(url)
                judge.judge_rules(host, "file", file is not None)
            case _:
                await self._act(caller, urls, is_alone=is_alone)

    async def _act(
        self, caller: Caller, urls: Sequence[str], *, is_alone: bool
    ) -> None:
        """Call a method that returns nothing."""
        judge, host = self.judge, caller.hosts[0]
        match caller.action:
            case Action.PREFETCH:
                await self._checker.prefetch(urls)
                for one in caller.hosts if is_alone else ():
                    judge.judge_prefetched(one)
            case Action.REFRESH:
                judge.refresh_requested(host)
                await self._checker.refresh(urls[0])
                if not judge.fetched[host] and host not in judge.overrides:
                    judge.complain(f"{host} was not refreshed")
            case _:
                judge.forget_requested(host, is_alone=is_alone)
                await self._checker.forget(urls[0])

    async def _check_twice(self, host: str, path: str, *, is_alone: bool) -> None:
        """Check that the methods agree, and that the answer is then in memory."""
        url = f"https://{host}{path}"
        verdict = await self._checker.check(AGENT, url)
        self._judge_verdict(host, path, verdict)
        fetches = self.judge.fetches
        answer = await self._checker.can_fetch(AGENT, url)
        self.judge.judge_answer(host, path, answer, how="can_fetch")
        if not is_alone or fetches != self.judge.fetches:
            return
        if answer is not verdict.allowed:
            self.judge.complain(f"{url}: can_fetch {answer}, but check {verdict}")
        peeked = self._checker.peek(AGENT, url)
        if peeked is not answer and (
            peeked is not None or self.judge.must_be_cached(host)
        ):
            self.judge.complain(f"{url}: can_fetch {answer}, but peek {peeked}")

    def _judge_verdict(self, host: str, path: str, verdict: Verdict) -> None:
        decision = Decision(
            allowed=verdict.allowed,
            reason=verdict.reason,
            is_stale=verdict.is_stale,
            access=verdict.access,
            fresh_until=verdict.fresh_until,
        )
        self.judge.judge_verdict(host, path, decision)
        if verdict.origin != f"https://{host}":
            self.judge.complain(f"the verdict for {host} names {verdict.origin}")

    def _peek(self, host: str, path: str) -> None:
        answer = self._checker.peek(AGENT, f"https://{host}{path}")
        if answer is not None:
            self.judge.judge_answer(host, path, answer, how="peek", now_only=True)

    def _check_idle(self) -> None:
        """Check what must be true between calls."""
        stats = self._checker.stats
        if stats.fetches_under_way:
            self.judge.complain(f"{stats.fetches_under_way} fetches never end")
        if stats.fetches != self.judge.fetches:
            self.judge.complain(
                f"{stats.fetches} fetches are counted instead of {self.judge.fetches}"
            )
        for host in HOSTS:
            for path in PATHS:
                self._peek(host, path)

    def _check_forgotten(self, caller: Caller) -> None:
        """Check that a working store has no entry after a lone call of `forget`."""
        store_works = self._store.mood in {Mood.WELL, Mood.SLOW}
        if caller.action is Action.FORGET and store_works:
            key = key_of(f"https://{caller.hosts[0]}", terms_of(self.judge.policy))
            if self._store.has(key):
                self.judge.complain(f"{key} was not forgotten")

    def _check_schedule(self, step: Calls) -> None:
        """Check that callers share fetches while the clock stands still."""
        reasons = Counter(
            host
            for caller in step.callers
            if caller.action in {Action.REFRESH, Action.FORGET}
            for host in caller.hosts
        )
        if step.slowness or not self.judge.is_one_fetch_enough:
            return
        for host, fetches in self.judge.fetched.items():
            if fetches > 1 + reasons[host]:
                self.judge.complain(f"{host} was fetched {fetches} times at once")


async def _checkpoints(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()
