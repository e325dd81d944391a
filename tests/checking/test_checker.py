from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest

from robotsgate import (
    AccessResult,
    DiagnosticKind,
    Dialect,
    DisallowedError,
    InvalidProductTokenError,
    InvalidURLError,
    MemoryStore,
    Policy,
    PolitenessGate,
    Reason,
    RobotsChecker,
    RobotsTxt,
    StoreError,
    UnsupportedError,
)
from robotsgate.events import CheckerEvent, CheckerStats, RobotsTxtFetched, StoreFailed
from robotsgate.robotstxt import CategoryPreference, Preference, RequestRate
from robotsgate.testing import FakeSite, ManualClock

from .builders import (
    AGENT,
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
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Sequence,
    )
    from pathlib import Path


pytestmark = pytest.mark.anyio

FULL_DISALLOW = "User-agent: *\nDisallow: /\n"

# Every method that may fetch an origin.
CALLS: dict[str, Callable[[RobotsChecker, str], Coroutine[Any, Any, object]]] = {
    "can_fetch": lambda checker, url: checker.can_fetch(AGENT, url),
    "check": lambda checker, url: checker.check(AGENT, url),
    "can_fetch_many": lambda checker, url: checker.can_fetch_many(AGENT, [url]),
    "robots_txt": lambda checker, url: checker.robots_txt(url),
    "crawl_delay": lambda checker, url: checker.crawl_delay(AGENT, url),
    "request_rate": lambda checker, url: checker.request_rate(AGENT, url),
    "sitemaps": lambda checker, url: checker.sitemaps(url),
    "usage_preferences": lambda checker, url: checker.usage_preferences(AGENT, url),
    "prefetch": lambda checker, url: checker.prefetch([url]),
    "refresh": lambda checker, url: checker.refresh(url),
}

# Those that tolerate bad links.
MANY = {"can_fetch_many", "prefetch"}

# Those that take an agent.
CALLS_WITH_AGENT: dict[
    str, Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]]
] = {
    "can_fetch": RobotsChecker.can_fetch,
    "check": RobotsChecker.check,
    "can_fetch_many": lambda checker, agent, url: checker.can_fetch_many(agent, [url]),
    "crawl_delay": RobotsChecker.crawl_delay,
    "request_rate": RobotsChecker.request_rate,
    "usage_preferences": RobotsChecker.usage_preferences,
}


# --- can_fetch, check and their reasons ---------------------------------------


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("target", ["/private/%2e%2e/x", "/a\\..\\private"])
async def test_every_check_considers_all_readings_of_a_path(
    dialect: Dialect, target: str
) -> None:
    """`/private/%2e%2e/x` used to be checked as `/x`, which only aiohttp sends."""
    checker = checker_of(site_of(), dialect=dialect)
    url = f"{ORIGIN}{target}"

    verdict = await checker.check(AGENT, url)

    assert verdict.rule is not None
    assert verdict.rule.line == 2
    async for result in checker.check_many(AGENT, [url]):
        assert not result.verdict
    assert not await checker.can_fetch(AGENT, url)
    assert await checker.refusal(AGENT, url) is not None
    assert await checker.can_fetch_many(AGENT, [url, PUBLIC]) == [False, True]
    assert checker.peek(AGENT, url) is False
    gate = PolitenessGate(checker, AGENT)
    with pytest.raises(DisallowedError):
        await gate.turn(url).__aenter__()
    await gate.aclose()


@pytest.mark.parametrize(
    ("status", "limit", "url", "reason"),
    [
        pytest.param(200, DAY, PRIVATE, Reason.DISALLOWED_BY_RULE, id="rules"),
        pytest.param(404, DAY, PRIVATE, Reason.UNAVAILABLE, id="no file"),
        pytest.param(503, DAY, PUBLIC, Reason.UNREACHABLE, id="unreachable"),
        pytest.param(503, DAY, ROBOTS_TXT, Reason.ROBOTS_TXT, id="robots.txt"),
        pytest.param(503, 0, PUBLIC, Reason.UNREACHABLE_TOO_LONG, id="too long"),
    ],
)
async def test_every_check_agrees_with_the_verdict(
    status: int, limit: float, url: str, reason: Reason
) -> None:
    checker = checker_of(
        site_of(status=status), policy=Policy(unreachable_limit=limit, stale_window=0)
    )

    verdict = await checker.check(AGENT, url)

    assert verdict.reason is reason
    assert checker.peek(AGENT, url) is verdict.allowed
    assert await checker.can_fetch(AGENT, url) is verdict.allowed
    assert await checker.can_fetch_many(AGENT, [url]) == [verdict.allowed]


