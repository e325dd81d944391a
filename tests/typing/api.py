"""Uses the public API with explicit types; mypy checks it, nothing runs it.

What the source annotates as plainly (attributes, methods without type variables) is
left to the source, which is as strict.
"""

from __future__ import annotations

from contextlib import aclosing
from datetime import timedelta
from http.client import HTTPMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, assert_never, assert_type

import aiohttp
import httpx
import yarl

import robotsgate as rg
from robotsgate import RobotChecker as MisspeltChecker  # type: ignore[attr-defined]
from robotsgate import events, politeness, sync
from robotsgate.integrations import aiohttp as in_aiohttp
from robotsgate.integrations.crawlee import obey_robots
from robotsgate.integrations.hops import RobotsGet, robots_get
from robotsgate.integrations.httpx import (
    RobotsDisallowedError,
    RobotsTransport,
    robots_hook,
)
from robotsgate.integrations.requests import RobotsAdapter, RobotsSession
from robotsgate.integrations.warc import responses
from robotsgate.page import PageDirectives
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.testing import FakeSites as MisspeltSite  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from collections.abc import Sequence

    import anyio
    import requests
    from crawlee.crawlers import HttpCrawler

    from robotsgate.stores import Change, ListableStore


# --- what users implement


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
    ) -> rg.FetchedResponse:
        if not headers:
            raise rg.FetchFailedError(url, kind=rg.FailureKind.OTHER)
        return rg.FetchedResponse(
            status=200, headers=[("Age", "5")], body=bytes(max_bytes), is_decoded=False
        )


class CustomStore:
    async def get(self, key: str) -> bytes | None:
        raise rg.StoreError(key)

    async def update(self, key: str, change: Change) -> None:
        change(await self.get(key))

    async def delete(self, key: str) -> None:
        raise rg.StoreError(key)

    async def purge(self, now: float) -> int:
        return int(now)

    async def aclose(self) -> None:
        return


def fetchers(session: aiohttp.ClientSession) -> list[rg.Fetcher]:
    return [CustomFetcher(), in_aiohttp.AiohttpFetcher(session)]


clocks: list[rg.Clock] = [rg.SystemClock(), ManualClock(), CustomClock()]
stores: list[rg.Store] = [rg.MemoryStore(max_entries=10), CustomStore()]
listable: list[ListableStore] = [rg.MemoryStore(), rg.open_store("memory:")]


# --- lookups


def checkers(client: httpx.AsyncClient, seen: list[events.CheckerEvent]) -> None:
    rg.RobotsChecker(client=client, on_event=on_event)
    rg.RobotsChecker(client=client, on_event=on_any_event)
    rg.RobotsChecker(client=httpx.AsyncHTTPTransport(), on_event=seen.append)
    rg.RobotsChecker(
        user_agent="ExampleBot/1.0",
        client=FakeSite(),
        sign=lambda method, url, headers: {**headers, "Signature": method + url},
        store=CustomStore(),
        policy=rg.Policy.strict(),
        dialect=rg.Dialect.GOOGLE,
        max_origins=10,
        max_concurrent_fetches=10,
        clock=ManualClock(),
        overrides={"https://e.com": rg.RobotsTxt.parse(""), "https://f.com": b""},
        on_event=None,
    )
    sync.RobotsChecker(clock=None)  # type: ignore[arg-type]  # not a clock


async def answers(checker: rg.RobotsChecker, url: httpx.URL) -> None:
    assert_type(await checker.can_fetch(["News", "Bot"], url), bool)
    if checker.can_fetch("Bot", url):  # type: ignore[truthy-bool]  # missing await
        raise AssertionError
    assert_type(await checker.can_fetch_many("Bot", [url, "x"]), list[bool])
    assert_type(await checker.can_fetch_many("Bot", (u for u in [url])), list[bool])
    async for checked in checker.check_many("Bot", [url, "x"], window=10):
        assert_type(checked.url, str | rg.URLLike)
    await checker.prefetch({url})


def policies() -> None:
    policy = rg.Policy(stale_window=timedelta(days=1), read_timeout=5)
    assert_type(policy.stale_window, float)
    assert_type(policy.unreachable_limit_without_copy, float | None)
    rg.Policy(retry_factor=timedelta(1))  # type: ignore[arg-type]  # not a duration


