"""What a turn reports about its host: a response, a failure or an exception.

There is one rule for all turns, in tasks and threads, including those of wrapped
clients and of robots.txt fetches.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from robotsgate.caching._freshness import ASK_FOR_LESS, seconds_asked_for
from robotsgate.fetching._fetcher import is_network_failure
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from robotsgate.caching._policy import Policy

# In a group of exceptions, the first of these counts. UNUSED is not one of them: before
# the exception, the turn may have sent a request.
_GRAVEST_FIRST = (TurnEnd.INCIDENT, TurnEnd.FAILURE, TurnEnd.GOOD, TurnEnd.UNJUDGED)

# Where the exceptions of clients have the URL of their request; in this order, their
# status and headers.
_URLS = ("request.url", "response.url", "request_info.real_url", "url")
_STATUSES = (
    ("response.status_code", "response.headers"),
    ("response.status", "response.headers"),
    ("status", "headers"),
)


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


UNJUDGED = Report(TurnEnd.UNJUDGED)
UNUSED = Report(TurnEnd.UNUSED)


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
    """The report for a response with a `status`, unless that is unknown (`None`).

    A status without three digits counts as a failure. The names in `headers` are
    lower-case.
    """
    seconds = seconds_asked_for(status, headers, now=now, policy=policy)
    if status in ASK_FOR_LESS:
        return Report(TurnEnd.INCIDENT, str(status), seconds)
    if is_failure or not has_three_digits(status):
        return Report(TurnEnd.FAILURE, "failure", seconds)
    return Report(TurnEnd.GOOD, "", seconds)


def report_of_error(
    error: BaseException,
    *,
    is_elsewhere: Callable[[object], bool],
    now: float,
    policy: Policy,
) -> Report:
    """The report for an exception that ended a turn.

    An exception with a status counts like a response, and the network's exceptions are
    failures. All others, including those of robotsgate and of this machine, say nothing
    about the host, and neither do those of a request whose URL `is_elsewhere`. In a
    group, the gravest exception counts.
    """
    errors = [error]
    for one in errors:  # a recursive crawl may nest a thousand groups
        if isinstance(one, BaseExceptionGroup):
            errors += one.exceptions
    reports = [
        _report_of_one(one, is_elsewhere=is_elsewhere, now=now, policy=policy)
        for one in errors
    ]
    return min(reports, key=_gravity)


def _report_of_one(
    error: BaseException,
    *,
    is_elsewhere: Callable[[object], bool],
    now: float,
    policy: Policy,
) -> Report:
    """Like `report_of_error`; a group says nothing about the host."""
    if any(is_elsewhere(_read(error, attrgetter(path))) for path in _URLS):
        return UNJUDGED
    for path, headers_path in _STATUSES:
        status = _read(error, attrgetter(path))
        headers = _read(error, attrgetter(headers_path), ())
        # aiohttp gives its own parse errors a status, but no headers.
        if isinstance(status, int) and 100 <= status <= 599 and headers is not None:  # noqa: PLR2004
            sent = {"retry-after": _read(headers, retry_after_in, "")}
            return report_of(status, sent, now=now, policy=policy)
    if is_network_failure(error):
        return Report(TurnEnd.FAILURE, type(error).__name__)
    return UNJUDGED


def retry_after_in(headers: Any) -> str:  # noqa: ANN401 (any client's)
    """The Retry-After in `headers`; empty if there is none.

    Raises the same errors as `header_values`.
    """
    return ", ".join(header_values(headers, "retry-after"))


def _gravity(report: Report) -> tuple[int, float]:
    """A sort key: the gravest report, with the longest Retry-After, comes first."""
    return _GRAVEST_FIRST.index(report.end), -(report.retry_after or 0.0)


def _read(value: object, read: Callable[[Any], Any], default: object = None) -> Any:  # noqa: ANN401
    """What `read` finds in another library's `value`; `default` if it raises."""
    try:
        return read(value)
    except Exception:  # noqa: BLE001 (for example, httpx's RuntimeError)
        return default
