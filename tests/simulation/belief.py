"""What a checker that has seen one history may believe of one origin, and say.

Written anew from the semantics, and not with the functions that are tested: plain
cases, no speed. Time is an argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult, AfterStaleWindow, Policy, Reason

from .answers import RULEBOOKS, End, Meaning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .network import Attempt

__all__ = ["Belief", "Saying", "beliefs_after", "mixed", "pause_after"]

# Retries are spread by up to a tenth, which is nobody else's business.
_MOST_JITTER = 1.1


class Saying(NamedTuple):
    """An answer to a question, with what led to it."""

    allowed: bool
    reason: Reason
    is_stale: bool
    access: AccessResult
    status: int | None
    fetched_at: float | None
    fresh_until: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Belief:
    """What is known of one origin after an attempt.

    Attributes:
        policy: that was in force then.
        meaning: of the answer, as the policy had it looked at.
        access: what the policy took it for.
        status: of the last response; `None` where the attempt failed.
        checked_at: when the attempt ended.
        next_at: when the next may begin.
        kept_until: from when on this is as good as nothing.
        rulebook: the name of the last good rules, while they count.
        rules_came_at: when they came.
        rules_fresh_until: when they stop being fresh.
        since: when the run of failures began.
        failures: in the run.
        knows_nothing: whether the run began without a word of what was before.
    """

    policy: Policy
    meaning: Meaning
    access: AccessResult
    status: int | None
    checked_at: float
    next_at: float
    kept_until: float
    rulebook: str | None = None
    rules_came_at: float = 0.0
    rules_fresh_until: float = 0.0
    since: float | None = None
    failures: int = 0
    knows_nothing: bool = False

    def __repr__(self) -> str:
        words = [f"{self.meaning.value} at {self.checked_at:.3f}"]
        words.append(f"next at {self.next_at:.3f}, kept until {self.kept_until:.3f}")
        if self.rulebook is not None:
            words.append(f"{self.rulebook!r} until {self.rules_fresh_until:.3f}")
        if self.since is not None:
            words.append(f"failure {self.failures} since {self.since:.3f}")
        return f"<{', '.join(words)}>"

    def age_rank(self, now: float) -> tuple[bool, float]:
        """Greater for what is newer; what is from the future counts as oldest."""
        return self.checked_at <= now, self.checked_at

    def heard_last(self, now: float) -> float:
        """What was heard before this is no news to who believes it."""
        if self.rulebook is not None:
            return self.rules_came_at
        if self.knows_nothing or self.checked_at > now:
            return -math.inf
        if self.since is None or self.meaning is Meaning.REFUSED:
            return self.checked_at
        return self.since

    def stands_at(self, now: float, policy: Policy) -> bool:
        """Whether no attempt is due, and answers may come from here."""
        return self.checked_at <= now < self.next_at and self.fits(policy)

    def fits(self, policy: Policy) -> bool:
        """Whether a checker with `policy` may use what another one has left."""
        if policy == self.policy:
            return True
        span = self.next_at - self.checked_at
        longest = max(
            policy.default_lifetime,
            policy.max_lifetime,
            policy.retry_after_max,
            policy.retry_max * _MOST_JITTER,
        )
        return span <= longest and self.access is _access(self.meaning, policy)

    def saying(self, path: str, now: float, policy: Policy) -> Saying:
        """The answer about `path`, for ExampleBot."""
        rules = self.rules_in_force(now, policy)
        allowed, reason = self._answer(path, rules, now, policy)
        came_at = self.rules_came_at if rules else self._heard_at()
        return Saying(
            allowed=allowed,
            reason=reason,
            is_stale=bool(rules) and self._are_rules_stale(now),
            access=self.access,
            status=self.status,
            fetched_at=came_at,
            fresh_until=self.rules_fresh_until if rules else self.next_at,
        )

    def rules_in_force(self, now: float, policy: Policy) -> str | None:
        """The rulebook that decides; `None` where none does."""
        if self.access is AccessResult.SUCCESSFUL:
            return self.rulebook
        if self.since is None or self.meaning is Meaning.REFUSED:
            return None
        if now < self.since + policy.outage_grace:
            return None
        is_over = now >= self.since + policy.stale_window
        if is_over and policy.after_stale_window is not AfterStaleWindow.LAST_COPY:
            return None
        return self.rulebook

    def _are_rules_stale(self, now: float) -> bool:
        is_outage = self.access is AccessResult.UNREACHABLE
        return is_outage and now >= self.rules_fresh_until

    def _heard_at(self) -> float | None:
        is_answer = self.status is not None
        return self.checked_at if is_answer else None

    def _answer(
        self, path: str, rules: str | None, now: float, policy: Policy
    ) -> tuple[bool, Reason]:
        if self.meaning is Meaning.REFUSED:
            return False, Reason.ADDRESS_REFUSED
        if path == "/robots.txt":
            return True, Reason.ROBOTS_TXT
        if rules is not None:
            return RULEBOOKS[rules].says[path]
        if self.access is AccessResult.UNAVAILABLE:
            return True, Reason.UNAVAILABLE
        if self.access is AccessResult.RESTRICTED:
            return False, Reason.RESTRICTED
        return self._answer_in_outage(now, policy)

    def _answer_in_outage(self, now: float, policy: Policy) -> tuple[bool, Reason]:
        assert self.since is not None
        if now < self.since + max(policy.outage_grace, policy.stale_window):
            return False, Reason.UNREACHABLE
        is_open = policy.after_stale_window is not AfterStaleWindow.DISALLOW
        is_ours = self.meaning is Meaning.POOL
        return is_open and not is_ours, Reason.UNREACHABLE_TOO_LONG


def beliefs_after(
    previous: Belief | None,
    attempt: Attempt,
    *,
    now: float,
    next_at: float,
    policy: Policy,
) -> Iterator[Belief]:
    """What may be believed once `attempt` has ended at `now`.

    Several things where failures of the caller's own pool came before: the run may
    count from there, or from the first that is the origin's, then with or without
    the copy that answered meanwhile.
    """
    meaning = _meaning(attempt, policy)
    access = _access(meaning, policy)
    belief = Belief(
        policy=policy,
        meaning=meaning,
        access=access,
        status=_status(attempt, meaning),
        checked_at=now,
        next_at=next_at,
        kept_until=next_at + policy.stale_window,
    )
    if access is AccessResult.UNREACHABLE:
        knows_nothing = previous is None or previous.knows_nothing
        belief = replace(belief, knows_nothing=knows_nothing)
        before = _usable(previous, now)
        yield _in_outage(belief, before, policy)
        if before is not None and before.meaning is Meaning.POOL:
            anew = replace(before, since=None)
            yield _in_outage(belief, anew, policy)
            without_copy = replace(
                anew, rulebook=None, rules_came_at=0.0, rules_fresh_until=0.0
            )
            yield _in_outage(belief, without_copy, policy)
    elif access is AccessResult.SUCCESSFUL:
        belief = replace(
            belief,
            rulebook=attempt.answer.rulebook,
            rules_came_at=now,
            rules_fresh_until=next_at,
        )
        yield replace(belief, kept_until=_kept_until(belief, policy))
    else:
        yield belief


def mixed(new: Belief, old: Belief, now: float, policy: Policy) -> Iterator[Belief]:
    """What may be believed where `new` is an outage, and `old` still has rules.

    A failure that knew less than the store, because that could not be read before.
    """
    if (
        new.access is not AccessResult.UNREACHABLE
        or new.meaning is Meaning.REFUSED
        or now >= old.kept_until
        or old.heard_last(now) <= new.heard_last(now)
    ):
        return
    assert new.since is not None
    since = new.since
    if old.since is None or old.meaning is Meaning.REFUSED:
        since = min(max(since, old.checked_at), new.checked_at)
    elif old.meaning is not Meaning.POOL:
        since = min(since, old.since)
    is_over = now >= since + policy.stale_window
    if is_over and policy.after_stale_window is not AfterStaleWindow.LAST_COPY:
        return
    belief = replace(
        new,
        since=since,
        rulebook=old.rulebook,
        rules_came_at=old.rules_came_at,
        rules_fresh_until=old.rules_fresh_until,
        knows_nothing=False,
    )
    yield replace(belief, kept_until=_kept_until(belief, policy))


def pause_after(
    previous: Belief | None, attempt: Attempt, *, now: float, policy: Policy
) -> tuple[float, float]:
    """The shortest and the longest time from the end of `attempt` to the next."""
    meaning = _meaning(attempt, policy)
    is_followed = attempt.requests > attempt.answer.redirects
    hint = attempt.answer.hint
    is_outage = _access(meaning, policy) is AccessResult.UNREACHABLE
    is_heard = is_followed and hint.is_wait is is_outage
    asked = hint.seconds if is_heard else None
    if asked is not None and hint.is_dated:
        # An HTTP-date has whole seconds.
        asked = _floor(attempt.asked_at + asked) - now
    if not is_outage:
        if asked is None:
            return (policy.default_lifetime, policy.default_lifetime)
        lifetime = min(max(asked, policy.min_lifetime), policy.max_lifetime)
        return lifetime, lifetime
    if asked is not None:
        wait = min(max(asked, policy.retry_initial), policy.retry_after_max)
        return wait, wait
    usable = _usable(previous, now)
    failures = usable.failures if usable else 0
    status = _status(attempt, meaning)
    first = policy.retry_initial_503 if status == 503 else policy.retry_initial
    exponent = 0 if meaning is Meaning.POOL else failures
    # Beyond thirty failures any factor above 1 has long reached the longest wait.
    factor = policy.retry_factor ** min(exponent, 30)
    wait = min(first * factor, policy.retry_max)
    return wait, wait * _MOST_JITTER


def _floor(seconds: float) -> float:
    return math.floor(seconds) if math.isfinite(seconds) else seconds


def _meaning(attempt: Attempt, policy: Policy) -> Meaning:
    answer = attempt.answer
    if answer.redirects > policy.max_redirects:
        return Meaning.BROKEN_REDIRECT
    if answer.meaning is Meaning.MISSING_PAGE and not policy.detect_missing_page:
        return Meaning.OUTAGE
    if answer.end is End.PRIVATE and policy.max_redirects == 0:
        return Meaning.BROKEN_REDIRECT
    return answer.meaning


def _access(meaning: Meaning, policy: Policy) -> AccessResult:
    match meaning:
        case Meaning.RULES:
            return AccessResult.SUCCESSFUL
        case Meaning.MISSING:
            return AccessResult.UNAVAILABLE
        case Meaning.MISSING_PAGE:
            is_read = policy.detect_missing_page
            return AccessResult.UNAVAILABLE if is_read else AccessResult.UNREACHABLE
        case Meaning.DENIED:
            return policy.on_access_denied
        case Meaning.TOO_MANY_REQUESTS:
            return policy.on_too_many_requests
        case Meaning.BROKEN_REDIRECT:
            return policy.on_broken_redirect
        case _:
            return AccessResult.UNREACHABLE


def _status(attempt: Attempt, meaning: Meaning) -> int | None:
    """The status of an answer; a failure has none."""
    if meaning is Meaning.BROKEN_REDIRECT:
        return attempt.status
    return attempt.answer.status


def _usable(previous: Belief | None, now: float) -> Belief | None:
    if previous is None or now >= previous.kept_until:
        return None
    return previous


def _in_outage(belief: Belief, previous: Belief | None, policy: Policy) -> Belief:
    now = belief.checked_at
    since = now
    failures = 0
    if previous is not None:
        failures = previous.failures
        belief = replace(
            belief,
            rulebook=previous.rulebook,
            rules_came_at=previous.rules_came_at,
            rules_fresh_until=previous.rules_fresh_until,
        )
        was_refused = previous.meaning is Meaning.REFUSED
        goes_on = not was_refused or belief.meaning is Meaning.REFUSED
        if previous.since is not None and goes_on:
            since = min(previous.since, now)
    is_over = now >= since + policy.stale_window
    is_let_go = policy.after_stale_window is not AfterStaleWindow.LAST_COPY
    if belief.meaning is Meaning.REFUSED or (is_over and is_let_go):
        belief = replace(
            belief, rulebook=None, rules_came_at=0.0, rules_fresh_until=0.0
        )
    belief = replace(
        belief,
        since=since,
        failures=failures + (belief.meaning is not Meaning.POOL),
    )
    return replace(belief, kept_until=_kept_until(belief, policy))


def _kept_until(belief: Belief, policy: Policy) -> float:
    """Nobody asks for so long that the copy is of no use; or it always is."""
    is_last_copy = policy.after_stale_window is AfterStaleWindow.LAST_COPY
    if belief.rulebook is not None and is_last_copy:
        return math.inf
    return belief.next_at + policy.stale_window
