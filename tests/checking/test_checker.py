"""Every method of a checker: its results, its arguments, and what it fetches."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from robotsgate import (
    DiagnosticKind,
    Dialect,
    InvalidProductTokenError,
    InvalidURLError,
    MemoryStore,
    Policy,
    Reason,
    RobotsChecker,
    RobotsTxt,
    StoreError,
    UnsupportedError,
)
from robotsgate.events import CheckerEvent, RobotsTxtFetched, StoreFailed
from robotsgate.robotstxt import CategoryPreference, Preference, RequestRate
from robotsgate.testing import FakeSite, ManualClock
from tests.tables import cases

from .builders import (
    AGENT,
    CALLS,
    CALLS_WITH_AGENT,
    DAY,
    HOUR,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    FailingStore,
    GatedSite,
    GatedStore,
    TickingClock,
    answered_at_once,
    checker_of,
    concurrently,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


pytestmark = pytest.mark.anyio

FULL_DISALLOW = "User-agent: *\nDisallow: /\n"

# Those that tolerate bad links.
MANY = {"can_fetch_many", "prefetch"}


async def check_each(checker: RobotsChecker, agent: str, urls: list[Any]) -> list[bool]:
    results = [one async for one in checker.check_many(agent, urls)]
    return [bool(one.verdict) for one in results]


# --- the checks agree -----------------------------------------------------------


@cases("status url reason", {
    "rules": (200, PRIVATE, Reason.DISALLOWED_BY_RULE),
    "rules for a URL object": (200, httpx.URL(PRIVATE), Reason.DISALLOWED_BY_RULE),
    # It used to be checked as `/x`, which only aiohttp sends.
    "a reading of the path":
        (200, f"{ORIGIN}/private/%2e%2e/x", Reason.DISALLOWED_BY_RULE),
    "no file": (404, PRIVATE, Reason.UNAVAILABLE),
    "unreachable": (503, PUBLIC, Reason.UNREACHABLE),
    "robots.txt": (503, ROBOTS_TXT, Reason.ROBOTS_TXT),
})  # fmt: skip
async def test_every_check_agrees_with_the_verdict(
    status: int, url: str | httpx.URL, reason: Reason
) -> None:
    checker = checker_of(site_of(status=status))

    verdict = await checker.check(AGENT, url)

    assert verdict.reason is reason
    assert checker.peek(AGENT, url) is verdict.allowed
    assert await checker.can_fetch(AGENT, url) is verdict.allowed
    assert await checker.can_fetch_many(AGENT, [url]) == [verdict.allowed]
    assert await check_each(checker, AGENT, [url]) == [verdict.allowed]
    assert (await checker.refusal(AGENT, url) is None) is verdict.allowed


# --- invalid arguments ----------------------------------------------------------


@cases("url error message", {
    "a path": ("/private", InvalidURLError, "absolute URL .* got '/private'"),
    "no host": ("https://", InvalidURLError, "expected a host, got 'https://'"),
    "bytes": (b"https://example.com/", InvalidURLError, "got b'http"),
    "None": (None, InvalidURLError, "got None"),
    "FTP": ("ftp://e.com/file", UnsupportedError, r"over FTP, got ftp://e\.com$"),
})  # fmt: skip
async def test_url_without_an_http_origin_is_refused_and_named(
    url: object, error: type[Exception], message: str
) -> None:
    site = site_of()
    checker = checker_of(site)

    for name in CALLS.keys() - MANY:
        with pytest.raises(error, match=message):
            await CALLS[name](checker, AGENT, url)

    assert site.requests == []


async def test_peek_and_forget_refuse_only_urls_without_an_origin() -> None:
    checker = checker_of(site_of())

    await checker.forget("ftp://example.com/file")

    assert checker.peek(AGENT, "ftp://example.com/file") is None
    with pytest.raises(InvalidURLError, match="got '/relative'"):
        await checker.forget("/relative")
    with pytest.raises(InvalidURLError, match="got '/relative'"):
        checker.peek(AGENT, "/relative")


@cases("agent message", {
    "nothing": ("", "got ''"),
    "a number in a list": (["ExampleBot", 7], "got 7"),
    "a list in a list": ([["ExampleBot"]], r"got \['ExampleBot'\]"),
    "a set": ({"ExampleBot"}, r"got \{'ExampleBot'\}"),
    "None": (None, "got None"),
})  # fmt: skip
async def test_agent_without_a_token_is_refused_and_named(
    agent: Any,  # noqa: ANN401 (invalid on purpose)
    message: str,
) -> None:
    site = site_of()
    checker = checker_of(site)

    for look_up in CALLS_WITH_AGENT.values():
        with pytest.raises(InvalidProductTokenError, match=message):
            await look_up(checker, agent, PUBLIC)
    with pytest.raises(InvalidProductTokenError, match=message):
        checker.peek(agent, PUBLIC)
    with pytest.raises(InvalidProductTokenError, match=message):
        await checker.can_fetch_many(agent, [])

    assert site.requests == []


async def test_callers_mistake_is_not_raised_in_an_exception_group() -> None:
    """For example, a client that was closed too early raises a plain RuntimeError."""
    client = httpx.AsyncClient(transport=site_of())
    await client.aclose()
    checker = checker_of(client)

    with pytest.raises(RuntimeError, match="client has been closed"):
        await checker.can_fetch_many(AGENT, [PUBLIC, "https://other.example/"])


class NoStore:
    """Has none of the methods of a store."""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"user_agent": 7}, TypeError, "user_agent to be a str, got 7"),
        ({"user_agent": ""}, ValueError, "user_agent .* got ''"),
        ({"user_agent": " Bot"}, ValueError, "user_agent .* got ' Bot'"),
        ({"user_agent": "B\u00f6t"}, ValueError, "user_agent .* ASCII"),
        ({"user_agent": "Bot\r\nX: y"}, ValueError, "user_agent .* got"),
        ({"client": 7}, TypeError, "a Fetcher, got 7"),
        ({"store": 7}, StoreError, "store .* got 7"),
        ({"store": NoStore()}, StoreError, r"store .*\.NoStore"),
        ({"store": MemoryStore}, StoreError, "store .* <class"),
        ({"policy": {}}, TypeError, r"policy to be a Policy, got \{\}"),
        ({"dialect": "google"}, TypeError, "a Dialect, got 'google'"),
        ({"max_origins": 0}, ValueError, "max_origins to be 1 .* got 0"),
        ({"max_origins": True}, TypeError, "max_origins to be an int, got True"),
        ({"max_origins": None}, TypeError, "max_origins .* got None"),
        ({"max_concurrent_fetches": 0}, ValueError, "max_concurrent_f"),
        ({"max_concurrent_fetches": "9"}, TypeError, "fetches .* got '9'"),
        ({"clock": time}, TypeError, "clock .* wait, got <module"),
        ({"sign": {}}, TypeError, r"sign .* got \{\}"),
        ({"on_event": 7}, TypeError, "on_event .* got 7"),
        ({"on_event": anyio.sleep_forever}, TypeError, "on_event .* sync"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_invalid_constructor_argument_is_refused_and_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RobotsChecker(**{"user_agent": AGENT, **arguments})


def test_warning_about_a_missing_user_agent_points_to_the_caller() -> None:
    RobotsChecker(client=FakeSite())  # needs none

    with pytest.warns(UserWarning, match="expected the user_agent of your") as warned:
        RobotsChecker()

    assert warned[0].filename == __file__


async def test_checker_that_leaves_its_own_store_open_causes_a_warning(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/robots.db"
    async with checker_of(FakeSite(), store=url):
        pass
    checkers = [checker_of(FakeSite(), store=url)]
    store = checkers[0]._own_store

    with pytest.warns(ResourceWarning, match=r"unclosed .*RobotsChecker"):
        checkers.clear()

    assert store is not None
    await store.aclose()


def test_checker_that_cannot_be_created_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="AsyncClient"):
        RobotsChecker(
            user_agent=AGENT, client=object(), store=f"sqlite:///{tmp_path}/robots.db"
        )

    assert list(tmp_path.iterdir()) == []


# --- many URLs --------------------------------------------------------------------

# URLs whose first ten characters are the same used to get the first one's result.
MANY_URLS = {
    PRIVATE: False,
    f"{OTHER_ORIGIN}/a": False,
    PUBLIC: True,
    f"{PRIVATE}/../x": False,
    f"{ORIGIN}.example/private": True,
    f"{PUBLIC}/caf\u00e9": True,
    httpx.URL(f"{PRIVATE}?again"): False,
    "https://third.example/private": True,
    f"{OTHER_ORIGIN}/robots.txt": True,
    "      http://one.example/": True,
    "      http://two.example/": False,
    "mailto:me": False,
    "http://[::1": False,
    "ftp://e.com/": False,
    f"{PUBLIC}?again": True,
}


async def test_many_results_are_in_order_and_false_for_bad_links() -> None:
    site = site_of()
    site.serve(OTHER_ORIGIN, FULL_DISALLOW)
    site.serve("http://two.example", FULL_DISALLOW)
    checker = checker_of(site)
    await checker.prefetch([OTHER_ORIGIN])

    cold = await checker.can_fetch_many([AGENT, "Other"], iter(MANY_URLS))
    hot = await checker.can_fetch_many([AGENT, "Other"], iter(MANY_URLS))

    assert cold == hot == [*MANY_URLS.values()]
    assert len(site.requests) == 6
    assert await checker.can_fetch_many(AGENT, ()) == []


async def never_read() -> AsyncIterator[str]:
    yield PUBLIC  # pragma: no cover


@cases("urls message", {
    "a URL": (PUBLIC, "got the single 'https://example"),
    "bytes": (b"https://u:p@e.com", "got the single .<hidden>@e.com"),
    "a URL object": (httpx.URL(PUBLIC), "got URL"),
    "a number": (5, "got 5"),
    "an async iterable": (never_read(), "got <async_generator"),
})  # fmt: skip
async def test_anything_but_several_urls_is_refused(urls: Any, message: str) -> None:  # noqa: ANN401 (invalid on purpose)
    checker = checker_of(site_of())
    message = f"expected (several|an iterable of) URLs, .*{message}"

    with pytest.raises(TypeError, match=message):
        await checker.can_fetch_many(AGENT, urls)
    with pytest.raises(TypeError, match=message):
        await checker.prefetch(urls)
    with pytest.raises(TypeError, match=message):
        checker.check_many(AGENT, urls)
    with pytest.raises(TypeError, match=r"'Bot/1.0': are the arguments swapped.$"):
        await checker.can_fetch_many([PUBLIC], "Bot/1.0")


@pytest.mark.parametrize("no_url", [None, 5, b"https://example.com/"], ids=repr)
@pytest.mark.parametrize("name", sorted(MANY))
async def test_value_of_the_wrong_type_among_many_urls_is_refused(
    name: str, no_url: object
) -> None:
    """It used to be answered with `False`, although it is not a bad link."""
    with pytest.raises(InvalidURLError, match=rf"got {re.escape(repr(no_url))}"):
        await CALLS[name](checker_of(site_of()), AGENT, no_url)


async def look_up_separately(checker: RobotsChecker, urls: list[str]) -> None:
    async with anyio.create_task_group() as tasks:
        for url in urls:
            tasks.start_soon(checker.can_fetch, AGENT, url)


@pytest.mark.parametrize("limit", [1, 3, 100])
@cases("look_up", {
    "can_fetch_many": (lambda checker, urls: checker.can_fetch_many(AGENT, urls),),
    "prefetch": (RobotsChecker.prefetch,),
    "separate lookups": (look_up_separately,),
})  # fmt: skip
async def test_unknown_origins_are_fetched_concurrently_up_to_the_limit(
    look_up: Callable[[RobotsChecker, list[str]], Awaitable[object]], limit: int
) -> None:
    site = GatedSite()
    checker = checker_of(site, max_concurrent_fetches=limit)
    urls = [f"https://host{number}.example/" for number in range(10)]

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_up, checker, urls)
        await let_others_run()
        under_way = site.under_way
        site.gate.set()

    assert under_way == site.most_under_way == min(limit, 10)
    assert [checker.peek(AGENT, url) for url in urls] == [True] * 10
    assert len(site.requests) == 10


async def turns_of_others_during(call: Awaitable[object]) -> int:
    """How many times another task runs before `call` returns."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await call
        tasks.cancel_scope.cancel()
    return turns


