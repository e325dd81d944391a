"""Runs a list of steps on a real checker and judges each one."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel
from trio._core import _run as trio_run

from robotsgate import AccessResult, Policy, Reason, RobotsChecker
from robotsgate.caching._entry import current_until_for, entry_after, key_of, unpack
from robotsgate.caching._policy import terms_of
from robotsgate.caching._verdict import Effect, in_force
from robotsgate.events import RobotsTxtFetched
from robotsgate.testing import ManualClock

from .network import PATHS, RULEBOOKS, SimulatedNetwork
from .scenario import (
    HOSTS,
    Action,
    Advance,
    AdvanceToTransition,
    Calls,
    Change,
    Restart,
    scenario,
)
from .store import SlowStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate import Verdict
    from robotsgate.caching._entry import Entry
    from robotsgate.events import CheckerEvent

    from .network import Attempt
    from .scenario import Caller, Step

STEPS = 150
"""The number of steps in a simulation."""

_AGENT = "ExampleBot"

# The clock stays within the range of HTTP dates.
_LATEST = 7_000_000_000.0
_START = 1_800_000_000.0

# No crawler makes two calls at the same instant. A power of two keeps sums exact.
_BETWEEN_STEPS = 2**-10
_ROUNDING_ERROR = 1e-3

# In real seconds; a step takes about a millisecond.
STEP_TIMEOUT = 5.0


class SimulationError(AssertionError):
    """A step led to complaints."""

    def __init__(self, complaints: Sequence[str], log: Sequence[str]) -> None:
        super().__init__("\n".join([*log, *complaints]))


class Decision(NamedTuple):
    """The parts of a verdict that the judge checks."""

    allowed: bool
    reason: Reason
    is_stale: bool
    access: AccessResult


Observed = Decision | bool
"""A verdict, or only whether a URL may be fetched."""


@dataclass
class _Origin:
    """The state of one origin.

    Attributes:
        entry: what the checker knows.
        seen: the entries that may decide in this step.
        next_fetch_at: when this checker may fetch again.
        in_memory: whether this checker fetched it, and nothing forgot it since.
        attempt: the latest attempt.
        forced: how many requested refreshes have not been made yet.
    """

    entry: Entry | None = None
    seen: list[Entry] = field(default_factory=list)
    next_fetch_at: float = -math.inf
    in_memory: bool = False
    attempt: Attempt | None = None
    forced: int = 0


class Judge:
    """Decides what the checker may do and answer.

    There is one entry that the checker can know, and the rules of `robotsgate.caching`
    say what follows from it.

    Attributes:
        complaints: what was wrong in this step.
        seen: how often each event happened.
    """

    def __init__(self, clock: ManualClock, store: SlowStore) -> None:
        self.complaints: list[str] = []
        self.seen: Counter[str] = Counter()
        self._clock = clock
        self._store = store
        self.origins = {host: _Origin() for host in HOSTS}
        self._stored: dict[tuple[str, str], Entry | None] = {}
        self.checker = Restart(Policy())

    @property
    def policy(self) -> Policy:
        """The current checker's policy."""
        return self.checker.policy

    @property
    def may_evict(self) -> bool:
        """Whether the checker may evict entries from memory."""
        return self.checker.max_origins < len(HOSTS)

    def complain(self, text: str) -> None:
        self.complaints.append(text)

    def begin_step(self) -> None:
        now = self._clock.now()
        for origin in self.origins.values():
            entry = origin.entry
            origin.seen = [entry] if entry and now < origin.next_fetch_at else []
            origin.forced = 0

    def checker_began(self, checker: Restart) -> None:
        """A new checker has an empty memory and the same store."""
        self.checker = checker
        terms = terms_of(checker.policy)
        for host, origin in self.origins.items():
            origin.entry = entry = self._stored.get((host, terms))
            origin.next_fetch_at, origin.in_memory = -math.inf, False
            if entry is not None:
                until = current_until_for(entry, self._clock.now(), None)
                origin.next_fetch_at = until

    def forgotten(self, host: str) -> None:
        """Note a call of `forget`."""
        origin = self.origins[host]
        self._stored[host, terms_of(self.policy)] = origin.entry = None
        origin.next_fetch_at, origin.in_memory = -math.inf, False

    def transitions(self, host: str) -> list[float]:
        """The times at which the state of `host` changes."""
        now, entry = self._clock.now(), self.origins[host].entry
        if entry is None:
            return []
        until = in_force(entry, now=now, policy=self.policy).until
        return [time for time in (entry.next_fetch_at, until) if now < time < math.inf]

    # --- fetches --------------------------------------------------------------------

    def attempt_began(self, attempt: Attempt) -> None:
        origin = self.origins[attempt.host]
        origin.attempt = attempt
        if attempt.host in dict(self.checker.overrides):
            self.complain(f"{attempt.host} was fetched despite its override")
        if self._clock.now() < origin.next_fetch_at:
            if origin.forced <= 0:
                self.complain(f"{attempt.host} was fetched too early")
            origin.forced -= 1

    def event_received(self, event: CheckerEvent) -> None:
        assert isinstance(event, RobotsTxtFetched)
        host = event.origin.removeprefix("https://")
        origin = self.origins[host]
        assert origin.attempt is not None
        origin.attempt.is_over = True
        origin.next_fetch_at, origin.in_memory = event.next_fetch_at, True
        self.seen[f"access {event.access.value}"] += 1
        self._judge_fetch(host, origin, origin.attempt, event)

    def _judge_fetch(
        self, host: str, origin: _Origin, attempt: Attempt, event: RobotsTxtFetched
    ) -> None:
        last = origin.entry.answer if origin.entry else None
        entry = entry_after(
            origin.entry,
            attempt.outcome(self.policy),
            origin=event.origin,
            began_at=max(attempt.began_at, last.answered_at if last else -math.inf),
            now=self._clock.now(),
            policy=self.policy,
        )
        is_due = abs(entry.next_fetch_at - event.next_fetch_at) < _ROUNDING_ERROR
        if event.access is not entry.access or not is_due:
            self.complain(f"{host} led to {event}; expected {entry}")
        terms = terms_of(self.policy)
        if key_of(event.origin, terms) not in self._store.data:
            self.complain(f"the fetch of {host} was not stored")
        self._stored[host, terms] = origin.entry = entry
        origin.seen.append(entry)

    # --- what may be answered -------------------------------------------------------

    def judge(self, host: str, path: str, observed: Observed) -> None:
        """Complain unless something that may be known leads to `observed`."""
        if isinstance(observed, Decision):
            self.seen[f"{observed.allowed}: {observed.reason.value}"] += 1
            self.seen["stale copy"] += observed.is_stale
        body = dict(self.checker.overrides).get(host)
        if body is not None:
            permitted = {_override_decision(body, path)}
        else:
            permitted = {self._decision(one, path) for one in self.origins[host].seen}
        if observed not in permitted | {one.allowed for one in permitted}:
            self.complain(f"{host}{path}: {observed}; permitted: {permitted}")

    def _decision(self, entry: Entry, path: str) -> Decision:
        decision = in_force(entry, now=self._clock.now(), policy=self.policy)
        answer = entry.answer
        access = AccessResult.UNREACHABLE
        if not decision.is_outage and answer is not None:
            access = answer.access
        allowed, reason = decision.effect is Effect.ALLOW, decision.reason
        if path == "/robots.txt" and decision.effect is not Effect.REFUSE:
            allowed, reason = True, Reason.ROBOTS_TXT
        elif decision.effect is Effect.RULES:
            assert answer is not None
            assert answer.packed is not None
            allowed, reason = RULEBOOKS[unpack(answer.packed)][PATHS.index(path)]
        assert reason is not None
        is_stale = decision.is_outage and decision.effect is Effect.RULES
        return Decision(allowed, reason, is_stale, access)


