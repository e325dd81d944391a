"""What the responses and exceptions of real clients report about a host."""

from __future__ import annotations

import json
import urllib.error
from email.message import Message
from functools import partial
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
from curl_cffi.requests import Headers
from curl_cffi.requests import Response as CurlResponse
from curl_cffi.requests.exceptions import HTTPError
from multidict import CIMultiDict
from yarl import URL

from robotsgate import InvalidURLError, Policy, TurnNotInTimeError
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.politeness._turn_end import Report, report_of, report_of_error
from tests.checking.builders import NOW, OTHER_ORIGIN, PUBLIC
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    Raise = Callable[..., Exception]

GOOD = Report(TurnEnd.GOOD)
UNJUDGED = Report(TurnEnd.UNJUDGED)
BUSY = Report(TurnEnd.INCIDENT, "429", 7.0)
FAILED = Report(TurnEnd.FAILURE, "failure")
HEADERS = {"Retry-After": "7"}
ELSEWHERE = f"{OTHER_ORIGIN}/page"


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


def report(error: BaseException) -> Report:
    return report_of_error(
        error,
        is_elsewhere=lambda url: str(url).startswith(OTHER_ORIGIN),
        now=NOW,
        policy=Policy(),
    )


def of_httpx(library: Any, status: int, url: str = PUBLIC) -> Exception:  # noqa: ANN401 (a module)
    request = library.Request("GET", url)
    response = library.Response(status, headers=HEADERS, request=request)
    error: Exception = library.HTTPStatusError("", request=request, response=response)
    return error


def of_aiohttp(status: int, url: str = PUBLIC) -> Exception:
    headers: Any = CIMultiDict(HEADERS)
    info = aiohttp.RequestInfo(URL(url), "GET", headers, URL(url))
    return aiohttp.ClientResponseError(info, (), status=status, headers=headers)


def of_requests(status: int, url: str = PUBLIC) -> Exception:
    response = requests.Response()
    response.status_code, response.url = status, url
    response.headers.update(HEADERS)
    return requests.HTTPError(response=response)


def in_groups(error: Exception, levels: int) -> Exception:
    for _ in range(levels):
        error = ExceptionGroup("", [error])
    return error


def of_curl(status: int, url: str = PUBLIC) -> Exception:
    response: Any = CurlResponse()
    response.status_code, response.url, response.headers = status, url, Headers(HEADERS)
    return HTTPError("", 0, response)


def of_urllib(status: int, url: str = PUBLIC) -> Exception:
    headers = Message()
    headers["Retry-After"] = "7"
    with urllib.error.HTTPError(url, status, "", headers, BytesIO()) as error:
        return error


def with_attributes(**attributes: object) -> Exception:
    error = Exception()
    vars(error).update(attributes)
    return error


def of_another_client(status: int, url: str = PUBLIC) -> Exception:
    response = SimpleNamespace(status=status, url=url, headers=HEADERS)
    return with_attributes(response=response)


CLIENTS = {
    "httpx": partial(of_httpx, httpx),
    "httpx2": partial(of_httpx, httpx2),
    "aiohttp": of_aiohttp,
    "requests": of_requests,
    "curl_cffi": of_curl,
    "urllib": of_urllib,
    "another client": of_another_client,
}


@pytest.mark.parametrize("error_of", CLIENTS.values(), ids=CLIENTS)
def test_exception_with_a_status_counts_like_a_response_of_its_host(
    error_of: Raise,
) -> None:
    """An ordinary 404 used to block the host for a minute."""
    assert report(error_of(404)) == wait(7)
    assert report(error_of(429)) == BUSY
    assert report(error_of(429, ELSEWHERE)) == UNJUDGED


@cases("error expected", {
    "no headers": (with_attributes(status=429), BUSY._replace(retry_after=None)),
    "unreadable URL": (
        with_attributes(response=httpx.Response(429, headers=HEADERS)), BUSY,
    ),
    "unreadable headers": (with_attributes(status=404, headers=7), GOOD),
    "status of a library's own": (with_attributes(status=1_001), UNJUDGED),
    "status is text": (with_attributes(status="429"), UNJUDGED),
    # aiohttp's parser says that an invalid response is a bad request.
    "status without a response": (
        aiohttp.ClientResponseError(None, (), status=400),
        Report(TurnEnd.FAILURE, "ClientResponseError"),
    ),
    "network": (httpx.ConnectError(""), Report(TurnEnd.FAILURE, "ConnectError")),
    "network, on another host": (
        httpx.ConnectError("", request=httpx.Request("GET", ELSEWHERE)), UNJUDGED,
    ),
    "bug": (KeyError("price"), UNJUDGED),
    "not JSON": (json.JSONDecodeError("", "", 0), UNJUDGED),
    "cancellation": (KeyboardInterrupt(), UNJUDGED),
    "refusal": (TurnNotInTimeError("late", ready_at=0.0), UNJUDGED),
    "invalid link": (InvalidURLError("", url=""), UNJUDGED),
})  # fmt: skip
def test_report_of_an_exception(error: BaseException, expected: Report) -> None:
    assert report(error) == expected


@cases("errors expected", {
    "429 first": ([of_requests(429), TimeoutError()], BUSY),
    "then a failure": (
        [of_requests(404), TimeoutError(), KeyError()],
        Report(TurnEnd.FAILURE, "TimeoutError"),
    ),
    "then another status": ([KeyError(), of_requests(404)], wait(7)),
    "then the longest Retry-After": (
        [with_attributes(status=503), of_requests(429), TimeoutError()], BUSY,
    ),
    "nothing": ([KeyError(), KeyboardInterrupt()], UNJUDGED),
    "in groups in the group": ([in_groups(of_requests(429), 1_000)], BUSY),
})  # fmt: skip
def test_gravest_exception_of_a_group_counts(
    errors: list[BaseException], expected: Report
) -> None:
    assert report(BaseExceptionGroup("", errors)) == expected