async def test_verdict_from_a_stale_copy_shows_the_rule_and_the_failure() -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, clock=clock)
    await checker.check(AGENT, PRIVATE)
    fetched_at = clock.now()
    clock.advance(DAY)
    site.serve(ORIGIN, status=503)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.reason) == (False, Reason.DISALLOWED_BY_RULE)
    assert verdict.is_stale is True
    assert (verdict.access, verdict.status) == (AccessResult.UNREACHABLE, 503)
    assert verdict.fetched_at == fetched_at
    assert 30 <= verdict.fresh_until - clock.now() <= 33


async def test_verdict_after_a_redirect_is_for_the_first_origin() -> None:
    site = site_of(status=301, location=f"{OTHER_ORIGIN}/robots.txt")
    site.serve(OTHER_ORIGIN, RULES)
    checker = checker_of(site)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.status) == (False, 200)
    assert verdict.redirects == ((f"{OTHER_ORIGIN}/robots.txt", 301),)
    assert verdict.origin == ORIGIN
    assert checker.peek(AGENT, f"{OTHER_ORIGIN}/private") is None


@pytest.mark.parametrize(
    ("agent", "allowed"),
    [
        pytest.param("ExampleBot-News", False, id="a token"),
        pytest.param(
            "Mozilla/5.0 (compatible; ExampleBot-News/2.1; +https://e.org)",
            False,
            id="a header",
        ),
        pytest.param(["ExampleBot-News", "ExampleBot"], False, id="a list"),
        pytest.param(("ExampleBot", "ExampleBot-News"), True, id="a tuple"),
        pytest.param(["Stranger", "ExampleBot-News"], False, id="the second of a list"),
    ],
)
async def test_agent_may_be_a_token_a_header_or_a_sequence(
    agent: str | Sequence[str], *, allowed: bool
) -> None:
    checker = checker_of(
        site_of(
            "User-agent: ExampleBot\nDisallow: /private\n\n"
            "User-agent: ExampleBot-News\nDisallow: /public\n\n"
            "User-agent: *\nDisallow:\n"
        )
    )

    first = await checker.can_fetch(agent, PUBLIC)
    second = await checker.can_fetch(agent, PUBLIC)
    verdict = await checker.check(agent, PUBLIC)

    assert (first, second, verdict.allowed) == (allowed, allowed, allowed)


async def test_url_may_be_a_url_object() -> None:
    checker = checker_of(site_of())

    answers = [
        await checker.can_fetch(AGENT, httpx.URL(PRIVATE)),
        checker.peek(AGENT, httpx.URL(PRIVATE)),
        checker.peek(AGENT, httpx.URL(PUBLIC)),
        (await checker.check(AGENT, httpx.URL(PRIVATE))).allowed,
        *await checker.can_fetch_many(AGENT, [httpx.URL(PRIVATE), httpx.URL(PUBLIC)]),
    ]

    assert answers == [False, False, True, False, False, True]


# --- invalid arguments --------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("/private", "absolute URL .* got '/private'", id="a path"),
        pytest.param("https://", "expected a host, got 'https://'", id="no host"),
        pytest.param(b"https://example.com/", "got b'http", id="bytes"),
        pytest.param(None, "got None", id="None"),
    ],
)
@pytest.mark.parametrize("method", ["can_fetch", "check", "crawl_delay"])
async def test_url_without_an_origin_is_refused_and_named(
    method: str, url: object, message: str
) -> None:
    site = site_of()
    checker = checker_of(site)

    with pytest.raises(InvalidURLError, match=message) as caught:
        await getattr(checker, method)(AGENT, url)
    with pytest.raises(InvalidURLError, match=message):
        checker.peek(AGENT, url)

    assert caught.value.url is url
    assert site.requests == []


