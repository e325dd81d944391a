"""Selects the capture of an origin that applied on a given date. Pure."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from robotsgate.caching._access_result import is_server_error
from robotsgate.caching._outcome import AccessResult
from robotsgate.caching._policy import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from robotsgate.archive._response import ArchivedResponse

# A capture without a date sorts before all others.
_NO_DATE = -1.0


def last_capture(
    captures: Iterable[ArchivedResponse],
    *,
    as_of: float | None = None,
    policy: Policy = Policy(),
) -> ArchivedResponse | None:
    """The last capture of an origin, or the last good copy before an outage.

    A 429 or 5xx is skipped if the last capture with another status was successful and
    is at most `Policy.stale_window` older, because a crawler would have used its cached
    copy. Nothing is skipped if the policy has an `outage_grace`; a 429 is skipped only
    if the policy treats 429 as unreachable.

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
        (one for one in captures if as_of is None or 0 <= _date(one) <= as_of),
        key=_date,
    )
    if not in_order:
        return None
    last = in_order[-1]
    answers = (one for one in reversed(in_order) if not _is_failure(one, policy))
    answer = next(answers, last)
    is_copy = (
        200 <= answer.status <= 299  # noqa: PLR2004
        and answer.status != HTTPStatus.PARTIAL_CONTENT
        and _date(last) - _date(answer) <= policy.stale_window
    )
    keeps_copies = policy.stale_window > 0 and policy.outage_grace == 0
    return answer if is_copy and keeps_copies else last


def _date(capture: ArchivedResponse) -> float:
    return _NO_DATE if capture.fetched_at is None else capture.fetched_at


def _is_failure(capture: ArchivedResponse, policy: Policy) -> bool:
    if capture.status == HTTPStatus.TOO_MANY_REQUESTS:
        return policy.on_too_many_requests is AccessResult.UNREACHABLE
    return is_server_error(capture.status)