def file(body: bytes, text: str) -> None:
    robots_txt = rg.RobotsTxt.parse(body)
    assert_type(rg.RobotsTxt.parse(text, dialect=rg.Dialect.GOOGLE), rg.RobotsTxt)
    robots_txt.can_fetch(["News", "Bot"], httpx.URL("https://e"))
    robots_txt.can_fetch("Bot", yarl.URL("https://e.com"))
    robots_txt.can_fetch("Bot", None)  # type: ignore[arg-type]  # not a URL
    robots_txt.match("Bot", 42)  # type: ignore[arg-type]  # not a URL
    robots_txt.match(httpx.URL("https://e.com"), "Bot")  # type: ignore[arg-type]  # swapped
    rg.Origin.from_url(b"https://e.com")  # type: ignore[arg-type]  # not text


async def page(checker: rg.RobotsChecker, page: httpx.Response) -> None:
    several: list[rg.HeadersLike] = [page.headers, {"a": "b"}, [("a", "b")]]
    several.append(HTTPMessage())
    await checker.usage_preferences("Bot", page.url, headers=page.headers)
    html = PageDirectives.from_html(page.content, "Bot", encoding=page.charset_encoding)
    headers = PageDirectives.from_headers(page.headers, ["News", "Bot"])
    assert_type(PageDirectives.combined(html, headers), PageDirectives)


def stored(origin: str) -> rg.ArchivedResponse | bytes | None:
    return rg.ArchivedResponse(200, {"Location": origin}, b"", [("a", 301)], 1.5)


def archives(warc: BinaryIO, url: httpx.URL, bodies: dict[str, bytes]) -> None:
    with responses(Path("a.warc.gz")) as opened:
        rg.RobotsArchive(dict(opened))
    responses(warc, policy=rg.Policy())
    responses(b"a")  # type: ignore[arg-type]
    rg.RobotsArchive(stored, dialect=rg.Dialect.GOOGLE)
    rg.RobotsArchive(None)  # type: ignore[arg-type]
    rg.RobotsArchive(bodies.get)
    archive = rg.RobotsArchive(bodies)
    assert_type(archive.can_fetch_many(["a", "b"], ["x", url]), list[bool | None])
    archive.refused_agents({"a": 1}, url)


# --- clients


def wrapped(checker: rg.RobotsChecker) -> list[httpx.AsyncClient]:
    hook = robots_hook(checker, ["News", "Bot"])
    transport = RobotsTransport(checker, "Bot")
    gate = rg.PolitenessGate(checker, "Bot")
    RobotsTransport(checker, "Bot", wrapped=transport, gate=gate)
    return [
        httpx.AsyncClient(event_hooks={"request": [hook]}),
        httpx.AsyncClient(transport=transport),
    ]


def wrapped_blocking(
    checker: sync.RobotsChecker, gate: sync.PolitenessGate, session: requests.Session
) -> list[httpx.Client]:
    hook = robots_hook(checker, "Bot")
    transport = RobotsTransport(checker, ["News", "Bot"], gate=gate)
    session.mount("https://", RobotsAdapter(checker, ["Bot"], gate=gate))
    assert_type(RobotsSession(checker, ["Bot"], gate=gate), RobotsSession)
    return [
        httpx.Client(event_hooks={"request": [hook]}),
        httpx.Client(transport=RobotsTransport(checker, "Bot", wrapped=transport)),
    ]


def wrapped_session(
    checker: rg.RobotsChecker, error: in_aiohttp.RobotsDisallowedError
) -> aiohttp.ClientSession:
    assert_type(error.verdict, rg.Verdict)
    with in_aiohttp.robots_ignored():
        middleware = in_aiohttp.robots_middleware(checker, "Bot")
    return aiohttp.ClientSession(middlewares=(middleware,))


async def get_by_hops(
    checker: rg.RobotsChecker, blocking: sync.RobotsChecker, session: requests.Session
) -> None:
    async def send(url: str, **options: object) -> bytes:
        return url.encode() * len(options)

    get = robots_get(checker, "Bot", send, gate=rg.PolitenessGate(checker, "Bot"))
    assert_type(await get("https://e.com", headers={"Cookie": "a=b"}), bytes)
    by_requests: RobotsGet[requests.Response]
    by_requests = robots_get(blocking, ["News", "Bot"], session.get, max_redirects=3)
    assert_type(by_requests(httpx.URL("https://e.com")), "requests.Response")
    robots_get(checker, "Bot", session.get)  # type: ignore[arg-type]  # blocking


