"""What a checker reports in verdicts, counters, logs and events."""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING

import httpx
import pytest
import yarl

from robotsgate import AccessResult, FailureKind, MemoryStore, Policy, Reason
from robotsgate.events import RobotsTxtFetched
from robotsgate.testing import ManualClock
from tests.tables import cases

from .builders import (
    AGENT,
    HOUR,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    FailingStore,
    StoreBehind,
    UnreadableSite,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate import RobotsChecker, URLLike
    from robotsgate.events import CheckerEvent

pytestmark = pytest.mark.anyio

SECRET = "https://user:secret@example.com/private?a=@b#c"

CHECKS: dict[str, Callable[[RobotsChecker, str], Awaitable[object]]] = {
    "can_fetch": lambda checker, url: checker.can_fetch(AGENT, url),
    "check": lambda checker, url: checker.check(AGENT, url),
    "can_fetch_many": lambda checker, url: checker.can_fetch_many(AGENT, [url]),
    "refusal": lambda checker, url: checker.refusal(AGENT, url),
}
with_each_check = pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)


@pytest.mark.parametrize(("url", "shown"), [
    (f"{PRIVATE}?x#y", f"{PRIVATE}?x#y"),
    ("HTTPS://EXAMPLE.COM:443/@me/..", "HTTPS://EXAMPLE.COM:443/@me/.."),
    ("https://u:p@h@example.com/\\x", "https://example.com/\\x"),
    (" https://u:p@exam\nple.com?q", "https://example.com?q"),
    (httpx.URL(SECRET), "https://example.com/private?a=@b#c"),
    (yarl.URL(SECRET), "https://example.com/private?a=@b#c"),
], ids=str)  # fmt: skip
async def test_verdict_has_agent_and_url_as_given_but_without_userinfo(
    url: str | URLLike, shown: str
) -> None:
    verdict = await checker_of(site_of()).check(["NewsBot", AGENT], url)

    assert (verdict.url, verdict.agent) == (shown, ("NewsBot", AGENT))


@with_each_check
async def test_checks_are_counted_with_refusals_by_reason(
    check: Callable[[RobotsChecker, str], Awaitable[object]],
) -> None:
    site = site_of()
    site.serve("https://down.example", status=500)
    checker = checker_of(site)

    for url in (PRIVATE, PUBLIC, PRIVATE, ROBOTS_TXT, "https://down.example/"):
        await check(checker, url)
    checker.peek(AGENT, PRIVATE)

    stats = checker.stats
    refusals = {Reason.DISALLOWED_BY_RULE: 3, Reason.UNREACHABLE: 1}
    assert (stats.checks, stats.allowed, stats.disallowed) == (6, 2, refusals)


async def test_stats_count_fetches_by_access_result_as_json() -> None:
    site = site_of()
    statuses = [200, 204, 404, 403, 410, 503, 429]
    urls = [f"https://host{number}.example/" for number in range(7)]
    for url, status in zip(urls, statuses, strict=True):
        site.serve(url, status=status)
    checker = checker_of(site, policy=Policy.strict())

    await checker.can_fetch_many(AGENT, urls)
    await checker.check(AGENT, urls[0])

    read_back = json.loads(json.dumps(checker.stats.as_dict()))
    assert {name: count for name, count in read_back.items() if count} == {
        "checks": 8,
        "allowed": 5,
        "disallowed": {"restricted": 1, "unreachable": 2},
        "fetches": 7,
        "successful": 2,
        "unavailable": 2,
        "unreachable": 2,
        "restricted": 1,
        "store_misses": 7,
        "live_origins": 7,
    }