@pytest.mark.parametrize("method", ["robots_txt", "sitemaps", "refresh", "forget"])
async def test_url_without_an_origin_is_refused_by_calls_without_an_agent(
    method: str,
) -> None:
    checker = checker_of(site_of())

    with pytest.raises(InvalidURLError, match="got '/relative'"):
        await getattr(checker, method)("/relative")


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        pytest.param("", "got ''", id="nothing"),
        pytest.param(["ExampleBot", 7], "got 7", id="a number in a list"),
        pytest.param([["ExampleBot"]], r"got \['ExampleBot'\]", id="a list in a list"),
        pytest.param({"ExampleBot"}, r"got \{'ExampleBot'\}", id="a set"),
        pytest.param(None, "got None", id="None"),
    ],
)
async def test_agent_without_a_token_is_refused_and_named(
    agent: Any,  # noqa: ANN401 (invalid on purpose)
    message: str,
) -> None:
    site = site_of()
    checker = checker_of(site)

    for look_up in CALLS_WITH_AGENT.values():
        with pytest.raises(InvalidProductTokenError, match=message) as caught:
            await look_up(checker, agent, PUBLIC)
        named = (agent, *(agent if isinstance(agent, list) else ()))
        assert caught.value.agent in named
    with pytest.raises(InvalidProductTokenError, match=message):
        checker.peek(agent, PUBLIC)

    assert site.requests == []


@pytest.mark.parametrize("name", sorted(CALLS.keys() - {"can_fetch_many", "prefetch"}))
async def test_ftp_is_refused_as_unsupported(name: str) -> None:
    checker = checker_of(site_of())

    with pytest.raises(UnsupportedError, match=r"FTP, got ftp://example\.com$"):
        await CALLS[name](checker, "ftp://example.com/file")


async def test_callers_mistake_is_not_raised_in_an_exception_group() -> None:
    """For example, a client that was closed too early raises a plain RuntimeError."""
    client = httpx.AsyncClient(transport=site_of())
    await client.aclose()
    checker = checker_of(client)

    with pytest.raises(RuntimeError, match="client has been closed"):
        await checker.can_fetch_many(AGENT, [PUBLIC, "https://other.example/"])


async def test_peek_and_forget_do_not_refuse_ftp() -> None:
    checker = checker_of(site_of())

    await checker.forget("ftp://example.com/file")

    assert checker.peek(AGENT, "ftp://example.com/file") is None