def _override_decision(body: bytes, path: str) -> Decision:
    if path == "/robots.txt":
        allowed, reason = True, Reason.ROBOTS_TXT
    else:
        allowed, reason = RULEBOOKS[body][PATHS.index(path)][0], Reason.OVERRIDDEN
    return Decision(allowed, reason, is_stale=False, access=AccessResult.SUCCESSFUL)


class _Simulation:
    """The simulated world, with its checker and judge."""

    def __init__(self) -> None:
        self._clock = ManualClock(_START)
        self._store = SlowStore()
        self.judge = Judge(self._clock, self._store)
        self._network = SimulatedNetwork(self._clock, self.judge)
        self._checker = self._new_checker(Restart(Policy()))

    @property
    def date(self) -> str:
        """The simulated time, formatted."""
        moment = datetime.fromtimestamp(self._clock.now(), UTC)
        return f"{moment:%Y-%m-%d %H:%M:%S}"

    async def take(self, step: Step, salt: int) -> None:
        """Run `step` and judge its effects."""
        self._network.salt = salt
        self._store.begin_step(salt)
        try:
            with anyio.move_on_after(STEP_TIMEOUT) as scope:
                await self._do(step)
            if scope.cancelled_caught:
                self.judge.complain("a call hangs")
        except Exception as error:  # noqa: BLE001 (no step may raise)
            self.judge.complain(f"raised: {error!r}")
        for _ in range(1_000):  # fetches that no caller waits for
            if not self._checker.stats.fetches_under_way:
                break
            await anyio.lowlevel.checkpoint()
        else:
            self.judge.complain("a fetch never ends")
        self._check_memory()

    async def close(self) -> None:
        await self._checker.aclose()

    async def _do(self, step: Step) -> None:
        match step:
            case Advance():
                self._advance(step.seconds)
            case AdvanceToTransition():
                times = self.judge.transitions(step.host)
                if times:
                    self._advance(min(times) + step.offset - self._clock.now())
            case Change():
                self._network.answers[step.host] = step.answer
            case Calls():
                await self._make_calls(step)
            case Restart():
                await self._checker.aclose()
                self._checker = self._new_checker(step)

    def _advance(self, seconds: float) -> None:
        now = self._clock.now()
        self._clock.set(min(max(now + seconds, now), _LATEST))

    def _new_checker(self, step: Restart) -> RobotsChecker:
        self.judge.checker_began(step)
        return RobotsChecker(
            user_agent=_AGENT,
            client=self._network,
            store=self._store,
            policy=step.policy,
            max_origins=step.max_origins,
            max_concurrent_fetches=step.max_concurrent_fetches,
            clock=self._clock,
            overrides={f"https://{host}": body for host, body in step.overrides},
            on_event=self.judge.event_received,
        )

    async def _make_calls(self, step: Calls) -> None:
        self._clock.set(self._clock.now() + _BETWEEN_STEPS)
        self.judge.begin_step()
        self._network.slowness = step.slowness
        async with anyio.create_task_group() as tasks:
            for caller in step.callers:
                tasks.start_soon(self._call, caller)

    async def _call(self, caller: Caller) -> None:
        async def cancel(rounds: int) -> None:
            await _checkpoints(rounds)
            scope.cancel()

        await _checkpoints(caller.starts_after)
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                if caller.cancelled_after is not None:
                    tasks.start_soon(cancel, caller.cancelled_after)
                await self._answer(caller)
            self.judge.seen["cancelled call"] += scope.cancelled_caught

    async def _answer(self, caller: Caller) -> None:
        """Make the call of `caller` and judge the answer."""
        host, path = caller.hosts[0], caller.path
        urls = [f"https://{host}{path}" for host in caller.hosts]
        url, checker, judge = urls[0], self._checker, self.judge
        match caller.action:
            case Action.CAN_FETCH:
                judge.judge(host, path, await checker.can_fetch(_AGENT, url))
            case Action.CHECK:
                verdict = await checker.check([_AGENT], url)
                judge.judge(host, path, _decision_of(verdict))
            case Action.MANY:
                answers = await checker.can_fetch_many(f"{_AGENT}/1.0 (+x)", urls)
                for one, answer in zip(caller.hosts, answers, strict=True):
                    judge.judge(one, path, answer)
            case Action.PREFETCH:
                await checker.prefetch(urls)
            case Action.REFRESH:
                judge.origins[host].forced += 1
                await checker.refresh(url)
            case Action.FORGET:
                judge.forgotten(host)
                await checker.forget(url)
                key = key_of(f"https://{host}", terms_of(judge.policy))
                if key in self._store.data:
                    judge.complain(f"{key} was not forgotten")

    def _check_memory(self) -> None:
        """Check that what is in memory answers at once, and only that."""
        self.judge.begin_step()
        for host, origin in self.judge.origins.items():
            for path in PATHS:
                answer = self._checker.peek(_AGENT, f"https://{host}{path}")
                if answer is not None:
                    self.judge.judge(host, path, answer)
            is_current = self._clock.now() < origin.next_fetch_at
            is_kept = origin.in_memory and is_current and not self.judge.may_evict
            if is_kept and answer is None:
                self.judge.complain(f"{host} is not in memory")


