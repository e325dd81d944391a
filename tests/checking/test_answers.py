"""What an answer opens and closes, through the whole checker.

What each status means is a table in tests/caching; here it meets what is known.
"""

from __future__ import annotations

import httpx
import pytest

from robotsgate import AccessResult
from robotsgate.testing import ManualClock

from .builders import (
    AGENT,
    DAY,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    RULES,
    checker_of,
    site_of,
)

pytestmark = pytest.mark.anyio

NOT_FOUND = "<title>404 Not Found | Example</title>"
OUTAGE = "<title>502 Bad Gateway - not found</title>"
GUIDE = "<title>How to fix 404 not found errors</title><p>Not found</p>"


@pytest.mark.parametrize(
    ("status", "body", "headers", "allowed"),
    [
        pytest.param(500, NOT_FOUND, {}, True, id="a title that is the phrase"),
        pytest.param(502, "<h1>Not found</h1>", {}, True, id="such a first heading"),
        pytest.param(500, "<p>Not found</p>", {}, False, id="only its body has it"),
        pytest.param(500, GUIDE, {}, False, id="a title that holds the phrase"),
        pytest.param(502, OUTAGE, {}, False, id="a title that names an outage as well"),
        pytest.param(503, NOT_FOUND, {}, False, id="a 503"),
        pytest.param(
            500, NOT_FOUND, {"retry-after": "60"}, False, id="with Retry-After"
        ),
    ],
)
@pytest.mark.parametrize("knows", ["nothing", "a copy", "a 404"])
async def test_5xx_counts_as_a_404_only_where_its_page_is_one_and_there_is_no_copy(
    status: int, body: str, headers: dict[str, str], knows: str, *, allowed: bool
) -> None:
    clock, site = ManualClock(), site_of()
    checker = checker_of(site, clock=clock)
    if knows != "nothing":
        site.serve(ORIGIN, RULES, status=404 if knows == "a 404" else 200)
        await checker.prefetch([ORIGIN])
        clock.advance(DAY)
    site.serve(ORIGIN, body, status=status, headers=headers)

    answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    of_the_copy = [False, True]
    assert answers == (of_the_copy if knows == "a copy" else [allowed, allowed])


@pytest.mark.parametrize(
    ("status", "location"),
    [
        pytest.param(206, None, id="206"),
        pytest.param(304, None, id="304"),
        pytest.param(304, "/a", id="304 with a Location"),
        pytest.param(302, None, id="a redirect without a Location"),
        pytest.param(301, "file:///etc/passwd", id="a redirect to file:"),
        pytest.param(308, "ftp://example.com/robots.txt", id="a redirect to ftp:"),
        pytest.param(307, "http://", id="a redirect without a host"),
        pytest.param(407, None, id="407"),
    ],
)
async def test_broken_answer_is_a_server_error_and_keeps_the_copy(
    status: int, location: str | None
) -> None:
    clock, site = ManualClock(), site_of()
    checker = checker_of(site, clock=clock)
    await checker.prefetch([ORIGIN])
    clock.advance(DAY)
    headers = {} if location is None else {"location": location}
    site.serve(ORIGIN, "User-agent: *\nAllow: /\n", status=status, headers=headers)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.is_stale) == (False, True)
    assert (verdict.access, verdict.status) == (AccessResult.UNREACHABLE, status)
    assert len(site.requests) == 2


@pytest.mark.parametrize("is_own", [False, True], ids=["a transport", "a client"])
async def test_redirect_to_itself_with_a_cookie_is_a_loop_and_so_a_404(
    *, is_own: bool
) -> None:
    """The client keeps the cookie, and would be served if it came again."""
    requests = 0

    async def answer(request: httpx.Request) -> httpx.Response:
        nonlocal requests
        requests += 1
        if "cookie" in request.headers:
            return httpx.Response(200, text="User-agent: *\nDisallow: /\n")
        headers = {"location": "/robots.txt", "set-cookie": "been=here; Path=/"}
        return httpx.Response(302, headers=headers)

    transport = httpx.MockTransport(answer)
    client = httpx.AsyncClient(transport=transport) if is_own else transport

    verdict = await checker_of(client).check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.access) == (True, AccessResult.UNAVAILABLE)
    assert requests == 1
