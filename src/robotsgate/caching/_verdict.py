"""Decides what applies to an origin and to a URL on it, and says why.

Pure: the time is an argument. Source: RFC 9309 §2.3.1.

Think of it this way: an answer applies while it is fresh, or if no fetch has failed
since. Otherwise `_phases` lists the phases of the outage, some of which may be empty.
Elapsed time ends each of them, but is not enough to allow everything: see
`_is_at_fault`. A new answer ends the outage in any phase.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from robotsgate._public import set_module
from robotsgate.caching._entry import LARGEST_SKEW, OVERRIDE, limit, span
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit
from robotsgate.errors import RobotsError
from robotsgate.robotstxt._model import JSONValue, RuleKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.caching._entry import Answer, Entry, Outage
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._model import Match, Rule


@set_module("robotsgate")
class Reason(enum.Enum):
    """The reason for a verdict."""

    ALLOWED_BY_RULE = "allowed-by-rule"
    """Allowed by an allow line, which is `Verdict.rule`."""
    DISALLOWED_BY_RULE = "disallowed-by-rule"
    """Disallowed by a disallow line, which is `Verdict.rule`."""
    NO_MATCHING_RULE = "no-matching-rule"
    """Allowed, because no rule in the agent's group matches."""
    NO_GROUP = "no-group"
    """Allowed, because the file has no group for the agent or for "*"."""
    ROBOTS_TXT = "robots-txt"
    """The URL is /robots.txt itself, which is always allowed (RFC 9309 §2.2.2)."""
    UNAVAILABLE = "unavailable"
    """Allowed, because there is no robots.txt (RFC 9309 §2.3.1.3)."""
    UNREACHABLE = "unreachable"
    """Disallowed, because the origin failed and there is no copy (§2.3.1.4)."""
    UNREACHABLE_TOO_LONG = "unreachable-too-long"
    """The origin has been failing for longer than `Policy.unreachable_limit`.

    `Policy.after_unreachable_limit` determines what is allowed then.
    """
    ADDRESS_REFUSED = "address-refused"
    """Disallowed, because the address guard refused the origin's address."""
    RESTRICTED = "restricted"
    """Disallowed, because the policy treats the response as "keep out"."""
    OVERRIDDEN = "overridden"
    """Determined by an override for the origin; `Verdict.rule` is a line in it."""


# How much of a redirect's URL is shown; up to 2 KB of it are kept.
_LONGEST_URL = 200

_SENTENCES = {
    Reason.NO_MATCHING_RULE: "none of the rules for {group} in {file} match",
    Reason.NO_GROUP: "{file} has no group for this agent",
    Reason.ROBOTS_TXT: "robots.txt itself may always be fetched",
    Reason.UNAVAILABLE: "{file} is unavailable ({evidence})",
    Reason.UNREACHABLE: (
        "{file} is unreachable ({evidence}), and there is no usable cached copy"
    ),
    Reason.UNREACHABLE_TOO_LONG: (
        "{file} has been unreachable for too long ({evidence})"
    ),
    Reason.ADDRESS_REFUSED: "{file} was not fetched: {evidence}",
    Reason.RESTRICTED: "access to {file} is restricted ({evidence})",
    Reason.OVERRIDDEN: "none of the rules in the override for {file} match",
}


@set_module("robotsgate")
@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(JSONValue):
    """Whether an agent may fetch a URL, and why. Truthy if it may.

    Attributes:
        allowed: whether the agent may fetch the URL.
        url: the URL as passed by the caller, without userinfo.
        agent: the agent as passed by the caller; a sequence becomes a tuple.
        reason: why the URL is allowed or disallowed.
        rule: the allow or disallow line that applies; `None` if there is none.
        group: the product token whose groups apply, "*" for the fallback group, or
            `None` if no group applies.
        access: the access result of the last response while it is fresh, otherwise
            UNREACHABLE; SUCCESSFUL for an override.
        is_stale: whether the rules come from a stale copy that is still used because
            the origin is unreachable.
        origin: scheme, host and port, without a default port.
        status: the HTTP status behind `access`, or the FTP reply 226 or 550; `None`
            if there was no response.
        redirects: the redirects, in order, that were followed by the fetch that
            returned these rules or, if there are no rules, by the last fetch. Each is a
            pair: the target URL, truncated to 2 KB, and the status of the redirect
            response.
        error: what went wrong in the fetch; `None` if nothing did.
        fetched_at: when the response that the verdict is based on was received, in
            epoch seconds; `None` if it is not based on a response.
        fresh_until: when the verdict expires, in epoch seconds; for an unreachable
            origin, when the checker may fetch it again; `None` for an override, which
            stays valid until the checker is closed, and for a `RobotsArchive`.
    """

    allowed: bool
    url: str
    agent: str | tuple[str, ...]
    reason: Reason
    rule: Rule | None
    group: str | None
    access: AccessResult
    is_stale: bool
    origin: str
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    error: str | None
    fetched_at: float | None
    fresh_until: float | None

    def __bool__(self) -> bool:
        """Whether the agent may fetch the URL."""
        return self.allowed

    def __str__(self) -> str:
        """A human-readable sentence, without a final period."""
        sentence = "allowed" if self.allowed else "disallowed"
        file = file_of(self)
        if self.rule is None:
            file += "," if self.redirects else ""
            sentence += f": {reason_text(self, file=file)}"
        else:
            is_override = self.reason is Reason.OVERRIDDEN
            place = f"the override for {file}" if is_override else file
            sentence += f" by {reason_text(self, file=file)} of {place}"
        if self.is_stale and self.reason is not Reason.ROBOTS_TXT:
            sentence += (
                f"; using the cached copy from {date_text(self.fetched_at)},"
                f" because the origin is unreachable ({self.error or self.status})"
            )
        return printable(sentence)


