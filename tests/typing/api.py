"""Uses the public API with explicit types; mypy checks it, nothing runs it.

The types of attributes are left to the source, which is as strict.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from http.client import HTTPMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, assert_never, assert_type

import aiohttp
import anyio
import httpx
import yarl

import robotsgate
from robotsgate import (
    AccessResult,
    AfterUnreachableLimit,
    ArchivedResponse,
    CheckResult,
    Clock,
    Diagnostic,
    DiagnosticKind,
    Dialect,
    DisallowedError,
    FailureKind,
    FetchedResponse,
    Fetcher,
    FetchFailedError,
    Group,
    HeadersLike,
    InvalidProductTokenError,
    InvalidURLError,
    Line,
    Match,
    MemoryStore,
    Origin,
    Policy,
    PolitenessGate,
    Reason,
    RetriesExhaustedError,
    RobotsArchive,
    RobotsChecker,
    RobotsError,
    RobotsTxt,
    Rule,
    Severity,
    SharedLedger,
    Store,
    StoreError,
    SystemClock,
    Turn,
    TurnNotInTimeError,
    UnsupportedError,
    URLLike,
    UsagePreferences,
    Verdict,
    open_store,
    sync,
)
from robotsgate import RobotChecker as MisspeltChecker  # type: ignore[attr-defined]
from robotsgate.events import (
    CheckerEvent,
    CheckerStats,
    DelayClamped,
    Event,
    GateEvent,
    GateStats,
    HostBlocked,
    HostRecordReplaced,
    HostSkipped,
    LedgerEvent,
    LedgerFailed,
    LedgerReturned,
    RobotsTxtFetched,
    StoreFailed,
    URLSkipped,
    WindowFilled,
)
from robotsgate.integrations import aiohttp as in_aiohttp
from robotsgate.integrations.aiohttp import AiohttpFetcher
from robotsgate.integrations.crawlee import obey_robots
from robotsgate.integrations.hops import RobotsGet, robots_get
from robotsgate.integrations.httpx import (
    RobotsDisallowedError,
    RobotsTransport,
    robots_hook,
)
from robotsgate.integrations.requests import RobotsAdapter
from robotsgate.integrations.scrapy import RobotsGateMiddleware, RobotsGateParser
from robotsgate.integrations.warc import (
    DamagedWarcError,
    WarcCounts,
    WarcResponses,
    responses,
)
from robotsgate.page import Directive, PageDirectives
from robotsgate.politeness import (
    HostState,
    HostStatus,
    Ledger,
    LedgerStatus,
    LocalLedger,
    Pace,
    ScheduledTurn,
    TurnSchedule,
    URLSchedule,
)
from robotsgate.robotstxt import (
    CategoryPreference,
    LineKind,
    OtherLine,
    Preference,
    RequestRate,
    RuleKind,
)
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.testing import FakeSites as MisspeltSite  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from collections.abc import Sequence

    import requests
    import scrapy
    from crawlee.crawlers import HttpCrawler
    from scrapy.crawler import Crawler

    from robotsgate.stores import Change, ListableStore


class CustomClock:
    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        return seconds > 0 and event is not None and event.is_set()


class CustomFetcher:
    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        if not headers:
            raise FetchFailedError(url, kind=FailureKind.OTHER)
        return FetchedResponse(
            status=200, headers=[("Age", "5")], body=bytes(max_bytes), is_decoded=False
        )


def fetchers(session: aiohttp.ClientSession) -> list[Fetcher]:
    return [CustomFetcher(), AiohttpFetcher(session)]


def wrapped(checker: RobotsChecker) -> list[httpx.AsyncClient]:
    hook = robots_hook(checker, ["News", "Bot"])
    transport = RobotsTransport(checker, "Bot")
    gate = PolitenessGate(checker, "Bot")
    RobotsTransport(checker, "Bot", wrapped=transport, gate=gate)
    in_aiohttp.robots_middleware(checker, "Bot", gate=gate)
    return [
        httpx.AsyncClient(event_hooks={"request": [hook]}),
        httpx.AsyncClient(transport=transport),
    ]


def wrapped_blocking(
    checker: sync.RobotsChecker, gate: sync.PolitenessGate
) -> list[httpx.Client]:
    hook = robots_hook(checker, "Bot")
    transport = RobotsTransport(checker, ["News", "Bot"], gate=gate)
    RobotsTransport(checker, "Bot")
    return [
        httpx.Client(event_hooks={"request": [hook]}),
        httpx.Client(transport=RobotsTransport(checker, "Bot", wrapped=transport)),
    ]


def wrapped_session(
    checker: RobotsChecker, error: in_aiohttp.RobotsDisallowedError
) -> aiohttp.ClientSession:
    assert_type(error.verdict, Verdict)
    with in_aiohttp.robots_ignored():
        middleware = in_aiohttp.robots_middleware(checker, "Bot")
    return aiohttp.ClientSession(middlewares=(middleware,))


def blocking(session: requests.Session) -> None:
    with sync.RobotsChecker(user_agent="Bot/1.0") as checker:
        assert_type(checker.can_fetch("Bot", "https://e.com"), bool)
        assert_type(checker.check("Bot", httpx.URL("https://e.com")), Verdict)
        for url, verdict, _ in checker.check_many("Bot", ["https://e.com"]):
            assert_type((url, verdict), tuple[str | URLLike, Verdict | None])
        session.mount("https://", RobotsAdapter(checker, "Bot"))
        with (
            sync.PolitenessGate(checker, "Bot", ledger=LocalLedger()) as gate,
            gate.turn("https://e.com", patience=5) as turn,
        ):
            assert_type(turn, sync.Turn)
            turn.report(session.get(str(turn.url)))
            session.mount("https://", RobotsAdapter(checker, ["Bot"], gate=gate))
            assert_type(gate.stats, GateStats)
            assert_type(gate.status("https://e.com"), HostStatus)
    sync.RobotsChecker(clock=None)  # type: ignore[arg-type]  # not a clock


async def get_by_hops(
    checker: RobotsChecker, blocking: sync.RobotsChecker, session: requests.Session
) -> None:
    async def send(url: str, **options: object) -> bytes:
        return url.encode() * len(options)

    get = robots_get(checker, "Bot", send, gate=PolitenessGate(checker, "Bot"))
    assert_type(await get("https://e.com", headers={"Cookie": "a=b"}), bytes)
    by_requests: RobotsGet[requests.Response]
    by_requests = robots_get(blocking, ["News", "Bot"], session.get, max_redirects=3)
    assert_type(by_requests(httpx.URL("https://e.com")), "requests.Response")
    robots_get(checker, "Bot", session.get)  # type: ignore[arg-type]  # blocking


def refused_by_a_client(error: RobotsDisallowedError) -> None:
    assert_type(error.verdict, Verdict)
    own: DisallowedError = error
    theirs: httpx.RequestError = error
    raise own from theirs


def in_crawlee(crawler: HttpCrawler, checker: RobotsChecker) -> None:
    skipped = obey_robots(crawler, checker, "Bot")
    assert_type(skipped[Reason.UNREACHABLE], int)
    obey_robots(crawler, checker, "Bot", gate=PolitenessGate(checker, "Bot"))


async def in_scrapy(crawler: Crawler, request: scrapy.Request) -> None:
    middleware = crawler.get_downloader_middleware(RobotsGateMiddleware)
    if middleware is not None:
        assert_type(middleware.checker, RobotsChecker)
        await middleware.process_request(request)
    parser = RobotsGateParser.from_crawler(crawler, b"")
    assert_type(parser.robots_txt, RobotsTxt)
    assert_type(parser.allowed(b"https://e.com", "Bot"), bool)
    assert_type(parser.crawl_delay("Bot"), float | None)


class CustomStore:
    async def get(self, key: str) -> bytes | None:
        raise StoreError(key)

    async def update(self, key: str, change: Change) -> None:
        change(await self.get(key))

    async def delete(self, key: str) -> None:
        raise StoreError(key)

    async def purge(self, now: float) -> int:
        return int(now)

    async def aclose(self) -> None:
        return


clocks: list[Clock] = [SystemClock(), ManualClock(), ManualClock(0), CustomClock()]
stores: list[Store] = [
    MemoryStore(),
    MemoryStore(max_entries=10, max_bytes=1_000_000),
    CustomStore(),
]
listable: list[ListableStore] = [MemoryStore(), open_store("memory:")]


def on_event(event: CheckerEvent) -> None:
    assert_type(event.as_dict(), dict[str, Any])
    match event:
        case RobotsTxtFetched():
            assert_type(event.access, AccessResult)
            assert_type(event.failure, FailureKind | None)
        case StoreFailed():
            assert_type(event.error, Exception)
        case _:
            assert_never(event)


def on_any_event(event: Event) -> None:
    assert_type(event.as_dict(), dict[str, Any])


def on_ledger_event(event: LedgerEvent) -> None:
    match event:
        case LedgerFailed():
            assert_type(event.error, Exception)
        case LedgerReturned():
            assert_type(event.elapsed_seconds, float)
        case HostRecordReplaced():
            assert_type(event.host, str)
        case _:
            assert_never(event)


def ledgers(events: list[LedgerEvent], pace: Pace) -> None:
    SharedLedger("redis://host", workers=20, on_event=on_ledger_event)
    SharedLedger("redis://host", workers=20, on_event=on_any_event)
    SharedLedger(Path("hosts.db"), workers=1, max_hosts=10, clock=ManualClock())
    ledger: Ledger = SharedLedger(MemoryStore(), workers=1, on_event=events.append)
    assert_type(ledger.peek("host", pace), LedgerStatus)


def checkers(client: httpx.AsyncClient, events: list[CheckerEvent]) -> None:
    RobotsChecker()
    RobotsChecker(client=client, on_event=on_event)
    RobotsChecker(client=client, on_event=on_any_event)
    RobotsChecker(client=httpx.AsyncHTTPTransport(), on_event=events.append)
    RobotsChecker(
        user_agent="ExampleBot/1.0",
        client=FakeSite(),
        store=CustomStore(),
        policy=Policy.strict(),
        dialect=Dialect.GOOGLE,
        max_origins=10,
        max_concurrent_fetches=10,
        clock=ManualClock(),
        overrides={"https://e.com": RobotsTxt.parse(""), "https://f.com": b""},
        on_event=None,
    )


async def answers(url: httpx.URL) -> None:
    async with RobotsChecker() as checker:
        assert_type(checker, RobotsChecker)
        assert_type(await checker.can_fetch("ExampleBot", "https://e.com/"), bool)
        assert_type(await checker.can_fetch(["News", "Bot"], url), bool)
        if checker.can_fetch("Bot", url):  # type: ignore[truthy-bool]  # missing await
            raise AssertionError
        assert_type(await checker.check(("News", "Bot"), url), Verdict)
        assert_type(await checker.can_fetch_many("Bot", [url, "x"]), list[bool])
        assert_type(await checker.can_fetch_many("Bot", (u for u in [url])), list[bool])
        assert_type(checker.peek("Bot", url), bool | None)
        async for checked in checker.check_many("Bot", [url, "x"], window=10):
            assert_type(checked, CheckResult)
            assert_type(checked.url, str | URLLike)
            assert_type(checked.verdict, Verdict | None)
            assert_type(checked.error, InvalidURLError | UnsupportedError | None)
        assert_type(await checker.robots_txt(url), RobotsTxt | None)
        await checker.prefetch({url})


async def usage(checker: RobotsChecker, agent: str, page: httpx.Response) -> None:
    url = page.url
    usages = await checker.usage_preferences(agent, url, headers=page.headers)
    assert_type(usages, UsagePreferences)
    await checker.usage_preferences(agent, url, headers=[("Content-Usage", "search=n")])
    assert_type(usages.content_usage["train-ai"], CategoryPreference)
    assert_type(usages.content_signal["use"].preference, Preference)


def directives(page: httpx.Response) -> None:
    several: list[HeadersLike] = [page.headers, {"a": "b"}, [("a", "b")], HTTPMessage()]
    assert several
    html = PageDirectives.from_html(page.content, "Bot", encoding=page.charset_encoding)
    headers = PageDirectives.from_headers(page.headers, ["News", "Bot"])
    both = html.combined(headers, PageDirectives.from_headers([("a", "b")], "*"))
    assert_type(both, PageDirectives)
    assert_type(PageDirectives.combined(html, headers), PageDirectives)
    assert_type(both.may_index(0.0), bool)
    assert_type(both.may_follow, bool)
    assert_type(both.tdm_reservation, Preference)
    assert_type(both.directives["noai"], Directive)
    assert_type(both.explain(), str)


def counters(stats: CheckerStats) -> None:
    assert_type(sum([stats.checks, stats.fetches]), int)
    assert_type(stats.disallowed, Mapping[Reason, int])
    assert_type(stats.as_dict(), dict[str, Any])


def reasons(verdict: Verdict) -> str:
    assert_type(verdict.agent, str | tuple[str, ...])
    assert_type(verdict.rule, Rule | None)
    assert_type(verdict.redirects, tuple[tuple[str, int], ...])
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
        case Reason.OVERRIDDEN:
            return "the caller's own file decides"
        case _:
            assert_never(verdict.reason)


def accesses(access: AccessResult) -> bool:
    match access:
        case AccessResult.SUCCESSFUL | AccessResult.UNAVAILABLE:
            return True
        case AccessResult.UNREACHABLE | AccessResult.RESTRICTED | AccessResult.REFUSED:
            return False
        case _:
            assert_never(access)


def policies() -> list[Policy]:
    own = Policy(
        default_lifetime=1,
        unreachable_limit_without_copy=None,
        after_unreachable_limit=AfterUnreachableLimit.LAST_COPY,
        fetch_deadline=1.5,
        on_access_denied=AccessResult.RESTRICTED,
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
    assert_type(robots_txt.can_fetch("Bot", "/path"), bool)
    assert_type(robots_txt.can_fetch(["News", "Bot"], httpx.URL("https://e")), bool)
    assert_type(robots_txt.can_fetch("Bot", yarl.URL("https://e.com")), bool)
    robots_txt.can_fetch("Bot", None)  # type: ignore[arg-type]  # not a URL
    robots_txt.match("Bot", 42)  # type: ignore[arg-type]  # not a URL
    robots_txt.match(httpx.URL("https://e.com"), "Bot")  # type: ignore[arg-type]  # swapped
    assert_type(robots_txt.matches("Bot", "/path"), tuple[Rule, ...])
    assert_type(robots_txt.crawl_delay("Bot"), float | None)
    assert_type(robots_txt.request_rate("Bot"), RequestRate | None)
    assert_type(robots_txt.usage_preferences("Bot", "/path"), UsagePreferences)
    assert_type(robots_txt.groups, tuple[Group, ...])
    assert_type(robots_txt.other_lines, tuple[OtherLine, ...])
    assert_type(robots_txt.diagnostics, tuple[Diagnostic, ...])
    assert_type(robots_txt.lines, tuple[Line, ...])
    parts(robots_txt.match("Bot", "/path"), robots_txt)


def stored(origin: str) -> ArchivedResponse | bytes | None:
    return ArchivedResponse(200, {"Location": origin}, b"", [("a", 301)], 1.5)


def captures(file: BinaryIO, error: DamagedWarcError) -> None:
    with responses(Path("a.warc.gz")) as opened:
        assert_type(dict(opened), dict[str, ArchivedResponse])
    assert_type(responses(file, policy=Policy()), WarcResponses)
    assert_type(responses("a").counts, WarcCounts)
    assert_type(error.offset, int)
    responses(b"a")  # type: ignore[arg-type]


def archives(url: httpx.URL, bodies: dict[str, bytes]) -> None:
    RobotsArchive(stored, policy=Policy(), dialect=Dialect.GOOGLE, max_origins=1)
    RobotsArchive(None)  # type: ignore[arg-type]
    RobotsArchive(bodies.get)
    archive = RobotsArchive(bodies)
    assert_type(archive.can_fetch("Bot", url), bool | None)
    assert_type(archive.can_fetch_many(["a", "b"], ["x", url]), list[bool | None])
    assert_type(archive.check("Bot", url), Verdict | None)
    assert_type(archive.refused_agents({"a": 1}, url), tuple[str, ...] | None)
    assert_type(
        archive.usage_preferences("Bot", url, headers={}), UsagePreferences | None
    )


def parts(match: Match, robots_txt: RobotsTxt) -> None:
    assert_type(match.rule, Rule | None)
    for group in robots_txt.groups:
        assert_type(group.tokens, tuple[str, ...])
        assert_type(group.rules[0].kind, RuleKind)
        assert_type(group.request_rate, RequestRate | None)
    for diagnostic in robots_txt.diagnostics:
        assert_type(diagnostic.severity, Severity)
        assert_type(diagnostic.kind, DiagnosticKind)
    for line in robots_txt.lines:
        assert_type(line.kind, LineKind)


def origins(url: httpx.URL) -> None:
    origin = Origin.from_url(url)
    urls: list[URLLike] = [url, yarl.URL("https://e.com")]
    assert_type([Origin.from_url(each) for each in urls], list[Origin])
    Origin.from_url(None)  # type: ignore[arg-type]  # not a URL
    Origin.from_url(b"https://e.com")  # type: ignore[arg-type]  # not text
    assert_type(origin, Origin)


async def politeness(checker: RobotsChecker, ledger: Ledger) -> None:
    def on_gate_event(event: GateEvent) -> None:
        match event:
            case DelayClamped():
                assert_type((event.stated_delay, event.delay), tuple[float, float])
            case URLSkipped():
                assert_type(event.ready_at, float | None)
                assert_type(event.error, RobotsError | None)
                if isinstance(event.error, RetriesExhaustedError):
                    assert_type(event.error.cause, str)
            case HostBlocked() | HostSkipped():
                assert_type((event.host, event.ready_at), tuple[str, float])
            case WindowFilled():
                assert_type((event.hosts, event.ready_at), tuple[int, float])
            case _:
                assert_never(event)
        assert_type(event.as_dict(), dict[str, Any])

    ledger = LocalLedger(max_hosts=10, clock=SystemClock())
    PolitenessGate(checker, ["NewsBot", "ExampleBot"], ledger=ledger)
    PolitenessGate(checker, "ExampleBot", on_event=on_any_event)
    PolitenessGate(checker, "ExampleBot", default_delay=len)
    PolitenessGate(
        checker,
        "ExampleBot",
        default_delay=1,
        max_delay=3_600.0,
        max_concurrent_per_host=2,
        max_turn_seconds=60,
        max_hosts=1_000,
        host_of=lambda url: url.split("/")[2],
        on_event=on_gate_event,
    )
    async with PolitenessGate(checker, "ExampleBot") as gate:
        assert_type(gate, PolitenessGate)
        try:
            async with gate.turn(httpx.URL("https://e.com"), patience=5) as turn:
                assert_type(turn, Turn)
                turn.report(status=429, retry_after="120")
                turn.report(failure=True)
        except TurnNotInTimeError as error:
            assert_type(error.ready_at, float)
        async for url, turn in gate.schedule(["https://e.com/"], window=10):
            assert_type((url, turn), tuple[str | URLLike, Turn])
        async with aclosing(gate.schedule(patience=60, retries=2)) as schedule:
            assert_type(schedule, URLSchedule)
            schedule.add("https://e.com/")
            assert_type((await anext(schedule)).turn, Turn)
            (await anext(schedule)).turn.report(httpx.Response(200))
        by_host = gate.schedule_hosts(["e.com"], lambda host: f"https://{host}/")
        assert_type(by_host, TurnSchedule)
        assert_type(await anext(by_host), ScheduledTurn)
        assert_type(gate.status("https://e.com/").state, HostState)


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
    assert_type(await clock.wait(1, event=anyio.Event()), bool)
    site = FakeSite()
    site.serve("https://example.com", "text", status=404, headers={"Age": "1"})
    site.serve("https://example.com", [httpx.Response(503), OSError()], delay=1)
    site.serve_page("https://example.com/", [httpx.Response(503), OSError()], delay=1)
    FakeSite(clock=clock)
    assert_type(site.requests, list[str])
    assert_type(await site.handle_async_request(request), httpx.Response)


# Each is an error that a type checker would miss if it could see `__getattr__`.
misspelt: list[object] = [
    MisspeltChecker,
    MisspeltSite,
    robotsgate.RobotChecker,  # type: ignore[attr-defined]
]