class NoStore:
    """Has none of the methods of a store."""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param({"user_agent": 7}, TypeError, "user_agent to be a str, got 7"),
        pytest.param({"user_agent": ""}, ValueError, "user_agent .* got ''"),
        pytest.param({"user_agent": " Bot"}, ValueError, "user_agent .* got ' Bot'"),
        pytest.param({"user_agent": "B\u00f6t"}, ValueError, "user_agent .* ASCII"),
        pytest.param({"user_agent": "Bot\r\nX: y"}, ValueError, "user_agent .* got"),
        pytest.param({"client": 7}, TypeError, "a Fetcher, got 7"),
        pytest.param({"client": "https"}, TypeError, "got 'https'"),
        pytest.param({"client": httpx.Client()}, TypeError, r"got <httpx\.Client"),
        pytest.param({"client": httpx.AsyncClient}, TypeError, "got <class"),
        pytest.param({"client": FakeSite}, TypeError, "got <class"),
        pytest.param({"store": 7}, StoreError, "store .* got 7"),
        pytest.param({"store": {}}, StoreError, r"store .* got \{\}"),
        pytest.param({"store": NoStore()}, StoreError, r"store .*\.NoStore"),
        pytest.param({"store": MemoryStore}, StoreError, "store .* <class"),
        pytest.param({"policy": None}, TypeError, "policy to be a Policy, got None"),
        pytest.param({"policy": {}}, TypeError, r"policy to be a Policy, got \{\}"),
        pytest.param({"dialect": "google"}, TypeError, "a Dialect, got 'google'"),
        pytest.param({"max_origins": 0}, ValueError, "max_origins to be 1 .* got 0"),
        pytest.param({"max_origins": -1}, ValueError, "max_origins to be 1 .* got -1"),
        pytest.param(
            {"max_origins": True}, TypeError, "max_origins to be an int, got True"
        ),
        pytest.param(
            {"max_origins": 1.5}, TypeError, "max_origins to be an int, got 1.5"
        ),
        pytest.param({"max_origins": None}, TypeError, "max_origins .* got None"),
        pytest.param({"max_concurrent_fetches": 0}, ValueError, "max_concurrent_f"),
        pytest.param({"max_concurrent_fetches": "9"}, TypeError, "fetches .* got '9'"),
        pytest.param({"clock": 7}, TypeError, "clock .* got 7"),
        pytest.param({"clock": time}, TypeError, "clock .* wait, got <module"),
        pytest.param({"on_event": 7}, TypeError, "on_event .* got 7"),
        pytest.param({"on_event": anyio.sleep_forever}, TypeError, "on_event .* sync"),
    ],
)
def test_invalid_constructor_argument_is_refused_and_named(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RobotsChecker(**{"user_agent": AGENT, **arguments})


def test_warning_about_a_missing_user_agent_points_to_the_caller() -> None:
    with pytest.warns(UserWarning, match="expected the user_agent of your") as warned:
        RobotsChecker()

    assert warned[0].filename == __file__


def test_checker_with_a_fake_site_needs_no_user_agent() -> None:
    RobotsChecker(client=FakeSite())


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


# --- can_fetch_many -----------------------------------------------------------


async def test_many_results_are_in_the_order_of_the_urls() -> None:
    site = site_of()
    site.serve(OTHER_ORIGIN, FULL_DISALLOW)
    checker = checker_of(site)
    await checker.prefetch([OTHER_ORIGIN])
    urls = [
        PRIVATE,
        f"{OTHER_ORIGIN}/a",
        PUBLIC,
        "https://third.example/private",
        PRIVATE,
        f"{OTHER_ORIGIN}/robots.txt",
        PUBLIC,
    ]

    answers = await checker.can_fetch_many(AGENT, urls)

    assert answers == [False, False, True, True, False, True, True]
    assert answers == [await checker.can_fetch(AGENT, url) for url in urls]


@pytest.mark.parametrize("urls", [[], (), iter(())])
async def test_no_urls_give_no_results(urls: Iterable[str]) -> None:
    site = site_of()

    answers = await checker_of(site).can_fetch_many(AGENT, urls)

    assert answers == []
    assert site.requests == []


async def test_urls_may_come_from_a_generator() -> None:
    def urls() -> Iterator[str]:
        yield PRIVATE
        yield PUBLIC

    checker = checker_of(site_of())

    cold = await checker.can_fetch_many([AGENT, "Other"], urls())
    hot = await checker.can_fetch_many([AGENT, "Other"], urls())

    assert (cold, hot) == ([False, True], [False, True])


async def test_invalid_agent_is_refused_even_without_urls() -> None:
    with pytest.raises(InvalidProductTokenError):
        await checker_of(site_of()).can_fetch_many("", [])


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        (PUBLIC, "got the single 'https://example"),
        (b"https://u:p@e.com", "got the single .<hidden>@e.com"),
        (httpx.URL(PUBLIC), "got URL"),
        (5, "got 5"),
        (None, "got None"),
    ],
    ids=repr,
)
async def test_anything_but_several_urls_is_refused(urls: Any, message: str) -> None:  # noqa: ANN401 (invalid on purpose)
    checker = checker_of(site_of())
    message = f"expected (several|an iterable of) URLs, {message}"

    with pytest.raises(TypeError, match=message):
        await checker.can_fetch_many(AGENT, urls)
    with pytest.raises(TypeError, match=message):
        await checker.prefetch(urls)
    with pytest.raises(TypeError, match=message):
        checker.check_many(AGENT, urls)


@pytest.mark.parametrize("no_url", [None, 5, b"https://example.com/"], ids=repr)
@pytest.mark.parametrize("name", sorted(MANY))
async def test_value_of_the_wrong_type_among_many_urls_is_refused(
    name: str, no_url: object
) -> None:
    """It used to be answered with `False`, although it is not a bad link."""
    with pytest.raises(InvalidURLError, match=rf"got {re.escape(repr(no_url))}"):
        await CALLS[name](checker_of(site_of()), no_url)


