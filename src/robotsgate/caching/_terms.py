"""Decides which stored entries a policy may use, and for how long.

Pure. Source: RFC 9309 §2.3.1.4 and §2.4.
"""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING

from robotsgate.caching._access import AccessResult
from robotsgate.caching._policy import AfterUnreachableLimit, Policy

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Entry

_TWO_DAYS = 2 * 86_400.0

# The fields that decide what a fetch can bring and what it means, with the names
# that they have in a store for ever.
_TERMS = {
    "guard": "address_guard",
    "networks": "allowed_networks",
    "redirects": "max_redirects",
    "bytes": "max_body_bytes",
    "missing": "detect_missing_page",
    "denied": "on_access_denied",
    "many": "on_too_many_requests",
    "hops": "on_too_many_redirects",
    "limit": "after_unreachable_limit",
}
_USUAL = Policy()


def terms_of(policy: Policy) -> str:
    """The fields of `policy` that an entry depends on and that are not the default.

    Empty for the default policy. Entries of other terms must not be used, not even
    their copies: a copy may come from an address that `policy` would not dial, or may
    have been cut at a smaller limit.
    """
    return " ".join(
        f"{term}={_text(getattr(policy, name))}"
        for term, name in _TERMS.items()
        if getattr(policy, name) != getattr(_USUAL, name)
    )


def key_of(origin: str, terms: str) -> str:
    """The key of an entry in a store."""
    return f"{origin} {terms}" if terms else origin


def limit(answer: Answer | None, policy: Policy) -> float:
    """How long an unreachable origin with this last answer stays closed, seconds."""
    without_copy = policy.unreachable_limit_without_copy
    if without_copy is None or _is_successful(answer):
        return policy.unreachable_limit
    return without_copy


def span(answer: Answer | None, policy: Policy) -> float:
    """For how many seconds an outage after this answer can change what is in force."""
    stale_window = policy.stale_window if _is_successful(answer) else 0.0
    return max(limit(answer, policy), policy.outage_grace, stale_window)


def longest_gap(answer: Answer | None, policy: Policy) -> float:
    """Seconds without a fetch after which a failure begins another outage."""
    return max(span(answer, policy), _TWO_DAYS)


def keep_until(entry: Entry, policy: Policy) -> float:
    """When `entry` ceases to count, epoch seconds; infinite: never."""
    answer, outage = entry.answer, entry.outage
    times = []
    if answer is not None:
        if answer.access is AccessResult.UNAVAILABLE:
            times.append(answer.fresh_until)
        elif (
            _is_successful(answer)
            and policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY
        ):
            return math.inf
        else:
            times.append(answer.fresh_until + span(answer, policy))
    if outage is not None:
        times.append(outage.retry_at + longest_gap(answer, policy))
    return max(times)


def _is_successful(answer: Answer | None) -> bool:
    return answer is not None and answer.access is AccessResult.SUCCESSFUL


def _text(value: object) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    return ",".join(value) if isinstance(value, tuple) else str(value)
