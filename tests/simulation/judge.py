"""Follows the simulation and decides what the checker may do and answer.

For each origin it keeps the histories that could explain what the checker knows, using
the model in `tests.caching.judge`. While everything works there is one; after a store
failure there may be several. The judge never looks into the checker or its entries. It
takes only the time of the next attempt from events, and checks it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult, FailureKind, Policy, Reason
from robotsgate.caching._freshness import freshness_lifetime, retry_after
from robotsgate.caching._verdict import Effect
from robotsgate.events import RobotsTxtFetched
from tests.caching.judge import (
    LARGEST_SKEW,
    MOST_JITTER,
    History,
    after,
    effects,
    evidence,
    is_current_for,
    is_fresh,
    joined,
    keep_until,
    meaning,
    meanwhile,
    span,
    usable,
    wait,
)

from .answers import RULEBOOKS, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from robotsgate.events import CheckerEvent
    from robotsgate.testing import ManualClock

    from .network import Attempt

# The rounding error of epoch seconds a little above 2 ** 31.
_EPSILON = 1e-3

_FIRST_PAUSE = 5.0
_PROXY_DENIED = 407

Known = frozenset[History | None]
_NOTHING: Known = frozenset({None})


class Decision(NamedTuple):
    """The parts of a verdict that the judge checks."""

    allowed: bool
    reason: Reason
    is_stale: bool
    access: AccessResult
    fresh_until: float | None


@dataclass
class _Write:
    """One update of the store: what it returned, and whether it kept the result."""

    key: str
    shown: Known
    is_kept: bool


class _Pause(NamedTuple):
    """A pause because the checker's own machine failed."""

    since: float
    seconds: float
    has_sent_since: bool = False

    def is_on(self, now: float) -> bool:
        return self.since - LARGEST_SKEW <= now < self.since + self.seconds


@dataclass
class _Origin:
    """The state of one origin.

    Attributes:
        in_memory: what the checker may have in memory.
        known: what the current attempt may start from, including the store's entry.
        stored: what the store contains, by key.
        seen: everything known since the step began.
        fetched: the results of this step's attempts.
        forced: how many requested refreshes have not been made yet.
        may_forget: whether the next attempt may ignore everything known.
        attempt: the last attempt.
        write: the store update that follows it.
        own: the current checker's back-off, if its last attempt had no response.
        pause: the current checker's last pause, unless a request has been sent since.
        paused: whether a pause began in this step.
    """

    in_memory: Known = _NOTHING
    known: Known = _NOTHING
    stored: dict[str, Known] = field(default_factory=dict)
    seen: Known = _NOTHING
    fetched: Known = frozenset()
    forced: int = 0
    may_forget: bool = False
    attempt: Attempt | None = None
    write: _Write | None = None
    own: tuple[float, float] | None = None
    pause: _Pause | None = None
    paused: bool = False

    def learn(self, known: Known) -> None:
        self.known = known or _NOTHING
        self.seen |= self.known

    def remember(self, in_memory: Known) -> None:
        self.in_memory = in_memory or _NOTHING
        self.learn(self.in_memory)