async def test_error_for_invalid_urls_suggests_what_to_do() -> None:
    checker = checker_of(site_of())

    async def urls() -> AsyncIterator[str]:
        yield PUBLIC  # pragma: no cover (never read)

    with pytest.raises(TypeError, match="an iterable of URLs, got <async_generator"):
        checker.check_many(AGENT, urls())  # type: ignore[arg-type]  # the mistake
    with pytest.raises(
        TypeError, match=r"the single 'Bot/1.0': are the arguments swapped.$"
    ):
        await checker.can_fetch_many([PUBLIC], "Bot/1.0")


@pytest.mark.parametrize("start", ["      http", "h\t\t\tttp"], ids=repr)
async def test_oddly_spelled_urls_are_checked_at_their_own_origins(start: str) -> None:
    """URLs with the same first ten characters used to get the first one's result."""
    site = FakeSite()
    site.serve("http://one.example", "")
    site.serve("http://other.example", FULL_DISALLOW)
    urls = [f"{start}://one.example/", f"{start}://other.example/"]

    answers = await checker_of(site).can_fetch_many(AGENT, urls)

    assert answers == [True, False]


async def test_bad_links_among_many_are_disallowed() -> None:
    site = site_of()
    urls = ["mailto:me", PUBLIC, "javascript:x", "http://[::1", "ftp://e.com/", PRIVATE]

    answers = await checker_of(site).can_fetch_many(AGENT, urls)

    assert answers == [False, True, False, False, False, False]
    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("is_check", [True, False], ids=["can_fetch_many", "prefetch"])
async def test_unknown_origins_are_fetched_concurrently_up_to_the_limit(
    limit: int, *, is_check: bool
) -> None:
    site = GatedSite()
    checker = checker_of(site, max_concurrent_fetches=limit)
    urls = [f"https://host{number}.example/" for number in range(10)]

    async with anyio.create_task_group() as tasks:
        if is_check:
            tasks.start_soon(checker.can_fetch_many, AGENT, urls)
        else:
            tasks.start_soon(checker.prefetch, urls)
        await let_others_run()
        under_way = site.under_way
        site.gate.set()

    assert under_way == min(limit, 10)
    assert site.most_under_way == min(limit, 10)
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


async def all_checked(checker: RobotsChecker, agent: str, urls: list[str]) -> None:
    async for _ in checker.check_many(agent, urls):
        pass


@pytest.mark.parametrize(
    "look_up",
    [
        pytest.param(RobotsChecker.can_fetch_many, id="can_fetch_many"),
        pytest.param(all_checked, id="check_many"),
    ],
)
async def test_checking_many_known_urls_lets_others_run(
    look_up: Callable[[RobotsChecker, str, list[str]], Awaitable[object]],
) -> None:
    checker = checker_of(site_of())
    await checker.can_fetch(AGENT, PUBLIC)

    turns = await turns_of_others_during(look_up(checker, AGENT, [PUBLIC] * 10_000))

    assert turns >= 19


async def test_checking_many_urls_of_a_cold_origin_lets_others_run() -> None:
    few = await turns_of_others_during(
        checker_of(site_of()).can_fetch_many(AGENT, [PUBLIC])
    )
    checker = checker_of(site_of())

    turns = await turns_of_others_during(
        checker.can_fetch_many(AGENT, [PUBLIC] * 10_000)
    )

    assert turns >= few + 2 * 19  # during the first pass, and during the lookups


@pytest.mark.parametrize(
    ("look_up", "loops"),
    [
        pytest.param(RobotsChecker.can_fetch_many, 2, id="can_fetch_many"),
        pytest.param(all_checked, 1, id="check_many"),
        pytest.param(
            lambda checker, _agent, urls: checker.prefetch(urls), 1, id="prefetch"
        ),
    ],
)
async def test_few_slow_urls_let_others_run(
    look_up: Callable[[RobotsChecker, str, list[str]], Awaitable[object]], loops: int
) -> None:
    """Only URLs used to be counted, and hostile rules blocked the loop for seconds."""
    few = await turns_of_others_during(
        look_up(checker_of(site_of(), clock=TickingClock()), AGENT, [PUBLIC])
    )

    turns = await turns_of_others_during(
        look_up(checker_of(site_of(), clock=TickingClock()), AGENT, [PUBLIC] * 300)
    )

    assert turns >= few + loops * 300 / 6


# --- peek ---------------------------------------------------------------------