@with_each_check
async def test_refusals_are_logged_at_level_debug(
    check: Callable[[RobotsChecker, str], Awaitable[object]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Including those found on the fast path, and never with a password."""
    site = site_of("User-agent: *\nDisallow: /private\x1b*\nDisallow: /private")
    site.serve("https://down.example", status=500)
    checker = checker_of(site)

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        for url in (SECRET, PRIVATE, PRIVATE, PUBLIC, "https://down.example/"):
            await check(checker, url)

    shown = SECRET.replace("user:secret@", "")
    by_rule = "disallowed-by-rule, 'Disallow: /private' on line 3"
    assert [record.getMessage() for record in caplog.records] == [
        f"'ExampleBot' may not fetch {shown!r}: {by_rule}",
        f"'ExampleBot' may not fetch {PRIVATE!r}: {by_rule}",
        f"'ExampleBot' may not fetch {PRIVATE!r}: {by_rule}",
        "'ExampleBot' may not fetch 'https://down.example/': unreachable",
    ]
    assert checker.stats.checks == 5


async def test_logging_does_not_match_hostile_rules_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules = "".join(f"Disallow: /{n}*a*a*a*a*a*b\n" for n in range(10_000))
    checker = checker_of(site_of(f"User-agent: *\n{rules}Disallow: /x"))

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        allowed = await checker.can_fetch(AGENT, f"{ORIGIN}/x{'a' * 8_000}")

    assert not allowed
    assert caplog.messages[-1].endswith(": disallowed-by-rule")


async def test_events_can_be_written_as_json() -> None:
    events: list[CheckerEvent] = []
    clock = ManualClock(0)
    site = site_of(status=301, location="https://other.example/robots.txt")
    site.fail("https://other.example", httpx.ConnectError("refused"))
    checker = checker_of(
        site, clock=clock, store=FailingStore("update"), on_event=events.append
    )

    await checker.can_fetch(AGENT, PUBLIC)

    records = [json.loads(json.dumps(event.as_dict())) for event in events]
    assert records[0] == {
        "event": "StoreFailed",
        "origin": ORIGIN,
        "operation": "update",
        "error": "OSError: the disk is full at update",
    }
    assert records[1] | {"next_fetch_at": 0} == {
        "event": "RobotsTxtFetched",
        "origin": ORIGIN,
        "access": "unreachable",
        "previous_access": None,
        "status": None,
        "redirects": [["https://other.example/robots.txt", 301]],
        "headers": [],
        "failure": "connect",
        "error": "ConnectError: refused",
        "body_bytes": 0,
        "elapsed_seconds": 0.0,
        "next_fetch_at": 0,
    }


OLD = "User-agent: *\nDisallow: /old\n"
NEW = "User-agent: *\nDisallow: /new\n"


@pytest.mark.parametrize("restarts", [False, True], ids=["", "over restarts"])
@cases("bodies before after", {
    "first fetch": ([OLD], (None, None), ("successful", OLD)),
    "same file": ([OLD, OLD], ("successful", OLD), ("successful", OLD)),
    "changed file": ([OLD, NEW], ("successful", OLD), ("successful", NEW)),
    "removed file": ([OLD, 404], ("successful", OLD), ("unavailable", None)),
    "added file": ([404, NEW], ("unavailable", None), ("successful", NEW)),
    "empty file": (["", NEW], ("successful", ""), ("successful", NEW)),
    "outage": ([OLD, 503], ("successful", OLD), ("unreachable", OLD)),
    "end of an outage":
        ([OLD, 503, NEW], ("unreachable", OLD), ("successful", NEW)),
    "forgotten file": ([OLD, "forget", NEW], (None, None), ("successful", NEW)),
})  # fmt: skip
async def test_fetch_event_contains_what_was_cached_before_and_after(
    bodies: list[str | int],
    before: tuple[str | None, str | None],
    after: tuple[str | None, str | None],
    *,
    restarts: bool,
) -> None:
    events: list[CheckerEvent] = []
    site, clock, store = site_of(), ManualClock(), MemoryStore()
    made = partial(checker_of, site, clock=clock, store=store, on_event=events.append)
    checker = made()

    for body in bodies:
        if body == "forget":
            await checker.forget(ORIGIN)
            continue
        if isinstance(body, int):
            site.serve(ORIGIN, status=body)
        else:
            site.serve(ORIGIN, body)
        checker = made() if restarts else checker
        await checker.refresh(ORIGIN)
        clock.advance(HOUR)

    event = [one for one in events if isinstance(one, RobotsTxtFetched)][-1]
    assert cached(event.previous_access, event.previous_file) == before
    assert cached(event.access, event.file) == after


def cached(
    access: AccessResult | None, file: bytes | None
) -> tuple[str | None, str | None]:
    return access and access.value, None if file is None else file.decode()


# --- responses that cannot be judged ----------------------------------------------

UNREADABLE = {
    "the lifetime of a file": UnreadableSite(200, "Cache-Control"),
    "the delay after a 503": UnreadableSite(503, "Retry-After"),
    "the target of a redirect": UnreadableSite(301, "Location"),
}


@pytest.mark.parametrize("site", UNREADABLE.values(), ids=UNREADABLE)
async def test_bug_while_judging_closes_one_origin_and_is_logged(
    site: UnreadableSite, caplog: pytest.LogCaptureFixture
) -> None:
    """It used to end check_many, and with it the crawl of all other origins."""
    events: list[CheckerEvent] = []
    checker = checker_of(site, store=StoreBehind(), on_event=events.append)
    urls = [PUBLIC, f"{OTHER_ORIGIN}/public"]

    verdicts = [result.verdict async for result in checker.check_many(AGENT, urls)]
    refusal, permission = verdicts

    assert not refusal
    assert permission
    assert refusal.access is AccessResult.UNREACHABLE
    assert refusal.error == ("unexpected LookupError in robotsgate; please report it")
    fetched = [event for event in events if isinstance(event, RobotsTxtFetched)]
    failures = {event.origin: (event.status, event.failure) for event in fetched}
    assert failures == {
        ORIGIN: (None, FailureKind.OTHER),
        OTHER_ORIGIN: (200, None),
    }
    assert checker.stats.store_failures == 0
    # Another logger may warn, once per process.
    (record,) = (one for one in caplog.records if one.name == "robotsgate.checker")
    assert (record.name, record.levelname) == ("robotsgate.checker", "ERROR")
    assert ORIGIN in record.getMessage()
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)
