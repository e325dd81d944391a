"""What responses report about a host."""

from __future__ import annotations

from robotsgate import Policy
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.politeness._turn_end import Report, report_of
from tests.checking.builders import NOW
from tests.tables import cases

GOOD = Report(TurnEnd.GOOD)
BUSY = Report(TurnEnd.INCIDENT, "429", 7.0)
FAILED = Report(TurnEnd.FAILURE, "failure")


def wait(seconds: float) -> Report:
    """A good response that asks to wait."""
    return Report(TurnEnd.GOOD, "", seconds)


@cases("status retry_after is_failure expected", {
    "2xx: no other request is needed": (200, "7", False, GOOD),
    "304: no other request is needed": (304, "7", False, GOOD),
    "429": (429, "7", False, BUSY),
    "503 without Retry-After": (503, "", False, Report(TurnEnd.INCIDENT, "503")),
    "404": (404, "", False, GOOD),
    "301 with Retry-After": (301, "7", False, wait(7)),
    "403 with Retry-After": (403, "7", False, wait(7)),
    "500 with a date": (500, "Fri, 15 Jan 2027 08:00:20 GMT", False, wait(20)),
    "500 with an invalid Retry-After": (500, "soon", False, GOOD),
    "more than retry_after_max": (529, "900", False, wait(99)),
    "unknown status": (None, "7", False, wait(7)),
    "status without three digits": (0, "", False, FAILED),
    "failure": (None, "", True, FAILED),
    "failure with Retry-After": (500, "7", True, FAILED._replace(retry_after=7)),
    "429, although the body is unusable": (429, "7", True, BUSY),
})  # fmt: skip
def test_report_of_a_response(
    status: int | None, retry_after: str, expected: Report, *, is_failure: bool
) -> None:
    report = report_of(
        status,
        {"retry-after": retry_after},
        now=NOW,
        policy=Policy(retry_after_max=99),
        is_failure=is_failure,
    )

    assert report == expected