async def test_peek_has_results_until_the_entry_expires() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(cache_control="max-age=3600"), clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)

    at_once = [checker.peek(AGENT, PRIVATE), checker.peek(AGENT, PUBLIC)]
    clock.advance(3_599.9)
    just_before = [checker.peek(AGENT, PRIVATE), checker.peek("Newcomer", PUBLIC)]
    clock.advance(0.1)
    at_expiry = [checker.peek(AGENT, PRIVATE), checker.peek("Newcomer", PUBLIC)]

    assert at_once == [False, True]
    assert just_before == [False, True]
    assert at_expiry == [None, None]


async def test_peek_counts_as_a_check_only_if_it_has_a_result() -> None:
    checker = checker_of(site_of())

    checker.peek(AGENT, PUBLIC)
    before = checker.stats.checks
    await checker.prefetch([PUBLIC])
    checker.peek(AGENT, PUBLIC)
    checker.peek(AGENT, PUBLIC)

    assert (before, checker.stats.checks) == (0, 2)


# --- a known origin -----------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(call, id=name)
        for name, call in CALLS.items()
        if name not in {"can_fetch_many", "prefetch", "refresh"}
    ],
)
async def test_lookup_of_a_known_origin_does_not_suspend(
    call: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]],
) -> None:
    site = site_of()
    checker = checker_of(site)
    awaited = await call(checker, PRIVATE)

    at_once = answered_at_once(call(checker, PRIVATE))

    assert type(at_once) is type(awaited)
    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda checker: checker.peek(AGENT, PUBLIC), id="peek"),
        pytest.param(
            lambda checker: answered_at_once(checker.can_fetch(AGENT, PUBLIC)),
            id="can_fetch",
        ),
        pytest.param(
            lambda checker: answered_at_once(checker.check(AGENT, PUBLIC)), id="check"
        ),
        pytest.param(
            lambda checker: checker.peek(AGENT, "HTTPS://Example.com"),
            id="peek in an unusual spelling",
        ),
    ],
)
async def test_check_of_a_known_origin_reads_the_clock_once(
    call: Callable[[RobotsChecker], object],
) -> None:
    class CountingClock(ManualClock):
        reads = 0

        def now(self) -> float:
            self.reads += 1
            return super().now()

    clock = CountingClock()
    checker = checker_of(site_of(), clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    reads_before = clock.reads

    call(checker)

    assert clock.reads - reads_before == 1


# --- the contents of the file -------------------------------------------------


async def test_robots_txt_is_the_parsed_file() -> None:
    checker = checker_of(site_of(RULES))

    robots_txt = await checker.robots_txt(PUBLIC)

    assert robots_txt is not None
    assert robots_txt.groups == RobotsTxt.parse(RULES).groups


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


async def test_robots_txt_has_the_checkers_dialect() -> None:
    checker = checker_of(site_of("user-agent *\ndisalow /x"), dialect=Dialect.GOOGLE)

    robots_txt = await checker.robots_txt(PUBLIC)

    assert robots_txt is not None
    assert robots_txt.dialect is Dialect.GOOGLE
    assert await checker.can_fetch(AGENT, f"{ORIGIN}/x") is False


@pytest.mark.parametrize("status", [404, 503])
async def test_robots_txt_and_its_contents_are_missing_without_a_file(
    status: int,
) -> None:
    checker = checker_of(site_of(status=status))

    assert await checker.robots_txt(PUBLIC) is None
    assert await checker.sitemaps(PUBLIC) == ()
    assert await checker.crawl_delay(AGENT, PUBLIC) is None
    assert await checker.request_rate(AGENT, PUBLIC) is None


RATES = (
    "User-agent: SlowBot\nCrawl-delay: 2.5\nRequest-rate: 3/60\n\n"
    "User-agent: *\nCrawl-delay: 10\n\n"
    "Sitemap: https://example.com/1.xml\nSitemap: https://cdn.example/2.xml\n"
)


async def test_delay_and_rate_depend_on_the_agent_but_sitemaps_do_not() -> None:
    checker = checker_of(site_of(RATES))

    assert await checker.crawl_delay(["NoBot", "SlowBot/2.0"], PUBLIC) == 2.5
    assert await checker.crawl_delay("Stranger", PUBLIC) == 10
    assert await checker.request_rate("Stranger", PUBLIC) is None
    rate = await checker.request_rate("SlowBot", PUBLIC)
    assert rate == RequestRate(requests=3, seconds=60)
    assert await checker.sitemaps(PUBLIC) == (
        "https://example.com/1.xml",
        "https://cdn.example/2.xml",
    )


@pytest.mark.parametrize(
    ("status", "path", "preference", "line"),
    [
        pytest.param(200, "/public", Preference.DISALLOW, 2, id="rule"),
        pytest.param(200, "/open", Preference.DISALLOW, None, id="header"),
        pytest.param(200, "/private", Preference.UNKNOWN, None, id="disallowed"),
        pytest.param(404, "/public", Preference.DISALLOW, None, id="no file"),
        pytest.param(503, "/public", Preference.UNKNOWN, None, id="unreachable"),
    ],
)
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


async def test_sitemaps_are_absolute_urls_that_the_checker_takes() -> None:
    """Broken ones used to raise an InvalidURLError from the next call."""
    values = ["/a.xml", "b.xml", f"{ORIGIN}/a.xml", "https://[::1/s.xml", "mailto:me"]
    values += [f"{ORIGIN}/c.xml, https://cdn.example/d.xml https://https://e.com/e.xml"]
    checker = checker_of(site_of("".join(f"Sitemap: {one}\n" for one in values)))

    assert await checker.sitemaps(PUBLIC) == (
        f"{ORIGIN}/a.xml",
        f"{ORIGIN}/b.xml",
        f"{ORIGIN}/c.xml",
        "https://cdn.example/d.xml",
    )


# --- prefetch, refresh, forget ------------------------------------------------


async def test_prefetch_fetches_each_unknown_origin_once() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)

    await checker.prefetch(iter([PUBLIC, f"{OTHER_ORIGIN}/a", f"{OTHER_ORIGIN}/b"]))

    assert site.requests == [ROBOTS_TXT, f"{OTHER_ORIGIN}/robots.txt"]
    assert checker.peek(AGENT, OTHER_ORIGIN) is True