async def test_checking_many_urls_of_a_cold_origin_lets_others_run() -> None:
    few, many = [
        await turns_of_others_during(
            checker_of(site_of()).can_fetch_many(AGENT, [PUBLIC] * count)
        )
        for count in (1, 10_000)
    ]

    assert many >= few + 2 * 19  # during the first pass, and during the lookups


async def test_refresh_during_many_lookups_applies_to_later_urls() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.prefetch([ORIGIN])
    site.serve(ORIGIN, FULL_DISALLOW)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.refresh, ORIGIN)
        answers = await checker.can_fetch_many(AGENT, [PUBLIC] * 20_000)

    assert (answers[0], answers[-1]) == (True, False)


@cases("look_up loops", {
    "can_fetch_many": (RobotsChecker.can_fetch_many, 2),
    "check_many": (check_each, 1),
    "prefetch": (lambda checker, _agent, urls: checker.prefetch(urls), 1),
})  # fmt: skip
async def test_few_slow_urls_let_others_run(
    look_up: Callable[[RobotsChecker, str, list[str]], Awaitable[object]], loops: int
) -> None:
    """Only URLs used to be counted, and hostile rules blocked the loop for seconds."""
    few, many = [
        await turns_of_others_during(
            look_up(
                checker_of(site_of(), clock=TickingClock()), AGENT, [PUBLIC] * count
            )
        )
        for count in (1, 300)
    ]

    assert many >= few + loops * 300 / 6


