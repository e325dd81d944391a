"""Follows what happens, and says what a checker may do and answer.

For each origin it keeps the histories that may be behind what the checker knows, by
the model of `tests.caching.judge`. While everything works there is one; a store that
failed leaves several. The judge never looks into the checker or its entries, but for
the time at which an event says that the next attempt will come, which must be right.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult, Policy, Reason, RobotsTxtFetched
from robotsgate.caching._freshness import freshness_lifetime, retry_after
from robotsgate.caching._in_force import Effect
from tests.caching.judge import (
    MOST_JITTER,
    History,
    after,
    effects,
    evidence,
    is_current,
    is_fresh,
    joined,
    keep_until,
    meaning,
    span,
    usable,
    wait,
)

from .answers import RULEBOOKS, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from robotsgate import CheckerEvent
    from robotsgate.testing import ManualClock

    from .network import Attempt

# Rounding of an epoch of 2 ** 31 seconds and a bit.
_EPSILON = 1e-3

Known = frozenset[History | None]
_NOTHING: Known = frozenset({None})


class Saying(NamedTuple):
    """An answer to a question, with what led to it."""

    allowed: bool
    reason: Reason
    is_stale: bool
    access: AccessResult
    fresh_until: float | None


@dataclass
class _Write:
    """One update of the store: what it showed, and whether it kept the result."""

    key: str
    shown: Known
    is_kept: bool


@dataclass
class _Origin:
    """What the judge knows about one origin.

    Attributes:
        held: what the checker may hold in memory.
        known: what the attempt under way may begin from: the store's too.
        stored: what the store holds, by key.
        seen: everything that was known since the step began.
        fetched: what the attempts of this step led to.
        forced: how many attempts were asked for, and not made yet.
        may_forget: whether the next attempt may use nothing that was known.
        attempt: the last one.
        write: the update that follows it.
    """

    held: Known = _NOTHING
    known: Known = _NOTHING
    stored: dict[str, Known] = field(default_factory=dict)
    seen: Known = _NOTHING
    fetched: Known = frozenset()
    forced: int = 0
    may_forget: bool = False
    attempt: Attempt | None = None
    write: _Write | None = None

    def know(self, known: Known) -> None:
        self.known = known or _NOTHING
        self.seen |= self.known

    def hold(self, held: Known) -> None:
        self.held = held or _NOTHING
        self.know(self.held)


@dataclass
class Judge:
    """Judges one checker after the other, on one clock.

    Attributes:
        clock: that the checkers have.
        policy: of the present checker.
        may_evict: whether the checker may let go of what it holds in memory.
        overrides: names from `RULEBOOKS`, by the hosts that its caller speaks for.
        complaints: what was wrong in this step.
        fetches: how many attempts of the present checker came to an end.
        fetched: how many of each host did in this step.
        seen: how often each thing happened.
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
        """Something is wrong."""
        self.complaints.append(text)

    # --- what the driver does -----------------------------------------------------

    def begin_step(self) -> None:
        """The checker is at rest."""
        self._moments = [self.clock.now()]
        self.fetched.clear()
        for origin in self._origins.values():
            origin.seen = origin.known = origin.held
            origin.fetched = frozenset()
            origin.forced = 0

    def checker_began(
        self, policy: Policy, *, may_evict: bool, overrides: Mapping[str, str]
    ) -> None:
        """There is a new checker, which knows what the store knows."""
        self.policy = policy
        self.may_evict = may_evict
        self.overrides = overrides
        self.fetches = 0
        for origin in self._origins.values():
            origin.hold(_NOTHING)

    def refresh_asked(self, host: str) -> None:
        """Somebody wants an attempt, due or not."""
        self._of(host).forced += 1

    def forget_asked(self, host: str, *, is_alone: bool) -> None:
        """Somebody wants all to be forgotten, perhaps in the middle of an attempt."""
        origin = self._of(host)
        origin.may_forget = not is_alone
        origin.hold(_NOTHING if is_alone else origin.known | origin.held | _NOTHING)

    def turns(self, host: str) -> Iterator[float]:
        """The times at which something changes for `host`, as far as it is known."""
        for history in self._of(host).known:
            if history is not None:
                yield from _turns(history, self.policy)

    # --- what the network and the store tell -------------------------------------

    def time_passed(self) -> None:
        """The clock was moved, perhaps while a request was under way."""
        self._moments.append(self.clock.now())

    def attempt_began(self, attempt: Attempt) -> None:
        """A checker asks for a robots.txt; it must have a reason."""
        origin = self._of(attempt.host)
        self._check_asked(attempt.host)
        origin.attempt = attempt
        origin.write = None
        self.seen[f"answer {attempt.answer.name}"] += 1
        now = self.clock.now()
        stands = all(self._stands(history, now) for history in origin.known)
        if stands and not origin.may_forget:
            if origin.forced <= 0:
                self.complain(f"{attempt.host} was asked before its time")
            origin.forced -= 1
            self.seen["fetch before its time, on demand"] += 1

    def attempt_given_up(self, attempt: Attempt) -> None:
        """A checker was closed in the middle; callers that give up must not do it."""
        self.complain(f"the fetch of {attempt.host} was cancelled")

    def was_given(self, key: str, *, is_whole: bool) -> None:
        """The checker read an entry, or what was under the key was of no use."""
        origin = self._of_key(key)
        self._check_asked(_host_of(key))
        if self._terms.setdefault(key, terms := _terms(self.policy)) != terms:
            self.complain(f"{key} is used under {terms} as well")
        stored = origin.stored.get(key, _NOTHING) if is_whole else _NOTHING
        known = self._joined(self._held(origin), stored)
        now = self.clock.now()
        self.seen["entry of the store"] += stored != _NOTHING
        # What stands is held from now on.
        origin.held |= {one for one in known if self._stands(one, now)}
        origin.know(known)

    def was_updated(self, key: str, *, is_whole: bool, is_kept: bool) -> None:
        """The checker told the store what it made of what that holds."""
        origin = self._of_key(key)
        self._check_asked(_host_of(key))
        shown = origin.stored.get(key, _NOTHING) if is_whole else _NOTHING
        origin.write = _Write(key, shown, is_kept)

    def was_dropped(self, key: str) -> None:
        """The store holds nothing any more."""
        origin = self._of_key(key)
        origin.stored.pop(key, None)
        if origin.write is not None:
            origin.write.is_kept = False

    def event_came(self, event: CheckerEvent) -> None:
        """The checker says what it did."""
        if not isinstance(event, RobotsTxtFetched):
            self.seen[f"event {type(event).__name__}"] += 1
            return
        host = event.origin.removeprefix("https://")
        origin = self._of(host)
        attempt, write = origin.attempt, origin.write
        if attempt is None or attempt.is_over:
            self.complain(f"a fetch of {host} ended that never began")
            return
        attempt.is_over = True
        self.fetches += 1
        self.fetched[host] += 1
        self.seen[f"access {event.access.value}"] += 1
        if write is None:
            self.complain(f"the store was not told of the fetch of {host}")
            write = _Write("", _NOTHING, is_kept=False)
        # A clock that was ahead may not be so any more: memory is looked at again.
        known = self._joined(self._held(origin), origin.known)
        known = self._joined(known, write.shown)
        if origin.may_forget:
            known |= _NOTHING
            origin.may_forget = False
        # A stale 404 counts as nothing, but an older answer in the store stays ended.
        known |= {
            history
            for history in origin.held
            if history and history.access is AccessResult.UNAVAILABLE
        }
        led_to = frozenset(self._led_to(known, attempt, event))
        if write.is_kept:
            origin.stored[write.key] = led_to
        origin.fetched |= led_to
        origin.hold(led_to)

    def _led_to(
        self, known: Known, attempt: Attempt, event: RobotsTxtFetched
    ) -> Iterator[History]:
        """What may be known now, if the event tells what one of `known` leads to."""
        now = self.clock.now()
        outcome = outcome_of(attempt, self.policy)
        expected, is_explained = [], False
        for history in known:
            meant = meaning(outcome, history, self.policy)
            # One checker at a time: no answer of another process comes between.
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
            if not meant.is_counted:
                low, high = 0.0, math.inf
            pause = event.next_fetch_at - now
            if new == history and not new.lines and new.said is not None:
                low = high = new.said.fresh_until - now  # an answer overtook it
            is_due = low - _EPSILON <= pause <= high + _EPSILON
            if access is event.access and is_due:
                yield new
                is_explained = True
            expected.append((access, low, high))
        if not is_explained:
            self.complain(
                f"{attempt.host} ({attempt.answer}) is {event.access} for "
                f"{event.next_fetch_at - now:g} s, and not {expected}"
            )

    def _pause(
        self,
        history: History | None,
        attempt: Attempt,
        access: AccessResult,
        now: float,
    ) -> tuple[float, float]:
        """The shortest and the longest time from the end of `attempt` to the next."""
        policy, headers = self.policy, attempt.headers
        if access is AccessResult.UNREACHABLE:
            asked = retry_after(headers, now=now, policy=policy) or 0.0
            return wait(history, attempt.answer.status, asked, now, policy)
        if access is AccessResult.REFUSED:
            return policy.retry_max, policy.retry_max * MOST_JITTER
        lifetime = freshness_lifetime(headers, now=now, policy=policy)
        if attempt.answer.status in {429, 503}:
            asked = retry_after(headers, now=now, policy=policy) or 0.0
            lifetime = max(lifetime, asked)
        return lifetime, lifetime

    # --- what may be answered -----------------------------------------------------

    def judge_verdict(self, host: str, path: str, said: Saying) -> None:
        """Complain unless something that may be known leads to `said`."""
        self.seen[f"{'yes' if said.allowed else 'no'}: {said.reason.value}"] += 1
        self.seen["verdict by a stale copy"] += said.is_stale
        permitted = self._permitted(host, path)
        if said not in permitted:
            self._complain_of(host, path, said, permitted)

    def judge_answer(
        self, host: str, path: str, answer: object, *, how: str, now_only: bool = False
    ) -> None:
        """Complain unless something that may be known leads to `answer`."""
        permitted = self._permitted(host, path, now_only=now_only)
        if answer not in {said.allowed for said in permitted}:
            self._complain_of(host, path, f"{how} {answer}", permitted)

    def judge_rules(self, host: str, what: str, rules: object) -> None:
        """Complain unless a file that may be in force has this, or may be none."""
        permitted = set()
        if host in self.overrides:
            book = RULEBOOKS[self.overrides[host]]
            permitted.add(book.crawl_delay if what == "crawl-delay" else True)
        for history, now in self._in_use(host, self._of(host).seen, self._moments):
            for effect in effects(history, now, self.policy):
                book = None
                if effect is Effect.RULES and history.said is not None:
                    book = RULEBOOKS[history.said.name]
                delay = book.crawl_delay if book else None
                permitted.add(delay if what == "crawl-delay" else book is not None)
        if rules not in permitted:
            self._complain_of(host, "", f"{what} {rules}", permitted)

    def is_sure(self, host: str) -> bool:
        """Whether the checker must have an answer in memory, after a question."""
        if host in self.overrides:
            return True
        now = self.clock.now()
        held = self._of(host).held
        return not self.may_evict and all(self._stands(one, now) for one in held)

    def judge_known(self, host: str) -> None:
        """Complain unless `host` is as well known as if somebody had asked."""
        in_use = self._in_use(host, self._of(host).held, self._moments)
        if host not in self.overrides and not any(in_use):
            self._complain_of(host, "", "an end of prefetch", "something in use")

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
        if host in self.overrides:
            return {self._saying_of_override(host, path)}
        origin = self._of(host)
        moments = [self.clock.now()] if now_only else self._moments
        known = origin.held if now_only else origin.seen
        return {
            saying
            for history, now in self._in_use(host, known, moments)
            for effect in effects(history, now, self.policy)
            for saying in self._sayings(history, effect, path, now)
        }

    def _saying_of_override(self, host: str, path: str) -> Saying:
        is_file = path == "/robots.txt"
        return Saying(
            allowed=is_file or RULEBOOKS[self.overrides[host]].says[path][0],
            reason=Reason.ROBOTS_TXT if is_file else Reason.OVERRIDDEN,
            is_stale=False,
            access=AccessResult.SUCCESSFUL,
            fresh_until=None,
        )

    def _sayings(
        self, history: History, effect: Effect, path: str, now: float
    ) -> Iterator[Saying]:
        """What may be said about `path`, for ExampleBot."""
        said = history.said
        is_answer = not history.lines or is_fresh(said, now)
        access, until = AccessResult.UNREACHABLE, math.nan
        if is_answer and said is not None:
            access, until = said.access, said.fresh_until
        untils = [line[-1].retry_at for line in history.lines]
        for allowed, reason in self._reasons(
            history, effect, path, is_answer=is_answer
        ):
            for fresh_until in [until] if is_answer else untils:
                is_stale = effect is Effect.RULES and not is_answer
                yield Saying(allowed, reason, is_stale, access, fresh_until)

    def _reasons(
        self, history: History, effect: Effect, path: str, *, is_answer: bool
    ) -> list[tuple[bool, Reason]]:
        if effect is Effect.REFUSE and is_answer:
            return [(False, Reason.ADDRESS_REFUSED)]
        if effect is not Effect.REFUSE and path == "/robots.txt":
            return [(True, Reason.ROBOTS_TXT)]
        if effect is Effect.RULES:
            assert history.said is not None
            return [RULEBOOKS[history.said.name].says[path]]
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
        """What may be answered from: what stands, or was fetched for the question."""
        fetched = self._of(host).fetched
        for now in moments:
            for history in known:
                if history and (history in fetched or self._stands(history, now)):
                    yield history, now

    def _stands(self, history: History | None, now: float) -> bool:
        return history is not None and is_current(history, now)

    def _held(self, origin: _Origin) -> Known:
        return origin.held | _NOTHING if self.may_evict else origin.held

    def _joined(self, some: Known, others: Known) -> Known:
        now, policy = self.clock.now(), self.policy
        pairs = {
            (usable(one, now, policy), usable(other, now, policy))
            for one in some
            for other in others
        }
        # Of two answers that came at the same time, either may win.
        turned = {
            (b, a)
            for a, b in pairs
            if a and b and a.said and b.said and a.said.at == b.said.at
        }
        return frozenset(joined(a, b, now) for a, b in pairs | turned)

    def _check_asked(self, host: str) -> None:
        if host in self.overrides:
            self.complain(f"{host} was asked about, although its caller speaks for it")

    def _complain_of(
        self, host: str, path: str, said: object, permitted: object
    ) -> None:
        known = "; ".join(map(str, self._of(host).seen))
        self.complain(
            f"{host}{path}: {said}\n    permitted: {permitted}"
            f"\n    moments: {self._moments}\n    known: {known}"
        )

    def _of(self, host: str) -> _Origin:
        return self._origins.setdefault(host, _Origin())

    def _of_key(self, key: str) -> _Origin:
        return self._of(_host_of(key))


def _host_of(key: str) -> str:
    return key.split(" ", maxsplit=1)[0].removeprefix("https://")


def _turns(history: History, policy: Policy) -> Iterator[float]:
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
    """What decides what a fetch can bring and means; entries of others never meet."""
    return (
        policy.max_redirects,
        policy.detect_missing_page,
        policy.on_access_denied,
        policy.on_too_many_requests,
        policy.on_too_many_redirects,
        policy.after_unreachable_limit,
    )