async def test_prefetch_skips_urls_without_an_http_origin() -> None:
    site = site_of()

    await checker_of(site).prefetch(["mailto:me", PUBLIC, "ftp://e.com/", "/relative"])

    assert site.requests == [ROBOTS_TXT]


async def test_refresh_fetches_even_a_fresh_origin() -> None:
    site = site_of()
    checker = checker_of(site)
    before = await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, FULL_DISALLOW)
    unchanged = await checker.can_fetch(AGENT, PUBLIC)

    await checker.refresh(PUBLIC)
    after = await checker.can_fetch(AGENT, PUBLIC)

    assert (before, unchanged, after) == (True, True, False)
    assert len(site.requests) == 2
    assert checker.stats.store_misses == 1  # a refresh is not a miss


async def test_refresh_joins_a_running_fetch() -> None:
    site = GatedSite()
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        site.gate.set()

    assert site.requests == [ROBOTS_TXT]


async def test_forget_removes_the_entry_from_memory_and_store() -> None:
    site = site_of()
    store = MemoryStore()
    checker = checker_of(site, store=store)
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
        await self._wait_at("get")
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


async def test_running_fetch_does_not_use_a_forgotten_copy() -> None:
    clock = ManualClock()
    site = GatedSite()
    site.serve(ORIGIN, "User-agent: *\nAllow: /")
    site.gate.set()
    checker = checker_of(site, clock=clock)
    assert await checker.can_fetch(AGENT, PRIVATE)
    clock.advance(2 * DAY)
    site.gate = anyio.Event()
    site.serve(ORIGIN, status=500)
    answers: list[bool] = []

    async def look_up() -> None:
        answers.append(await checker.can_fetch(AGENT, PRIVATE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_up)
        await let_others_run()
        await checker.forget(PRIVATE)
        site.gate.set()

    assert answers == [False]


async def test_refresh_after_the_clock_is_set_back_brings_the_new_rules() -> None:
    clock = ManualClock()
    site = site_of("User-agent: *\nAllow: /")
    checker = checker_of(site, clock=clock)
    assert await checker.can_fetch(AGENT, PRIVATE)

    clock.set(clock.now() - 240)
    site.serve(ORIGIN, RULES)
    await checker.refresh(PRIVATE)

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


async def test_failed_purge_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
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


# --- closing ------------------------------------------------------------------


@pytest.mark.parametrize("look_up", CALLS.values(), ids=CALLS)
async def test_closed_checker_refuses_every_call(
    look_up: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]],
) -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    await checker.aclose()

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await look_up(checker, PUBLIC)

    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.live_origins == 0