# --- a known origin -----------------------------------------------------------


async def test_peek_has_and_counts_results_until_the_entry_expires() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(cache_control="max-age=3600"), clock=clock)
    answers = [checker.peek(AGENT, PRIVATE)]
    await checker.prefetch([PUBLIC])

    for seconds in (0, 3_599, 1):
        clock.advance(seconds)
        answers += [checker.peek(AGENT, PRIVATE), checker.peek("Newcomer", PUBLIC)]

    assert answers == [None, False, True, False, True, None, None]
    assert checker.stats.checks == 4


@pytest.mark.parametrize("name", sorted(CALLS.keys() - MANY - {"refresh"}))
async def test_lookup_of_a_known_origin_does_not_suspend(name: str) -> None:
    site = site_of()
    checker = checker_of(site)
    awaited = await CALLS[name](checker, AGENT, PRIVATE)

    at_once = answered_at_once(CALLS[name](checker, AGENT, PRIVATE))

    assert type(at_once) is type(awaited)
    assert site.requests == [ROBOTS_TXT]


# --- the contents of the file -------------------------------------------------


@pytest.mark.parametrize("dialect", Dialect)
async def test_robots_txt_is_the_file_parsed_in_the_checkers_dialect(
    dialect: Dialect,
) -> None:
    body = "user-agent *\ndisalow /x"
    checker = checker_of(site_of(body), dialect=dialect)

    robots_txt = await checker.robots_txt(PUBLIC)

    expected = RobotsTxt.parse(body, dialect=dialect)
    assert robots_txt is not None
    assert (robots_txt.dialect, robots_txt.groups) == (dialect, expected.groups)
    allowed = expected.can_fetch(AGENT, f"{ORIGIN}/x")
    assert await checker.can_fetch(AGENT, f"{ORIGIN}/x") is allowed


