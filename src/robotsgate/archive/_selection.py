"""Selects the capture of an origin that applied on a given date. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.caching._outcome import Outcome, access_result, is_wall
from robotsgate.caching._policy import AccessResult, Policy
from robotsgate.urls._url import is_redirect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robotsgate.archive._response import ArchivedResponse

NO_DATE = -1.0
"""The date of a response without one: earlier than any real date."""


def last_capture(
    captures: Iterable[ArchivedResponse],
    *,
    as_of: float | None = None,
    policy: Policy = Policy(),
) -> ArchivedResponse | None:
    """The last capture of an origin, or the last good copy before an outage.

    A capture that means "unreachable" under `policy`, such as a 429 or 5xx, is skipped
    if the last other capture was successful and is at most `Policy.stale_window` older,
    because a crawler would have used its cached copy. Nothing is skipped if the policy
    has an `outage_grace`. An unreadable capture counts as successful.

    Args:
        captures: the captures of one origin, in any order; among captures with the same
            date, the last one counts as the latest.
        as_of: a date in epoch seconds; captures that are later or have no date are
            ignored. With `None`, all captures are used, and those without a date count
            as the oldest.
        policy: the `RobotsArchive`'s policy.

    Returns:
        One of `captures`, or `None` if there are none to choose from.
    """
    in_order = sorted(
        (one for one in captures if as_of is None or 0 <= date_of(one) <= as_of),
        key=date_of,
    )
    if not in_order:
        return None
    last = in_order[-1]
    answers = (
        one
        for one in reversed(in_order)
        if _access(one, policy) is not AccessResult.UNREACHABLE
    )
    answer = next(answers, last)
    is_copy = (
        _access(answer, policy) is AccessResult.SUCCESSFUL
        and date_of(last) - date_of(answer) <= policy.stale_window
    )
    keeps_copies = policy.stale_window > 0 and policy.outage_grace == 0
    return answer if is_copy and keeps_copies else last


def date_of(capture: ArchivedResponse) -> float:
    """When `capture` was fetched, in epoch seconds, or `NO_DATE`."""
    return NO_DATE if capture.fetched_at is None else capture.fetched_at


def _access(capture: ArchivedResponse, policy: Policy) -> AccessResult | None:
    """The access result of `capture` if there is a copy; `None` for a redirect."""
    status, body = capture.status, capture.body
    if status is None:
        return AccessResult.SUCCESSFUL
    if is_redirect(status):
        return None
    end = Outcome(status=status, body=body, is_wall=is_wall(status, body, policy))
    return access_result(end, policy, origin="", last_access=AccessResult.SUCCESSFUL)