# --- one fetch for all callers ------------------------------------------------


async def test_concurrent_calls_of_all_methods_share_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        for call in CALLS.values():
            tasks.start_soon(call, checker, PUBLIC)

    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize("cache_control", ["max-age=0", "no-store", "no-cache"])
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


# --- time ---------------------------------------------------------------------


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


# --- stores -------------------------------------------------------------------


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


# --- counters, events, log ----------------------------------------------------


async def test_stats_count_fetches_by_access_result() -> None:
    site = site_of()
    for number, status in enumerate([200, 204, 404, 403, 410, 503, 429]):
        site.serve(f"https://host{number}.example", status=status)
    checker = checker_of(site, policy=Policy.strict())
    urls = [f"https://host{number}.example/" for number in range(7)]

    await checker.can_fetch_many(AGENT, urls)
    await checker.check(AGENT, urls[0])

    assert checker.stats == CheckerStats(
        checks=8,
        allowed=5,
        disallowed={Reason.RESTRICTED: 1, Reason.UNREACHABLE: 2},
        fetches=7,
        successful=2,
        unavailable=2,
        unreachable=2,
        restricted=1,
        store_misses=7,
        live_origins=7,
    )


async def test_fetch_is_reported_as_one_event() -> None:
    clock = ManualClock()
    events: list[CheckerEvent] = []
    site = FakeSite()
    headers = {"Content-Type": "text/plain", "Set-Cookie": "secret=1"}
    site.serve(ORIGIN, RULES, headers=headers)
    checker = checker_of(site, clock=clock, on_event=events.append)

    await checker.can_fetch(AGENT, PUBLIC)
    await checker.can_fetch(AGENT, PRIVATE)

    assert events == [
        RobotsTxtFetched(
            origin=ORIGIN,
            access=AccessResult.SUCCESSFUL,
            previous_access=None,
            status=200,
            redirects=(),
            headers=(("content-type", "text/plain"),),
            failure=None,
            error=None,
            body_bytes=len(RULES),
            elapsed_seconds=0.0,
            next_fetch_at=clock.now() + DAY,
            file=RULES.encode(),
            previous_file=None,
        ),
    ]


async def test_changed_access_result_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, clock=clock)

    with caplog.at_level(logging.INFO, "robotsgate"):
        await checker.can_fetch(AGENT, PUBLIC)
        site.serve(ORIGIN, status=503)
        clock.advance(DAY)
        await checker.can_fetch(AGENT, PUBLIC)
        clock.advance(HOUR)
        await checker.can_fetch(AGENT, PUBLIC)
        site.serve(ORIGIN, RULES)
        clock.advance(2 * HOUR)
        await checker.can_fetch(AGENT, PUBLIC)

    assert [
        (record.name, record.levelname, record.getMessage())
        for record in caplog.records
    ] == [
        (
            "robotsgate.checker",
            "INFO",
            f"{ORIGIN} changed from successful to unreachable (503)",
        ),
        (
            "robotsgate.checker",
            "INFO",
            f"{ORIGIN} changed from unreachable to successful (200)",
        ),
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


@pytest.mark.parametrize("status", [200, 404, 500, 503])
async def test_log_never_contains_a_body_or_a_password(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    site = site_of("User-agent: *\nDisallow: /body-of-the-file", status=status)
    checker = checker_of(site, clock=clock)

    with caplog.at_level(logging.DEBUG, "robotsgate"):
        await checker.can_fetch(AGENT, "https://user:password@example.com/")
        site.serve(ORIGIN, "User-agent: *\nDisallow: /body-of-the-file", status=206)
        clock.advance(7 * DAY)
        await checker.can_fetch(AGENT, "https://user:password@example.com/")

    assert caplog.records
    assert "body-of-the-file" not in caplog.text
    assert "password" not in caplog.text