@pytest.mark.parametrize(
    ("limit", "is_cut"), [(len(RULES) - 1, True), (len(RULES), False)]
)
async def test_robots_txt_reports_that_the_file_was_cut(
    limit: int, *, is_cut: bool
) -> None:
    """It used to be cut before it was stored, which hid the fact."""
    policy, store = Policy(max_body_bytes=limit), MemoryStore()
    for site in (site_of(), site_of(status=503)):  # fetched, then from the store
        checker = checker_of(site, policy=policy, store=store)

        robots_txt = await checker.robots_txt(PUBLIC)

        assert robots_txt is not None
        kinds = [one.kind for one in robots_txt.diagnostics]
        assert (DiagnosticKind.FILE_CUT in kinds) is is_cut


@pytest.mark.parametrize("status", [404, 503])
async def test_robots_txt_and_its_contents_are_missing_without_a_file(
    status: int,
) -> None:
    checker = checker_of(site_of(status=status))

    assert await checker.robots_txt(PUBLIC) is None
    assert await checker.sitemaps(PUBLIC) == ()
    assert await checker.crawl_delay(AGENT, PUBLIC) is None
    assert await checker.request_rate(AGENT, PUBLIC) is None


async def test_delay_and_rate_depend_on_the_agent_but_sitemaps_do_not() -> None:
    """Sitemaps are URLs that the checker takes; broken ones used to be among them."""
    checker = checker_of(
        site_of(
            "User-agent: SlowBot\nCrawl-delay: 2.5\nRequest-rate: 3/60\n\n"
            "User-agent: *\nCrawl-delay: 10\n\n"
            "Sitemap: /1.xml\nSitemap: https://[::1/s.xml\n"
            "Sitemap: https://cdn.example/2.xml\n"
        )
    )

    assert await checker.crawl_delay(["NoBot", "SlowBot/2.0"], PUBLIC) == 2.5
    assert await checker.crawl_delay("Stranger", PUBLIC) == 10
    assert await checker.request_rate("Stranger", PUBLIC) is None
    rate = await checker.request_rate("SlowBot", PUBLIC)
    assert rate == RequestRate(requests=3, seconds=60)
    assert await checker.sitemaps(PUBLIC) == (
        "https://example.com/1.xml",
        "https://cdn.example/2.xml",
    )