def in_crawlee(crawler: HttpCrawler, checker: rg.RobotsChecker) -> None:
    skipped = obey_robots(crawler, checker, "Bot")
    assert_type(skipped[rg.Reason.UNREACHABLE], int)


def refused_by_a_client(error: RobotsDisallowedError) -> None:
    own: rg.DisallowedError = error
    theirs: httpx.RequestError = error
    raise own from theirs


# --- politeness


async def gates(checker: rg.RobotsChecker, ledger: politeness.Ledger) -> None:
    ledger = politeness.LocalLedger(max_hosts=10, clock=rg.SystemClock())
    rg.PolitenessGate(checker, "ExampleBot", on_event=on_any_event)
    rg.PolitenessGate(checker, "ExampleBot", default_delay=len)
    rg.PolitenessGate(
        checker,
        ["NewsBot", "ExampleBot"],
        ledger=ledger,
        host_of=lambda url: url.split("/")[2],
        on_event=on_gate_event,
    )
    async with rg.PolitenessGate(checker, "ExampleBot") as gate:
        async with gate.turn(httpx.URL("https://e.com"), patience=5) as turn:
            turn.report(status=429, retry_after="120")
        async for url, turn in gate.schedule(["https://e.com/"], window=10):
            assert_type((url, turn), tuple[str | rg.URLLike, rg.Turn])
        async with aclosing(gate.schedule(patience=60, retries=2)) as schedule:
            schedule.add("https://e.com/")
            (await anext(schedule)).turn.report(httpx.Response(200))
        by_host = gate.schedule_hosts(["e.com"], lambda host: f"https://{host}/")
        assert_type(await anext(by_host), politeness.ScheduledTurn)


def blocking_gate(checker: sync.RobotsChecker, session: requests.Session) -> None:
    for url, verdict, _ in checker.check_many("Bot", ["https://e.com"]):
        assert_type((url, verdict), tuple[str | rg.URLLike, rg.Verdict | None])
    local = politeness.LocalLedger()
    with (
        sync.PolitenessGate(checker, "Bot", ledger=local) as gate,
        gate.turn("https://e.com", patience=5) as turn,
    ):
        turn.report(session.get(str(turn.url)))


def ledgers(seen: list[events.LedgerEvent]) -> list[politeness.Ledger]:
    return [
        rg.SharedLedger("redis://host", workers=20, on_event=on_ledger_event),
        rg.SharedLedger("redis://host", workers=20, on_event=on_any_event),
        rg.SharedLedger(Path("hosts.db"), workers=1, clock=ManualClock()),
        rg.SharedLedger(rg.MemoryStore(), workers=1, on_event=seen.append),
    ]


# --- unions that a user may match


def on_event(event: events.CheckerEvent) -> None:
    match event:
        case events.RobotsTxtFetched():
            assert_type(event.failure, rg.FailureKind | None)
        case events.StoreFailed():
            assert_type(event.error, Exception)
        case _:
            assert_never(event)


def on_any_event(event: events.Event) -> None:
    assert_type(event.as_dict(), dict[str, Any])


def on_ledger_event(event: events.LedgerEvent) -> None:
    match event:
        case events.LedgerFailed():
            assert_type(event.error, Exception)
        case events.LedgerReturned() | events.HostRecordReplaced():
            return
        case _:
            assert_never(event)


def on_gate_event(event: events.GateEvent) -> None:
    match event:
        case events.DelayClamped():
            assert_type((event.stated_delay, event.delay), tuple[float, float])
        case events.URLSkipped():
            assert_type(event.error, rg.RobotsError | None)
        case events.HostBlocked() | events.HostSkipped() | events.WindowFilled():
            assert_type(event.ready_at, float)
        case _:
            assert_never(event)


def errors(error: rg.InvalidURLError | rg.DisallowedError) -> None:
    base: rg.RobotsError = error
    if isinstance(base, rg.InvalidURLError):
        value_error: ValueError = base
        raise value_error


def fakes(site: FakeSite) -> None:
    site.serve("https://example.com", "text", status=404, headers={"Age": "1"})
    site.serve("https://example.com", [httpx.Response(503), OSError()], delay=1)
    site.serve_page("https://example.com/", [httpx.Response(503), OSError()], delay=1)


# Each is an error that a type checker would miss if it could see `__getattr__`.
misspelt: list[object] = [
    MisspeltChecker,
    MisspeltSite,
    rg.RobotChecker,  # type: ignore[attr-defined]
]