@set_module("robotsgate.caching")
def reason_text(decision: Verdict | Match, *, file: str) -> str:
    """The reason for a verdict or a match in words; `file` names the robots.txt."""
    group = "all agents" if decision.group == "*" else decision.group
    if decision.rule is not None:
        return f"line {decision.rule.line} ({decision.rule}, for {group})"
    if isinstance(decision, Verdict):
        reason, evidence = decision.reason, decision.error or decision.status
    else:
        reason, evidence = reason_of(decision), None
    return _SENTENCES[reason].format(file=file, group=group, evidence=evidence)


def reason_of(match: Match) -> Reason:
    """The reason for a verdict that depends only on the file."""
    if match.is_robots_txt:
        return Reason.ROBOTS_TXT
    if match.rule is not None:
        is_allow = match.rule.kind is RuleKind.ALLOW
        return Reason.ALLOWED_BY_RULE if is_allow else Reason.DISALLOWED_BY_RULE
    return Reason.NO_GROUP if match.group is None else Reason.NO_MATCHING_RULE


@set_module("robotsgate.caching")
def file_of(verdict: Verdict) -> str:
    """The URL of the robots.txt behind `verdict`, and where it redirects to."""
    file = f"{verdict.origin}/robots.txt"
    if not verdict.redirects:
        return file
    target, _ = verdict.redirects[-1]
    more = "…" if len(target) > _LONGEST_URL else ""
    return f"{file}, which redirects to {target[:_LONGEST_URL]}{more}"


@set_module("robotsgate")
class DisallowedError(RobotsError):
    """Raised if robots.txt does not allow the agent to fetch a URL.

    Attributes:
        verdict: the full verdict, including the rule and its line.
    """

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(f"{printable(verdict.url)} is {verdict}")
        self.verdict: Verdict = verdict


@set_module("robotsgate.caching")
def printable(text: str) -> str:
    """`text` with control characters escaped, because they could corrupt a terminal."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1]
        for character in text
    )


@set_module("robotsgate.caching")
def date_text(epoch_seconds: float | None) -> str:
    """A date in UTC as in ISO 8601, in seconds; "unknown date" for `None`."""
    if epoch_seconds is None:
        return "unknown date"
    from datetime import UTC, datetime  # noqa: PLC0415 (rarely needed)

    try:
        moment = datetime.fromtimestamp(epoch_seconds, UTC)
    except (OverflowError, ValueError, OSError):  # a clock set beyond the year 9999
        return f"epoch second {epoch_seconds:.0f}"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


_DAY = 86_400.0

# After one of these answers, an origin stays disallowed however long an outage lasts.
_CLOSED = (AccessResult.RESTRICTED, AccessResult.REFUSED)


class Effect(enum.Enum):
    """What applies to an origin."""

    RULES = "rules"
    """The rules of the last robots.txt (conditional allow)."""

    ALLOW = "allow"
    """Full allow."""

    DISALLOW = "disallow"
    """Full disallow, except for /robots.txt itself."""

    REFUSE = "refuse"
    """Full disallow, even of /robots.txt, because the origin's address was refused."""