@cases("status path preference line", {
    "a rule": (200, "/public", Preference.DISALLOW, 2),
    "the header": (200, "/open", Preference.DISALLOW, None),
    "disallowed": (200, "/private", Preference.UNKNOWN, None),
    "no file": (404, "/public", Preference.DISALLOW, None),
    "unreachable": (503, "/public", Preference.UNKNOWN, None),
})  # fmt: skip
@pytest.mark.parametrize("padding", [0, 5_000], ids=["at once", "in a worker thread"])
async def test_usage_preferences_come_from_the_file_and_the_header(
    status: int, path: str, preference: Preference, line: int | None, padding: int
) -> None:
    body = (
        "User-agent: *\nContent-Usage: train-ai=n\nContent-Usage: /open train-ai=y\n"
        f"Disallow: /private\nContent-Signal: {padding * '-'}\n"
    )
    checker = checker_of(site_of(body, status=status))

    preferences = await checker.usage_preferences(
        AGENT, ORIGIN + path, headers={"Content-Usage": "train-ai=n"}
    )

    assert preferences.content_usage["train-ai"] == CategoryPreference(
        preference=preference, line=line
    )
    assert checker.stats.checks == 0


# --- prefetch, refresh, forget, purge -------------------------------------------


async def test_prefetch_fetches_each_unknown_origin_once() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    urls = [PUBLIC, "mailto:me", f"{OTHER_ORIGIN}/a", "ftp://e.com/", OTHER_ORIGIN]

    await checker.prefetch(iter(urls))

    assert site.requests == [ROBOTS_TXT, f"{OTHER_ORIGIN}/robots.txt"]
    assert checker.peek(AGENT, OTHER_ORIGIN) is True


async def test_refresh_fetches_even_a_fresh_origin() -> None:
    """Also after the clock is set back, when the new answer seems to be the earlier."""
    clock, site = ManualClock(), site_of()
    checker = checker_of(site, clock=clock)
    before = await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, FULL_DISALLOW)
    unchanged = await checker.can_fetch(AGENT, PUBLIC)

    clock.set(clock.now() - 240)
    await checker.refresh(PUBLIC)
    after = await checker.can_fetch(AGENT, PUBLIC)

    assert (before, unchanged, after) == (True, True, False)
    assert len(site.requests) == 2
    assert checker.stats.store_misses == 1  # a refresh is not a miss


async def test_forget_removes_the_entry_from_memory_and_store() -> None:
    store = MemoryStore()
    checker = checker_of(site_of(), store=store)
    await checker.can_fetch(AGENT, PRIVATE)

    await checker.forget(PRIVATE)

    assert checker.peek(AGENT, PRIVATE) is None
    assert len(store) == 0
    assert checker.stats.live_origins == 0


async def test_lookup_during_forget_does_not_bring_the_entry_back() -> None:
    store = GatedStore("delete")
    site = site_of("User-agent: *\nAllow: /")
    checker = checker_of(site, store=store)
    assert await checker.can_fetch(AGENT, PRIVATE)
    site.serve(ORIGIN, RULES)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.forget, PRIVATE)
        await let_others_run()
        await checker.can_fetch(AGENT, PRIVATE)
        store.gate.set()

    assert not await checker.can_fetch(AGENT, PRIVATE)


class SlowStore(GatedStore):
    async def get(self, key: str) -> bytes | None:
        data = await self.behind.get(key)
        await self.begin("get")
        return data


