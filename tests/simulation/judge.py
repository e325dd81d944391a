"""Follows what happens, and says what a checker may do and answer.

For each origin it keeps a set of beliefs: all that the checker may know. While
everything works there is one; a store that failed leaves several. The judge never
looks into the checker or its entries, but for the time at which an event says that
the next attempt will come, which must be right.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from robotsgate import AccessResult, Policy, RobotsTxtFetched

from .answers import RULEBOOKS, Meaning
from .belief import beliefs_after, mixed, pause_after
from .evidence import Evidence
from .scenario import HOSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robotsgate import CheckerEvent
    from robotsgate.testing import ManualClock

    from .belief import Belief, Saying
    from .network import Attempt

__all__ = ["Judge"]

# Rounding of an epoch of 2 ** 31 seconds and a bit.
_EPSILON = 1e-3

_UNKNOWN: frozenset[Belief | None] = frozenset({None})


@dataclass
class _Origin:
    """What the judge knows about one origin.

    Attributes:
        held: what the checker may hold in memory; `None` stands for nothing.
        known: what the attempt under way may have begun from: the store's too.
        stored: what the store holds; empty where it holds nothing.
        stored_redirects: how many the policy allowed under which that was got.
        newest: what the last attempt led to.
        seen: everything that was believed since the step began.
        just_fetched: what the attempts of this step led to.
        evidence: what the origin really did.
        before: that, as it was when the step began.
        forced: how many attempts were asked for, and not made yet.
        is_refreshed: whether any was, in this step.
        is_forced: whether the attempt under way is one of those.
        attempt: the last one.
    """

    held: frozenset[Belief | None] = _UNKNOWN
    known: frozenset[Belief | None] = _UNKNOWN
    stored: frozenset[Belief] = frozenset()
    stored_redirects: int = 0
    newest: frozenset[Belief] = frozenset()
    seen: frozenset[Belief | None] = _UNKNOWN
    just_fetched: frozenset[Belief] = frozenset()
    evidence: Evidence = field(default_factory=Evidence)
    before: Evidence = field(default_factory=Evidence)
    forced: int = 0
    is_refreshed: bool = False
    is_forced: bool = False
    attempt: Attempt | None = None

    def know(self, beliefs: frozenset[Belief | None]) -> None:
        self.known = beliefs or _UNKNOWN
        self.seen |= self.known

    def hold(self, beliefs: frozenset[Belief | None]) -> None:
        self.held = beliefs or _UNKNOWN
        self.know(self.held)


@dataclass
class Judge:
    """Judges one checker after the other, on one clock.

    Attributes:
        clock: that the checkers have.
        policy: of the present checker.
        may_evict: whether the checker may let go of what it holds in memory.
        complaints: what was wrong in this step.
        fetches: how many attempts of the present checker came to an end.
        fetched: how many of each host did in this step.
        seen: how often each thing happened.
    """

    clock: ManualClock
    policy: Policy = field(default_factory=Policy)
    may_evict: bool = False
    complaints: list[str] = field(default_factory=list)
    fetches: int = 0
    fetched: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    _origins: dict[str, _Origin] = field(default_factory=dict)
    _moments: list[float] = field(default_factory=list)

    def complain(self, text: str) -> None:
        """Something is wrong."""
        self.complaints.append(text)

    # --- what the driver does -----------------------------------------------------

    def begin_step(self) -> None:
        """The checker is at rest."""
        self._moments = [self.clock.now()]
        self.fetched.clear()
        for origin in self._origins.values():
            origin.seen = origin.known = origin.held
            origin.just_fetched = frozenset()
            origin.forced = 0
            origin.is_refreshed = False
            # What a put that failed has left in the store may come back.
            origin.evidence.is_spoilt |= origin.stored not in (
                frozenset(),
                origin.newest,
            )
            origin.before = replace(origin.evidence)

    def checker_began(self, policy: Policy, *, may_evict: bool) -> None:
        """There is a new checker, which knows what the store knows."""
        self.policy = policy
        self.may_evict = may_evict
        self.fetches = 0
        for origin in self._origins.values():
            origin.hold(_UNKNOWN)

    def clock_was_set(self) -> None:
        """The clock jumped, and what is older may seem newer."""
        for host in HOSTS:
            self._of(host).evidence.is_spoilt = True

    def refresh_asked(self, host: str) -> None:
        """Somebody wants an attempt, due or not."""
        origin = self._of(host)
        origin.forced += 1
        origin.is_refreshed = True

    def forget_asked(self, host: str, *, is_alone: bool) -> None:
        """Somebody wants all to be forgotten, perhaps in the middle of an attempt."""
        origin = self._of(host)
        origin.hold(_UNKNOWN if is_alone else origin.known | origin.held | _UNKNOWN)

    def mark(self, host: str) -> Iterator[float]:
        """The times at which something changes for `host`, as far as it is known."""
        for belief in self._of(host).known:
            if belief is not None:
                yield from _turning_points(belief, self.policy)

    # --- what the network and the store tell -------------------------------------

    def time_passed(self) -> None:
        """The clock was moved, perhaps while a request was under way."""
        self._moments.append(self.clock.now())

    def attempt_began(self, attempt: Attempt) -> None:
        """A checker asks for a robots.txt; it must have a reason."""
        origin = self._of(attempt.host)
        origin.attempt = attempt
        origin.is_forced = False
        now = self.clock.now()
        if any(b is None or not b.stands_at(now, self.policy) for b in origin.known):
            return
        if origin.forced <= 0:
            known = ", ".join(map(str, origin.known))
            self.complain(
                f"{attempt.host} was asked at {now:.0f}, before its time: {known}"
            )
        origin.forced -= 1
        origin.is_forced = True
        self.seen["fetch before its time, on demand"] += 1

    def attempt_given_up(self, attempt: Attempt) -> None:
        """A checker was cancelled in the middle; somebody else may try again."""
        self.seen["fetch that was cancelled"] += 1
        origin = self._of(attempt.host)
        if origin.attempt is attempt and origin.is_forced:
            origin.forced += 1

    def event_came(self, event: CheckerEvent) -> None:
        """The checker says what it did."""
        if not isinstance(event, RobotsTxtFetched):
            self.seen[f"event {type(event).__name__}"] += 1
            return
        host = event.origin.removeprefix("https://")
        origin = self._of(host)
        attempt = origin.attempt
        if attempt is None or attempt.is_over:
            self.complain(f"a fetch of {host} ended that never began")
            return
        attempt.is_over = True
        self.fetches += 1
        self.fetched[host] += 1
        now = self.clock.now()
        beliefs = frozenset(
            after
            for belief in self._explaining(origin.known, attempt, event, now)
            for after in beliefs_after(
                belief,
                attempt,
                now=now,
                next_at=event.next_fetch_at,
                policy=self.policy,
            )
        )
        self._check_event(event, beliefs, attempt)
        if attempt.answer.meaning is Meaning.POOL:
            origin.evidence.could_not_ask(now)
        else:
            origin.evidence.heard(event.access, attempt.answer.rulebook, now)
        origin.newest = beliefs
        origin.just_fetched |= beliefs
        origin.hold(frozenset(beliefs))

    def was_kept(self, key: str) -> None:
        """The store holds the newest entry."""
        origin = self._of_key(key)
        origin.stored = origin.newest
        origin.stored_redirects = self.policy.max_redirects

    def was_given(self, key: str) -> None:
        """The checker read an entry; it takes the newer of that and its own."""
        origin = self._of_key(key)
        if not origin.stored:
            self.complain(f"the store gave an entry of {key} that it does not have")
        if self._is_of_other_terms(origin):
            self.seen["entry got under other terms"] += 1
            self.nothing_was_given(key)
            return
        own = self._mix_in_stored(origin)
        is_complete = own == origin.held and not self.may_evict
        now = self.clock.now()
        newest = max((b.age_rank(now) for b in origin.stored), default=(False, 0.0))
        if is_complete and all(b and b.age_rank(now) >= newest for b in own):
            origin.know(own)
            return
        standing = {b for b in origin.stored if b.stands_at(now, self.policy)}
        # What stands is held from now on, unless it was read to be fetched anew.
        is_used = standing == origin.stored and not origin.is_refreshed
        self.seen["entry of the store in use"] += is_used
        origin.held = (own if is_used else origin.held) | standing
        origin.know(own | origin.stored)

    def _mix_in_stored(self, origin: _Origin) -> frozenset[Belief]:
        """What the checker holds, and may hold now that it has read the store."""
        now = self.clock.now()
        for new in origin.held - _UNKNOWN:
            if new is None:
                continue
            for old in origin.stored:
                for belief in mixed(new, old, now, self.policy):
                    self.seen["copy that a failure did not know of"] += 1
                    origin.held |= {belief}
                    if new in origin.newest:
                        origin.newest |= {belief}
        return frozenset(belief for belief in origin.held if belief is not None)

    def nothing_was_given(self, key: str) -> None:
        """The checker has only what it holds in memory, if it still does."""
        origin = self._of_key(key)
        origin.know(origin.held | _UNKNOWN if self.may_evict else origin.held)

    def was_dropped(self, key: str) -> None:
        """The store holds nothing any more."""
        self._of_key(key).stored = frozenset()

    # --- what may be answered -----------------------------------------------------

    def judge_verdict(self, host: str, path: str, said: Saying) -> None:
        """Complain unless something that may be believed leads to `said`."""
        permitted = self._permitted(host, path)
        self.seen[f"{'yes' if said.allowed else 'no'}: {said.reason.value}"] += 1
        self.seen["verdict by a stale copy"] += said.is_stale
        if said not in permitted:
            self._complain_of(host, path, said, permitted)
        is_stale = said.is_stale
        if is_stale and not self._is_evident(host, Evidence.may_be_stale):
            self._complain_of(host, path, said, "no copy beyond its window")
        self._check_safety(host, path, said.allowed)

    def judge_answer(
        self, host: str, path: str, answer: object, *, how: str, now_only: bool = False
    ) -> None:
        """Complain unless something that may be believed leads to `answer`."""
        permitted = self._permitted(host, path, now_only=now_only)
        if answer not in {said.allowed for said in permitted}:
            self._complain_of(host, path, f"{how} {answer}", permitted)
        self._check_safety(host, path, answer)

    def judge_delay(self, host: str, delay: float | None) -> None:
        """Complain unless a file that may be in force has this crawl-delay."""
        delays = {
            None if name is None else RULEBOOKS[name].crawl_delay
            for name in self._rulebooks(host)
        }
        if delay not in delays:
            self._complain_of(host, "", f"a crawl-delay of {delay}", delays)

    def judge_file(self, host: str, *, is_there: bool) -> None:
        """Complain unless there may be a file in force, or may be none."""
        permitted = {name is not None for name in self._rulebooks(host)}
        if is_there not in permitted:
            self._complain_of(host, "", f"a file in force: {is_there}", permitted)

    def is_sure(self, host: str) -> bool:
        """Whether the checker must have an answer in memory, after a question."""
        now = self.clock.now()
        known = self._of(host).held
        return not self.may_evict and all(
            b is not None and b.stands_at(now, self.policy) for b in known
        )

    def judge_refresh(self, host: str) -> None:
        """Complain unless `host` was fetched just now, for this caller or another."""
        if not self.fetched[host]:
            self.complain(f"{host} was not fetched, but the refresh is over")

    def judge_known(self, host: str) -> None:
        """Complain unless `host` is as well known as if somebody had asked."""
        origin = self._of(host)
        if not any(self._in_use(origin, origin.held, self._moments)):
            self._complain_of(host, "", "an end of prefetch", "something in use")

    def judge_store(self, host: str, *, is_forgotten: bool) -> None:
        """Complain unless a store that works holds the newest, or nothing."""
        origin = self._of(host)
        expected = frozenset() if is_forgotten else origin.newest
        if not is_forgotten and self._is_of_other_terms(origin):
            # A failure does not replace what another policy has brought.
            is_failure = {AccessResult.UNREACHABLE} == {b.access for b in origin.newest}
            if self.fetched[host] and not is_failure:
                self._complain_of(host, "", "what is stored", expected)
        elif (is_forgotten or self.fetched[host]) and origin.stored != expected:
            self._complain_of(host, "", "what is stored", expected)

    def _is_of_other_terms(self, origin: _Origin) -> bool:
        """Whether what is stored must not be used by this checker."""
        return bool(origin.stored) and (
            origin.stored_redirects != self.policy.max_redirects
        )

    @property
    def is_one_fetch_enough(self) -> bool:
        """Whether what was fetched answers more than the callers that waited."""
        policy = self.policy
        return (
            not self.may_evict and min(policy.default_lifetime, policy.min_lifetime) > 0
        )

    def _permitted(
        self, host: str, path: str, *, now_only: bool = False
    ) -> set[Saying]:
        origin = self._of(host)
        if now_only:
            moments, beliefs = [self.clock.now()], origin.held
        else:
            moments, beliefs = self._moments, origin.seen
        return {
            belief.saying(path, now, self.policy)
            for belief, now in self._in_use(origin, beliefs, moments)
            if not now_only or belief.stands_at(now, self.policy)
        }

    def _check_safety(self, host: str, path: str, answer: object) -> None:
        """Never "yes" where the last known rules say "no", unless it is time."""
        if answer is not True or path == "/robots.txt":
            return
        if not self._is_evident(host, partial(Evidence.may_allow, path=path)):
            self._complain_of(host, path, "yes", self._of(host).evidence)

    def _is_evident(self, host: str, question: Callable[..., bool]) -> bool:
        """Whether the answer is yes at any moment of this step."""
        origin = self._of(host)
        return any(
            question(evidence, now=now, policy=self.policy)
            for evidence in (origin.before, origin.evidence)
            for now in self._moments
        )

    def _rulebooks(self, host: str) -> set[str | None]:
        origin = self._of(host)
        return {
            belief.rules_in_force(now, self.policy)
            for belief, now in self._in_use(origin, origin.seen, self._moments)
        }

    def _in_use(
        self,
        origin: _Origin,
        beliefs: frozenset[Belief | None],
        moments: list[float],
    ) -> Iterator[tuple[Belief, float]]:
        """What may be answered from, and when; once, if it is of this very moment."""
        for belief in beliefs:
            if belief is None:
                continue
            for now in moments:
                is_new = belief in origin.just_fetched and now == belief.checked_at
                if is_new or belief.stands_at(now, self.policy):
                    yield belief, now

    # --- the rest -----------------------------------------------------------------

    def _explaining(
        self,
        known: frozenset[Belief | None],
        attempt: Attempt,
        event: RobotsTxtFetched,
        now: float,
    ) -> frozenset[Belief | None]:
        """Those of `known` that lead to the time at which the next attempt will come.

        The event is told the time, because retries are spread; that the checker
        keeps to it is seen by its requests.
        """
        pauses = {
            belief: pause_after(belief, attempt, now=now, policy=self.policy)
            for belief in known
        }
        pause = event.next_fetch_at - now
        explaining = frozenset(
            belief
            for belief, (low, high) in pauses.items()
            if low - _EPSILON <= pause <= high + _EPSILON
        )
        if not explaining:
            self.complain(
                f"{attempt.host} ({attempt.answer}) is left alone for {pause:g} s,"
                f" and not for one of {list(pauses.values())}"
            )
        return explaining or known

    def _check_event(
        self,
        event: RobotsTxtFetched,
        beliefs: frozenset[Belief],
        attempt: Attempt,
    ) -> None:
        """All beliefs agree on what the answer was."""
        belief = next(iter(beliefs))
        self.seen[f"answer {belief.meaning.value}"] += 1
        self.seen[f"access {belief.access.value}"] += 1
        told = (event.access, event.status, event.redirects)
        hops = min(attempt.requests - 1, self.policy.max_redirects)
        if belief.meaning is Meaning.REFUSED:
            hops += 1  # one more was followed, as far as to its address
        expected = (belief.access, belief.status, hops)
        if told != expected:
            self.complain(f"{attempt.host} came to {told}, and not to {expected}")
        if event.access is AccessResult.SUCCESSFUL and event.error is not None:
            self.complain(f"{attempt.host} succeeded with the error {event.error}")

    def _complain_of(
        self, host: str, path: str, said: object, permitted: object
    ) -> None:
        known = "; ".join(map(str, self._of(host).seen))
        self.complain(
            f"{host}{path}: {said}\n    permitted: {permitted}"
            f"\n    moments: {self._moments}\n    beliefs: {known}"
        )

    def _of(self, host: str) -> _Origin:
        return self._origins.setdefault(host, _Origin())

    def _of_key(self, key: str) -> _Origin:
        return self._of(key.removeprefix("https://"))


def _turning_points(belief: Belief, policy: Policy) -> Iterator[float]:
    yield belief.next_at
    yield belief.kept_until
    if belief.rulebook is not None:
        yield belief.rules_fresh_until
    if belief.since is not None:
        yield belief.since + policy.outage_grace
        yield belief.since + policy.stale_window