_OF_ANSWER = {
    AccessResult.SUCCESSFUL: (Effect.RULES, None),
    AccessResult.UNAVAILABLE: (Effect.ALLOW, Reason.UNAVAILABLE),
    AccessResult.RESTRICTED: (Effect.DISALLOW, Reason.RESTRICTED),
    AccessResult.REFUSED: (Effect.REFUSE, Reason.ADDRESS_REFUSED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What applies to an origin, why, and until when.

    There is no `reason` if the fetched rules apply. `is_outage` tells whether the
    outage decides, not just the answer. From `until` on, in epoch seconds, the decision
    must be made again.
    """

    effect: Effect
    reason: Reason | None = None
    is_outage: bool = False
    until: float


def in_force(entry: Entry, *, now: float, policy: Policy) -> InForce:
    """What applies at `now` according to `entry`, which must be current."""
    answer = entry.answer
    if answer is OVERRIDE:
        return InForce(
            effect=Effect.RULES, reason=Reason.OVERRIDDEN, until=answer.fresh_until
        )
    if answer is not None and (entry.outage is None or answer.is_fresh(now)):
        effect, reason = _OF_ANSWER[answer.access]
        until = min(entry.next_fetch_at, answer.fresh_until)
        return InForce(effect=effect, reason=reason, until=until)
    outage = cast("Outage", entry.outage)  # an entry has one of the two
    phases = _phases(answer, outage, now=now, policy=policy)
    end, effect, reason = next(phase for phase in phases if now < phase[0])
    until = min(end, outage.retry_at)
    if answer is not None and answer.is_ahead(now):  # it may be fresh from then on
        until = min(until, answer.answered_at - LARGEST_SKEW)
    return InForce(effect=effect, reason=reason, is_outage=True, until=until)


def explain(
    entry: Entry,
    decision: InForce,
    match: Match,
    *,
    url: str,
    agent: str | tuple[str, ...],
) -> Verdict:
    """The verdict for one URL.

    For a full allow or a full disallow, only `match.is_robots_txt` is used. `url` has
    no userinfo.
    """
    has_rules = decision.effect is Effect.RULES
    answer = entry.answer
    decides = answer if has_rules or not decision.is_outage else None
    if answer is OVERRIDE:
        decides = None
    # The answer applies while it is fresh, even if an early refresh has failed.
    source = cast("Answer | Outage", entry.outage if decision.is_outage else answer)
    return Verdict(
        allowed=match.is_robots_txt
        or decision.effect is Effect.ALLOW
        or (has_rules and match.allowed),
        url=url,
        agent=agent,
        reason=reason_of(match)
        if match.is_robots_txt or decision.reason is None
        else decision.reason,
        rule=match.rule if has_rules else None,
        group=match.group if has_rules else None,
        access=AccessResult.UNREACHABLE
        if decision.is_outage
        else cast("Answer", answer).access,
        is_stale=decision.is_outage and has_rules,
        origin=entry.origin,
        status=source.status,
        redirects=(decides or source).redirects,
        error=source.error,
        fetched_at=None if decides is None else decides.answered_at,
        fresh_until=_fresh_until(entry, decision),
    )


def _phases(
    answer: Answer | None, outage: Outage, *, now: float, policy: Policy
) -> Iterator[tuple[float, Effect, Reason | None]]:
    """The end, effect and reason of each phase; the first whose end is ahead applies.

    The last phase never ends.
    """
    access = None if answer is None else answer.access
    closed = Effect.REFUSE if access is AccessResult.REFUSED else Effect.DISALLOW
    yield outage.since + policy.outage_grace, closed, Reason.UNREACHABLE
    if answer is not None and access is AccessResult.SUCCESSFUL:
        yield _copy_until(answer, outage, policy), Effect.RULES, None
    opens_at = _opens_at(answer, outage, now=now, policy=policy)
    yield opens_at, closed, Reason.UNREACHABLE
    is_open = (
        policy.after_unreachable_limit is not AfterUnreachableLimit.DISALLOW
        and access not in _CLOSED
        and _is_at_fault(answer, outage, opens_at=opens_at, policy=policy)
    )
    effect = Effect.ALLOW if is_open else closed
    yield math.inf, effect, Reason.UNREACHABLE_TOO_LONG


def _copy_until(answer: Answer, outage: Outage, policy: Policy) -> float:
    if policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY:
        return math.inf
    began_in_time = outage.since < answer.fresh_until + policy.stale_window
    return outage.since + policy.stale_window if began_in_time else -math.inf


def _opens_at(
    answer: Answer | None, outage: Outage, *, now: float, policy: Policy
) -> float:
    """When the limit ends, counting from the first evidence; never without evidence.

    This is never before the answer becomes stale, because fetches that fail before then
    are early refreshes.
    """
    if outage.evidence_since is None:
        return math.inf
    opens_at = outage.evidence_since + span(answer, policy)
    if answer is None or answer.is_ahead(now):
        return opens_at
    return max(opens_at, answer.fresh_until)


def _is_at_fault(
    answer: Answer | None, outage: Outage, *, opens_at: float, policy: Policy
) -> bool:
    """Whether the origin has been failing for as long as the limit, and still is.

    Elapsed time is not enough. There must be evidence from enough different days, and
    the last attempt must be evidence dated after the limit.
    """
    most_days = max(1.0, limit(answer, policy) / _DAY)
    return (
        outage.last_evidence_at == outage.last_attempt_at
        and outage.last_evidence_at >= opens_at
        and outage.days >= min(policy.days_of_evidence, most_days)
    )


def _fresh_until(entry: Entry, decision: InForce) -> float | None:
    if decision.is_outage:
        return entry.next_fetch_at
    answer = cast("Answer", entry.answer)
    return None if answer is OVERRIDE else answer.fresh_until