def _decision_of(verdict: Verdict) -> Decision:
    return Decision(verdict.allowed, verdict.reason, verdict.is_stale, verdict.access)


async def _checkpoints(count: int) -> None:
    for _ in range(count):
        await anyio.lowlevel.checkpoint()


async def run(steps: Iterable[Step]) -> Counter[str]:
    """Simulate `steps`, whose randomness depends on their place; count the events.

    Raises:
        SimulationError: a step led to complaints.
    """
    simulation = _Simulation()
    log: list[str] = []
    for number, step in enumerate(steps):
        log.append(f"{number:4} {simulation.date}  {step}")
        await simulation.take(step, number)
        if simulation.judge.complaints:
            raise SimulationError(simulation.judge.complaints, log)
    await simulation.close()
    return simulation.judge.seen


def run_on(backend: str, steps: Iterable[Step]) -> Counter[str]:
    """`run` on "asyncio" or "trio", with the tasks in the same order each time.

    Trio runs the tasks of each batch in random order. Setting the same two internals
    as pytest-trio and Hypothesis makes the order reproducible.
    """
    logging.getLogger("robotsgate").setLevel(logging.CRITICAL)  # stores fail often
    trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True
    trio_run._r.seed(0)
    try:
        return anyio.run(run, steps, backend=backend)
    finally:
        trio_run._ALLOW_DETERMINISTIC_SCHEDULING = False
        trio_run._r.seed()
        logging.getLogger("robotsgate").setLevel(logging.NOTSET)


def failure_of(seed: int, backend: str) -> SimulationError | None:
    """The failure of `seed`, which lists the steps; `None` if it passes."""
    try:
        run_on(backend, scenario(seed, STEPS))
    except SimulationError as error:
        return error
    return None