@dataclass
class Judge:
    """Judges a sequence of checkers that share a clock.

    Attributes:
        clock: the checkers' clock.
        policy: the current checker's policy.
        may_evict: whether the checker may evict entries from memory.
        overrides: the hosts with an override, with its name in `RULEBOOKS`.
        complaints: what was wrong in this step.
        fetches: how many attempts the current checker has completed.
        fetched: how many attempts were completed in this step, by host.
        seen: how often each event happened.
    """

    clock: ManualClock
    policy: Policy = field(default_factory=Policy)
    may_evict: bool = False
    overrides: Mapping[str, str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    fetches: int = 0
    fetched: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    _origins: dict[str, _Origin] = field(default_factory=dict)
    _moments: list[float] = field(default_factory=list)
    _terms: dict[str, object] = field(default_factory=dict)

    def complain(self, text: str) -> None:
        self.complaints.append(text)

    # --- what the driver does -----------------------------------------------------

    def begin_step(self) -> None:
        """Reset the state of the last step; the checker is idle."""
        self._moments = [self.clock.now()]
        self.fetched.clear()
        for origin in self._origins.values():
            origin.seen = origin.known = origin.in_memory
            origin.fetched = frozenset()
            origin.forced = 0
            origin.paused = False

    def checker_began(
        self, policy: Policy, *, may_evict: bool, overrides: Mapping[str, str]
    ) -> None:
        """Record a new checker with an empty memory and the same store."""
        self.policy = policy
        self.may_evict = may_evict
        self.overrides = overrides
        self.fetches = 0
        for origin in self._origins.values():
            origin.remember(_NOTHING)
            origin.own = origin.pause = None

    def refresh_requested(self, host: str) -> None:
        """Record a call of `refresh`, which may fetch before the retry is due."""
        self._origin(host).forced += 1

    def forget_requested(self, host: str, *, is_alone: bool) -> None:
        """Record a call of `forget`, which may come during an attempt."""
        origin = self._origin(host)
        origin.may_forget = not is_alone
        origin.remember(
            _NOTHING if is_alone else origin.known | origin.in_memory | _NOTHING
        )

    def transitions(self, host: str) -> Iterator[float]:
        """The known times at which the state of `host` changes."""
        for history in self._origin(host).known:
            if history is not None:
                yield from _transitions(history, self.policy)

    # --- what the network and the store report -----------------------------------

    def time_passed(self) -> None:
        """Record that the clock has moved, which may happen during a request."""
        self._moments.append(self.clock.now())

    def attempt_began(self, attempt: Attempt) -> None:
        """Complain if the checker has no reason to fetch."""
        origin = self._origin(attempt.host)
        self._check_override(attempt.host)
        origin.attempt = attempt
        origin.write = None
        self.seen[f"answer {attempt.answer.name}"] += 1
        now = self.clock.now()
        all_current = all(
            self._is_current(origin, history, now) for history in origin.known
        )
        is_paused = origin.pause is not None and origin.pause.is_on(now)
        if is_paused or (all_current and not origin.may_forget):
            if origin.forced <= 0:
                self.complain(f"{attempt.host} was fetched too early")
            origin.forced -= 1
            self.seen["early fetch on request"] += 1

    def attempt_cancelled(self, attempt: Attempt) -> None:
        """Complain, because a cancelled caller must not cancel the fetch."""
        self.complain(f"the fetch of {attempt.host} was cancelled")

    def entry_read(self, key: str, *, is_whole: bool) -> None:
        """Record that the checker read an entry, usable or not."""
        origin = self._origin_of_key(key)
        self._check_override(_host_of(key))
        if self._terms.setdefault(key, terms := _terms(self.policy)) != terms:
            self.complain(f"{key} is also used under {terms}")
        stored = origin.stored.get(key, _NOTHING) if is_whole else _NOTHING
        known = self._joined(self._in_memory(origin), stored)
        now = self.clock.now()
        self.seen["entry read from the store"] += stored != _NOTHING
        # The checker keeps a current entry in memory.
        origin.in_memory |= {one for one in known if self._is_current(origin, one, now)}
        origin.learn(known)

    def entry_updated(self, key: str, *, is_whole: bool, is_kept: bool) -> None:
        """Record that the checker updated an entry."""
        origin = self._origin_of_key(key)
        self._check_override(_host_of(key))
        shown = origin.stored.get(key, _NOTHING) if is_whole else _NOTHING
        origin.write = _Write(key, shown, is_kept)

    def entry_dropped(self, key: str) -> None:
        """Record that the store has no entry any more."""
        origin = self._origin_of_key(key)
        origin.stored.pop(key, None)
        if origin.write is not None:
            origin.write.is_kept = False

    def event_received(self, event: CheckerEvent) -> None:
        """Record an event, and judge it if it reports a fetch."""
        if not isinstance(event, RobotsTxtFetched):
            self.seen[f"event {type(event).__name__}"] += 1
            return
        host = event.origin.removeprefix("https://")
        origin = self._origin(host)
        attempt, write = origin.attempt, origin.write
        if attempt is None or attempt.is_over:
            self.complain(f"a fetch of {host} ended but never began")
            return
        attempt.is_over = True
        self.fetched[host] += 1
        if event.failure is FailureKind.LOCAL:
            self._local_failure(origin, event)
            return
        origin.own = origin.pause = None
        self._request_left()
        if event.failure is not None or event.status == _PROXY_DENIED:
            origin.own = self.clock.now(), event.next_fetch_at
        self.fetches += 1
        self.seen[f"access {event.access.value}"] += 1
        if event.previous_access not in {None, event.access}:
            self.seen["changed access result"] += 1
        if write is None:
            self.complain(f"the fetch of {host} was not stored")
            write = _Write("", _NOTHING, is_kept=False)
        # A clock that was ahead may have been set back, so memory is looked at again.
        known = self._joined(self._in_memory(origin), origin.known)
        known = self._joined(known, write.shown)
        if origin.may_forget:
            known |= _NOTHING
            origin.may_forget = False
        # A stale 404 counts as no answer, but does not revive an older one.
        known |= {
            history
            for history in origin.in_memory
            if history and history.access is AccessResult.UNAVAILABLE
        }
        results = frozenset(self._histories_after(known, attempt, event))
        if write.is_kept:
            origin.stored[write.key] = results
        origin.fetched |= results
        origin.remember(results)

    def _request_left(self) -> None:
        """Shorten the pauses for other origins, because the machine works again."""
        for origin in self._origins.values():
            pause = origin.pause
            if pause is not None:
                seconds = min(pause.seconds, _FIRST_PAUSE)
                origin.pause = _Pause(pause.since, seconds, has_sent_since=True)

    def _local_failure(self, origin: _Origin, event: RobotsTxtFetched) -> None:
        """Complain unless the checker pauses longer each time, and stores nothing."""
        self.seen["local failure"] += 1
        now, last = self.clock.now(), origin.pause
        seconds = _FIRST_PAUSE
        if last is not None and not last.has_sent_since:
            seconds = last.seconds if last.is_on(now) else 2 * last.seconds
        origin.pause = _Pause(now, min(seconds, self.policy.retry_max))
        origin.paused = True
        if event.next_fetch_at < now + origin.pause.seconds - _EPSILON:
            self.complain(f"{event.origin} is not paused until {event.next_fetch_at}")
        if origin.write is not None:
            self.complain(f"a local failure for {event.origin} was stored")

    def _histories_after(
        self, known: Known, attempt: Attempt, event: RobotsTxtFetched
    ) -> Iterator[History]:
        """What may be known now: the histories in `known` that explain the event."""
        now = self.clock.now()
        outcome = outcome_of(attempt, self.policy)
        expected, is_explained = [], False
        for history in known:
            meant = meaning(outcome, history, self.policy)
            # There is one checker at a time, so no other process's answer intervenes.
            last = 0.0 if history is None or not history.said else history.said.at
            new = after(
                history,
                meant,
                began_at=max(attempt.began_at, last),
                now=now,
                until=event.next_fetch_at,
                policy=self.policy,
                name=attempt.answer.rulebook or "",
            )
            access = AccessResult.UNREACHABLE if new.lines else new.access
            low, high = self._pause(history, attempt, meant.access, now)
            pause = event.next_fetch_at - now
            if new == history and not new.lines and new.said is not None:
                low = high = new.said.fresh_until - now  # superseded by an answer
            is_due = low - _EPSILON <= pause <= high + _EPSILON
            if access is event.access and is_due:
                yield new
                is_explained = True
            expected.append((access, low, high))
        if not is_explained:
            self.complain(
                f"{attempt.host} ({attempt.answer}) is {event.access} for "
                f"{event.next_fetch_at - now:g} s; expected one of {expected}"
            )

    def _pause(
        self,
        history: History | None,
        attempt: Attempt,
        access: AccessResult,
        now: float,
    ) -> tuple[float, float]:
        """The minimum and maximum time from the end of `attempt` to the next."""
        policy, headers = self.policy, attempt.headers
        if access is AccessResult.UNREACHABLE:
            requested = retry_after(headers, now=now, policy=policy) or 0.0
            return wait(history, attempt.answer.status, requested, now, policy)
        if access is AccessResult.REFUSED:
            return policy.retry_max, policy.retry_max * MOST_JITTER
        lifetime = freshness_lifetime(headers, now=now, policy=policy)
        if attempt.answer.status in {429, 503}:
            requested = retry_after(headers, now=now, policy=policy) or 0.0
            lifetime = max(lifetime, requested)
        return lifetime, lifetime

    # --- what may be answered -----------------------------------------------------

    def judge_verdict(self, host: str, path: str, decision: Decision) -> None:
        """Complain unless something that may be known leads to `decision`."""
        answer = "yes" if decision.allowed else "no"
        self.seen[f"{answer}: {decision.reason.value}"] += 1
        self.seen["verdict from a stale copy"] += decision.is_stale
        permitted = self._permitted(host, path)
        if decision not in permitted:
            self._complain_of(host, path, decision, permitted)

    def judge_answer(
        self, host: str, path: str, answer: object, *, how: str, now_only: bool = False
    ) -> None:
        """Complain unless something that may be known leads to `answer`."""
        permitted = self._permitted(host, path, now_only=now_only)
        if answer not in {decision.allowed for decision in permitted}:
            self._complain_of(host, path, f"{how} {answer}", permitted)

    def judge_rules(self, host: str, what: str, rules: object) -> None:
        """Complain unless `rules` fits a file that may apply, or none may."""
        permitted = set()
        if host in self.overrides:
            book = RULEBOOKS[self.overrides[host]]
            permitted.add(book.crawl_delay if what == "crawl-delay" else True)
        for history, now in self._in_use(host, self._origin(host).seen, self._moments):
            for effect in effects(history, now, self.policy):
                book = None
                if effect is Effect.RULES and history.said is not None:
                    book = RULEBOOKS[history.said.name]
                delay = book.crawl_delay if book else None
                permitted.add(delay if what == "crawl-delay" else book is not None)
        if rules not in permitted:
            self._complain_of(host, "", f"{what} {rules}", permitted)

    def must_be_cached(self, host: str) -> bool:
        """Whether the checker must have an answer in memory after a call."""
        if host in self.overrides:
            return True
        now = self.clock.now()
        origin = self._origin(host)
        return not self.may_evict and all(
            self._is_current(origin, one, now) for one in origin.in_memory
        )

    def judge_prefetched(self, host: str) -> None:
        """Complain unless prefetching left an answer for `host`."""
        in_use = self._in_use(host, self._origin(host).in_memory, self._moments)
        if host not in self.overrides and not any(in_use):
            self._complain_of(host, "", "after prefetch", "an answer")

    @property
    def is_one_fetch_enough(self) -> bool:
        """Whether a fetched answer can serve later callers as well."""
        policy = self.policy
        return (
            not self.may_evict and min(policy.default_lifetime, policy.min_lifetime) > 0
        )

    def _permitted(
        self, host: str, path: str, *, now_only: bool = False
    ) -> set[Decision]:
        if host in self.overrides:
            return {self._override_decision(host, path)}
        origin = self._origin(host)
        moments = [self.clock.now()] if now_only else self._moments
        known = origin.in_memory if now_only else origin.seen
        return {
            decision
            for history, now in self._in_use(host, known, moments)
            for effect in effects(history, now, self.policy)
            for decision in self._decisions(history, effect, path, now)
        }

    def _override_decision(self, host: str, path: str) -> Decision:
        is_file = path == "/robots.txt"
        return Decision(
            allowed=is_file or RULEBOOKS[self.overrides[host]].verdicts[path][0],
            reason=Reason.ROBOTS_TXT if is_file else Reason.OVERRIDDEN,
            is_stale=False,
            access=AccessResult.SUCCESSFUL,
            fresh_until=None,
        )

    def _decisions(
        self, history: History, effect: Effect, path: str, now: float
    ) -> Iterator[Decision]:
        """The possible decisions about `path` for ExampleBot."""
        answer = history.said
        is_answer = not history.lines or is_fresh(answer, now)
        access, until = AccessResult.UNREACHABLE, math.nan
        if is_answer and answer is not None:
            access, until = answer.access, answer.fresh_until
        untils = [line[-1].retry_at for line in history.lines]
        for allowed, reason in self._reasons(
            history, effect, path, is_answer=is_answer
        ):
            for fresh_until in [until] if is_answer else untils:
                is_stale = effect is Effect.RULES and not is_answer
                yield Decision(allowed, reason, is_stale, access, fresh_until)

    def _reasons(
        self, history: History, effect: Effect, path: str, *, is_answer: bool
    ) -> list[tuple[bool, Reason]]:
        if effect is Effect.REFUSE and is_answer:
            return [(False, Reason.ADDRESS_REFUSED)]
        if effect is not Effect.REFUSE and path == "/robots.txt":
            return [(True, Reason.ROBOTS_TXT)]
        if effect is Effect.RULES:
            assert history.said is not None
            return [RULEBOOKS[history.said.name].verdicts[path]]
        if effect is Effect.ALLOW:
            too_long = Reason.UNREACHABLE_TOO_LONG
            return [(True, Reason.UNAVAILABLE if is_answer else too_long)]
        if is_answer:
            return [(False, Reason.RESTRICTED)]
        return [
            (False, reason)
            for reason in (Reason.UNREACHABLE, Reason.UNREACHABLE_TOO_LONG)
        ]

    # --- the rest -----------------------------------------------------------------

    def _in_use(
        self, host: str, known: Known, moments: Iterable[float]
    ) -> Iterator[tuple[History, float]]:
        """The usable histories: current ones, and those fetched in this step."""
        origin = self._origin(host)
        for now in moments:
            for history in known:
                if history and (
                    history in origin.fetched or self._is_current(origin, history, now)
                ):
                    yield history, now
            pause = origin.pause
            if pause is not None and (origin.paused or pause.is_on(now)):
                for history in known:
                    last = history and usable(history, now, self.policy)
                    until = pause.since + pause.seconds
                    yield meanwhile(last, now, until, self.policy), now

    def _is_current(self, origin: _Origin, history: History | None, now: float) -> bool:
        return history is not None and is_current_for(history, now, origin.own)

    def _in_memory(self, origin: _Origin) -> Known:
        return origin.in_memory | _NOTHING if self.may_evict else origin.in_memory

    def _joined(self, some: Known, others: Known) -> Known:
        now, policy = self.clock.now(), self.policy
        pairs = {
            (usable(one, now, policy), usable(other, now, policy))
            for one in some
            for other in others
        }
        # Of two answers with the same time, either may win.
        swapped = {
            (b, a)
            for a, b in pairs
            if a and b and a.said and b.said and a.said.at == b.said.at
        }
        return frozenset(joined(a, b, now) for a, b in pairs | swapped)

    def _check_override(self, host: str) -> None:
        if host in self.overrides:
            self.complain(f"{host} was looked up despite its override")

    def _complain_of(
        self, host: str, path: str, observed: object, permitted: object
    ) -> None:
        known = "; ".join(map(str, self._origin(host).seen))
        self.complain(
            f"{host}{path}: {observed}\n    permitted: {permitted}"
            f"\n    moments: {self._moments}\n    known: {known}"
        )

    def _origin(self, host: str) -> _Origin:
        return self._origins.setdefault(host, _Origin())

    def _origin_of_key(self, key: str) -> _Origin:
        return self._origin(_host_of(key))


def _host_of(key: str) -> str:
    return key.split(" ", maxsplit=1)[0].removeprefix("https://")


def _transitions(history: History, policy: Policy) -> Iterator[float]:
    length = span(history.access, policy)
    yield keep_until(history, policy)
    if history.said is not None:
        yield history.said.fresh_until
    for line in history.lines:
        yield line[-1].retry_at
        yield line[0].at + policy.outage_grace
        yield line[0].at + policy.stale_window
        yield from (one.at + length for one in evidence(line)[:1])


def _terms(policy: Policy) -> object:
    """The policy fields that affect what a fetch means; see the glossary."""
    return (
        policy.max_redirects,
        policy.detect_missing_page,
        policy.detect_walls,
        policy.on_access_denied,
        policy.on_too_many_requests,
        policy.on_too_many_redirects,
        policy.after_unreachable_limit,
    )
