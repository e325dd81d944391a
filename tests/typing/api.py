"""Uses the whole public surface with explicit types; mypy checks it, nobody runs it."""

from __future__ import annotations

from typing import Any, assert_never, assert_type

import anyio
import httpx

from robotsgate import (
    AccessChanged,
    AccessResult,
    AfterStaleWindow,
    CheckerEvent,
    CheckerStats,
    Clock,
    Copy,
    Diagnostic,
    DiagnosticKind,
    Dialect,
    DisallowedError,
    Entry,
    FailureKind,
    Group,
    InvalidProductTokenError,
    InvalidURLError,
    Match,
    MemoryStore,
    Origin,
    OtherLine,
    Policy,
    Reason,
    RequestRate,
    RobotsChecker,
    RobotsError,
    RobotsTxt,
    RobotsTxtFetched,
    Rule,
    RuleKind,
    Store,
    StoreError,
    StoreFailed,
    SystemClock,
    UnsupportedError,
    Verdict,
)
from robotsgate.testing import FakeSite, ManualClock


class OwnClock:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        return seconds > 0 and event is not None and event.is_set()


class OwnStore:
    async def get(self, origin: str) -> Entry | None:
        raise StoreError(origin)

    async def put(self, entry: Entry) -> None:
        raise StoreError(entry.origin)

    async def delete(self, origin: str) -> None:
        raise StoreError(origin)

    async def purge(self, now: float) -> int:
        return int(now)

    async def aclose(self) -> None:
        return


clocks: list[Clock] = [SystemClock(), ManualClock(), ManualClock(0), OwnClock()]
stores: list[Store] = [
    MemoryStore(),
    MemoryStore(max_entries=10, max_bytes=1_000_000),
    OwnStore(),
]


def on_event(event: CheckerEvent) -> None:
    match event:
        case RobotsTxtFetched():
            assert_type(event.origin, str)
            assert_type(event.access, AccessResult)
            assert_type(event.status, int | None)
            assert_type(event.redirects, int)
            assert_type(event.error, str | None)
            assert_type(event.body_bytes, int)
            assert_type(event.elapsed_seconds, float)
            assert_type(event.next_fetch_at, float)
        case AccessChanged():
            assert_type(event.before, AccessResult)
            assert_type(event.after, AccessResult)
        case StoreFailed():
            assert_type(event.operation, str)
            assert_type(event.error, Exception)
        case _:
            assert_never(event)


def checkers(client: httpx.AsyncClient, events: list[CheckerEvent]) -> None:
    RobotsChecker()
    RobotsChecker(client=client, on_event=on_event)
    RobotsChecker(client=httpx.AsyncHTTPTransport(), on_event=events.append)
    RobotsChecker(
        user_agent="ExampleBot/1.0",
        client=FakeSite(),
        store=OwnStore(),
        policy=Policy.strict(),
        dialect=Dialect.GOOGLE,
        max_origins=10,
        max_concurrent_fetches=10,
        clock=ManualClock(),
        on_event=None,
    )


async def answers(url: httpx.URL) -> None:
    async with RobotsChecker() as checker:
        assert_type(checker, RobotsChecker)
        assert_type(await checker.can_fetch("ExampleBot", "https://e.com/"), bool)
        assert_type(await checker.can_fetch(["News", "Bot"], url), bool)
        assert_type(await checker.check(("News", "Bot"), url), Verdict)
        assert_type(await checker.can_fetch_many("Bot", [url, "x"]), list[bool])
        assert_type(await checker.can_fetch_many("Bot", (u for u in [url])), list[bool])
        assert_type(checker.peek("Bot", url), bool | None)
        assert_type(await checker.robots_txt(url), RobotsTxt | None)
        assert_type(await checker.crawl_delay("Bot", url), float | None)
        assert_type(await checker.request_rate("Bot", url), RequestRate | None)
        assert_type(await checker.sitemaps(url), tuple[str, ...])
        assert_type(await checker.usage_preferences("Bot", url), object)
        await checker.prefetch({url})
        await checker.refresh(url)
        await checker.forget(url)
        assert_type(checker.stats, CheckerStats)
        await checker.aclose()


def counters(stats: CheckerStats) -> None:
    numbers: list[int] = [
        stats.checks,
        stats.fetches,
        stats.successful,
        stats.unavailable,
        stats.unreachable,
        stats.restricted,
        stats.joined,
        stats.store_hits,
        stats.store_misses,
        stats.store_failures,
        stats.event_failures,
        stats.live_origins,
        stats.fetches_under_way,
    ]
    assert_type(sum(numbers), int)


def reasons(verdict: Verdict) -> str:
    assert_type(verdict.allowed, bool)
    assert_type(verdict.rule, Rule | None)
    assert_type(verdict.group, str | None)
    assert_type(verdict.access, AccessResult)
    assert_type(verdict.is_stale, bool)
    assert_type(verdict.origin, str)
    assert_type(verdict.status, int | None)
    assert_type(verdict.redirects, int)
    assert_type(verdict.error, str | None)
    assert_type(verdict.fetched_at, float | None)
    assert_type(verdict.fresh_until, float)
    assert_type(verdict.as_dict(), dict[str, Any])
    match verdict.reason:
        case Reason.ALLOWED_BY_RULE | Reason.NO_MATCHING_RULE | Reason.NO_GROUP:
            return "the file allows"
        case Reason.ROBOTS_TXT | Reason.UNAVAILABLE:
            return "the standard allows"
        case Reason.DISALLOWED_BY_RULE:
            return "the file disallows"
        case Reason.UNREACHABLE | Reason.ADDRESS_REFUSED | Reason.RESTRICTED:
            return "the origin stays closed"
        case Reason.UNREACHABLE_TOO_LONG:
            return "the policy decides"
        case _:
            assert_never(verdict.reason)


