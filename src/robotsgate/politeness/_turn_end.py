"""What a turn reports about its host: a response or a failure.

There is one rule for all turns, in tasks and threads, including those of wrapped
clients and of robots.txt fetches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from robotsgate.caching._freshness import ASK_FOR_LESS, seconds_asked_for
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._policy import Policy


class Report(NamedTuple):
    """What is known about a host at the end of a turn.

    Attributes:
        end: how the turn ended.
        cause: the cause of a block, as in `HostBlocked`; empty if there is none.
        retry_after: how many seconds the host asked to wait; `None` if it did not.
    """

    end: TurnEnd
    cause: str = ""
    retry_after: float | None = None


def has_three_digits(status: int | None) -> bool:
    """Whether `status` has three digits, or is `None`."""
    return status is None or 100 <= status <= 999  # noqa: PLR2004


def report_of(
    status: int | None,
    headers: Mapping[str, str],
    *,
    now: float,
    policy: Policy,
    is_failure: bool = False,
) -> Report:
    """The report for a response.

    Args:
        status: the status, or `None` if it is unknown. Without three digits, it counts
            as a failure.
        headers: the headers; the names are lower-case.
        now: the current time, in epoch seconds.
        policy: limits the Retry-After.
        is_failure: whether the response is unusable, or there was none.
    """
    seconds = seconds_asked_for(status, headers, now=now, policy=policy)
    if status in ASK_FOR_LESS:
        return Report(TurnEnd.INCIDENT, str(status), seconds)
    if is_failure or not has_three_digits(status):
        return Report(TurnEnd.FAILURE, "failure", seconds)
    return Report(TurnEnd.GOOD, "", seconds)


def retry_after_in(headers: Any) -> str:  # noqa: ANN401 (any client's)
    """The Retry-After in `headers`; empty if there is none.

    Raises the same errors as `header_values`.
    """
    return ", ".join(header_values(headers, "retry-after"))