async def test_copy_forgotten_during_its_lookup_is_not_used() -> None:
    store = SlowStore("get")
    site = site_of("User-agent: *\nAllow: /")
    store.gate.set()
    assert await checker_of(site, store=store).can_fetch(AGENT, PRIVATE)
    site.serve(ORIGIN, RULES)
    store.gate = anyio.Event()
    checker = checker_of(site, store=store)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PRIVATE)
        await let_others_run()
        await checker.forget(PRIVATE)
        store.gate.set()

    assert not await checker.can_fetch(AGENT, PRIVATE)


@pytest.mark.parametrize("store_type", [type(None), MemoryStore], ids=str)
async def test_purge_removes_entries_that_nothing_can_use(
    store_type: Callable[[], MemoryStore | None],
) -> None:
    clock = ManualClock()
    checker = checker_of(FakeSite(), store=store_type(), clock=clock)
    await checker.prefetch([ORIGIN, OTHER_ORIGIN])

    too_early = await checker.purge()
    clock.advance(DAY)
    dropped = await checker.purge()

    assert (too_early, dropped, await checker.purge()) == (0, 2, 0)


async def test_failed_purge_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    events: list[CheckerEvent] = []
    store = FailingStore("purge")
    checker = checker_of(FakeSite(), store=store, on_event=events.append)

    dropped = await checker.purge()

    assert dropped is None
    assert checker.stats.store_failures == 1
    (event,) = events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == ("purge", "")
    assert caplog.messages == [f"store failed to purge: {event.error!r}"]


async def test_store_that_always_fails_changes_no_result() -> None:
    clock = ManualClock()
    site = site_of()
    store = FailingStore("get", "update", "delete")
    checker = checker_of(site, store=store, clock=clock)

    fresh = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
    site.serve(ORIGIN, status=503)
    clock.advance(DAY)
    stale = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
    await checker.forget(ORIGIN)
    gone = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert (fresh, stale, gone) == ([False, True], [False, True], [False, False])


# --- one fetch for all callers, and its time --------------------------------------


async def test_concurrent_calls_of_all_methods_share_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        for call in CALLS.values():
            tasks.start_soon(call, checker, AGENT, PUBLIC)

    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize("cache_control", ["max-age=0", "no-store"])
async def test_200_lookups_of_a_file_that_is_never_fresh_share_requests(
    cache_control: str,
) -> None:
    site = site_of(cache_control=cache_control)
    checker = checker_of(site, policy=Policy(min_lifetime=0))

    answers = await concurrently(200, lambda: checker.can_fetch(AGENT, PRIVATE))
    at_once = len(site.requests)
    many = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC] * 100)

    assert answers == [False] * 200
    assert many == [False, True] * 100
    assert at_once == 1
    assert len(site.requests) == 2


async def test_freshness_lifetime_starts_when_the_response_arrives() -> None:
    clock = ManualClock()
    began_at = clock.now()
    events: list[CheckerEvent] = []

    def answer_slowly(_: httpx.Request) -> httpx.Response:
        clock.advance(10)
        return httpx.Response(404)

    site = httpx.MockTransport(answer_slowly)
    checker = checker_of(site, clock=clock, on_event=events.append)

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.fetched_at == began_at + 10
    assert verdict.fresh_until == began_at + 10 + DAY
    (event,) = events
    assert isinstance(event, RobotsTxtFetched)
    assert event.elapsed_seconds == 10


async def test_changed_access_result_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, site = ManualClock(), site_of()
    checker = checker_of(site, clock=clock)

    with caplog.at_level(logging.INFO, "robotsgate"):
        for status, seconds in ((200, 0.0), (503, DAY), (503, HOUR), (200, 2 * HOUR)):
            site.serve(ORIGIN, RULES, status=status)
            clock.advance(seconds)
            await checker.can_fetch(AGENT, PUBLIC)

    assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
        ("robotsgate.checker", "INFO", f"{ORIGIN} changed from {change}")
        for change in (
            "successful to unreachable (503)",
            "unreachable to successful (200)",
        )
    ]


async def test_exception_in_a_listener_is_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def listen(_: CheckerEvent) -> None:
        message = "the listener is broken"
        raise LookupError(message)

    checker = checker_of(site_of(), on_event=listen)

    with caplog.at_level(logging.WARNING, "robotsgate.checker"):
        allowed = await checker.can_fetch(AGENT, PRIVATE)

    assert allowed is False
    assert checker.stats.event_failures == 1
    record = caplog.records[-1]
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)
    assert "RobotsTxtFetched" in caplog.text
    assert "Disallow" not in caplog.text