def accesses(access: AccessResult) -> bool:
    match access:
        case AccessResult.SUCCESSFUL | AccessResult.UNAVAILABLE:
            return True
        case AccessResult.UNREACHABLE | AccessResult.RESTRICTED:
            return False
        case _:
            assert_never(access)


def policies() -> list[Policy]:
    own = Policy(
        default_lifetime=1,
        min_lifetime=1,
        max_lifetime=1,
        stale_window=1,
        outage_grace=1,
        after_stale_window=AfterStaleWindow.LAST_COPY,
        retry_initial=1,
        retry_factor=1,
        retry_max=1,
        retry_initial_503=1,
        retry_after_max=1,
        max_redirects=1,
        fetch_deadline=1.5,
        max_body_bytes=1,
        detect_missing_page=False,
        on_access_denied=AccessResult.RESTRICTED,
        on_too_many_requests=AccessResult.UNAVAILABLE,
        on_broken_redirect=AccessResult.UNREACHABLE,
    )
    presets: list[Policy] = [
        Policy.google_today(),
        Policy.google_2021(),
        Policy.rfc9309(),
        Policy.strict(),
    ]
    return [own, *presets]


def file(body: bytes, text: str) -> None:
    robots_txt = RobotsTxt.parse(body)
    assert_type(RobotsTxt.parse(text, dialect=Dialect.GOOGLE), RobotsTxt)
    assert_type(RobotsTxt.parse(body, max_bytes=None), RobotsTxt)
    assert_type(RobotsTxt.parse(body, max_bytes=1_000), RobotsTxt)
    assert_type(robots_txt.can_fetch("Bot", "/path"), bool)
    assert_type(robots_txt.can_fetch(["News", "Bot"], httpx.URL("https://e")), bool)
    assert_type(robots_txt.crawl_delay("Bot"), float | None)
    assert_type(robots_txt.request_rate("Bot"), RequestRate | None)
    assert_type(robots_txt.sitemaps, tuple[str, ...])
    assert_type(robots_txt.groups, tuple[Group, ...])
    assert_type(robots_txt.other_lines, tuple[OtherLine, ...])
    assert_type(robots_txt.diagnostics, tuple[Diagnostic, ...])
    assert_type(robots_txt.dialect, Dialect)
    parts(robots_txt.match("Bot", "/path"), robots_txt)


def parts(match: Match, robots_txt: RobotsTxt) -> None:
    assert_type(match.allowed, bool)
    assert_type(match.group, str | None)
    assert_type(match.is_robots_txt, bool)
    assert_type(match.rule, Rule | None)
    for group in robots_txt.groups:
        assert_type(group.tokens, tuple[str, ...])
        assert_type(group.line, int)
        for rule in group.rules:
            assert_type(rule.kind, RuleKind)
            assert_type(rule.pattern, str)
            assert_type(rule.line, int)
    for other in robots_txt.other_lines:
        assert_type((other.line, other.field, other.value), tuple[int, str, str])
    for diagnostic in robots_txt.diagnostics:
        assert_type(diagnostic.line, int)
        assert_type(diagnostic.kind, DiagnosticKind)
        assert_type(diagnostic.message, str)
    rate = RequestRate(requests=1, seconds=2.0)
    assert_type((rate.requests, rate.seconds), tuple[int, float])


def origins(url: httpx.URL) -> None:
    origin = Origin.from_url(url)
    assert_type(origin, Origin)
    assert_type((origin.scheme, origin.host, origin.port), tuple[str, str, int])
    assert_type(origin.robots_url, str)


def entries() -> None:
    entry = Entry(
        origin="https://example.com",
        access=AccessResult.UNREACHABLE,
        checked_at=0,
        next_fetch_at=0,
        retain_until=0,
        status=None,
        redirects=0,
        error="timed out",
        failure=FailureKind.TIMEOUT,
        copy=Copy.of(b"", fetched_at=0, fresh_until=0),
        unreachable_since=0,
        failures=1,
    )
    assert_type(entry.copy, Copy | None)
    assert_type(Copy(packed=b"", fetched_at=0, fresh_until=0).body, bytes)


def errors(
    error: InvalidURLError
    | InvalidProductTokenError
    | UnsupportedError
    | StoreError
    | DisallowedError,
) -> None:
    base: RobotsError = error
    if isinstance(base, InvalidURLError):
        assert_type(base.url, object)
        value_error: ValueError = base
        raise value_error
    if isinstance(base, InvalidProductTokenError):
        assert_type(base.agent, object)
    if isinstance(base, DisallowedError):
        assert_type(base.verdict, Verdict)


async def fakes(request: httpx.Request) -> None:
    clock = ManualClock(start=1_800_000_000.0)
    clock.advance(1)
    clock.set(0)
    assert_type(clock.now(), float)
    assert_type(clock.monotonic(), float)
    assert_type(await clock.wait(1, event=anyio.Event()), bool)
    assert_type(await clock.wait(0.5), bool)
    await clock.pass_time(60)
    site = FakeSite()
    site.serve("https://example.com")
    site.serve("https://example.com", "text", status=404, headers={"Age": "1"})
    site.serve("https://example.com", b"bytes")
    site.fail("https://example.com", OSError())
    assert_type(site.requests, list[str])
    assert_type(await site.handle_async_request(request), httpx.Response)
