from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate import (
    AccessChanged,
    AccessResult,
    AfterStaleWindow,
    CheckerEvent,
    CheckerStats,
    Dialect,
    FailureKind,
    InvalidProductTokenError,
    InvalidURLError,
    MemoryStore,
    Policy,
    Reason,
    RequestRate,
    RobotsChecker,
    RobotsTxt,
    RobotsTxtFetched,
    RuleKind,
    StoreError,
    StoreFailed,
    UnsupportedError,
)
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.urls._origin import split_url

from .builders import (
    AGENT,
    DAY,
    HOUR,
    MINUTE,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    ClosableStore,
    CountingClock,
    FailingStore,
    GatedSite,
    GatedStore,
    SlowSite,
    answered_at_once,
    checker_of,
    concurrently,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Sequence,
    )

    from robotsgate import Entry

pytestmark = pytest.mark.anyio

FULL_DISALLOW = "User-agent: *\nDisallow: /\n"

# Every way to ask a checker about an origin.
QUESTIONS: dict[str, Callable[[RobotsChecker, str], Coroutine[Any, Any, object]]] = {
    "can_fetch": lambda checker, url: checker.can_fetch(AGENT, url),
    "check": lambda checker, url: checker.check(AGENT, url),
    "can_fetch_many": lambda checker, url: checker.can_fetch_many(AGENT, [url]),
    "robots_txt": lambda checker, url: checker.robots_txt(url),
    "crawl_delay": lambda checker, url: checker.crawl_delay(AGENT, url),
    "request_rate": lambda checker, url: checker.request_rate(AGENT, url),
    "sitemaps": lambda checker, url: checker.sitemaps(url),
    "prefetch": lambda checker, url: checker.prefetch([url]),
    "refresh": lambda checker, url: checker.refresh(url),
}

# Those with an agent.
QUESTIONS_OF_AGENT: dict[
    str, Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]]
] = {
    "can_fetch": RobotsChecker.can_fetch,
    "check": RobotsChecker.check,
    "can_fetch_many": lambda checker, agent, url: checker.can_fetch_many(agent, [url]),
    "crawl_delay": RobotsChecker.crawl_delay,
    "request_rate": RobotsChecker.request_rate,
}


@pytest.fixture(params=QUESTIONS.values(), ids=QUESTIONS)
def ask(
    request: pytest.FixtureRequest,
) -> Callable[[RobotsChecker, str], Coroutine[Any, Any, object]]:
    question: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]] = (
        request.param
    )
    return question


@pytest.fixture(params=QUESTIONS_OF_AGENT.values(), ids=QUESTIONS_OF_AGENT)
def ask_for(
    request: pytest.FixtureRequest,
) -> Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]]:
    question: Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]] = (
        request.param
    )
    return question


# --- can_fetch, check and their reasons ---------------------------------------


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        pytest.param(PUBLIC, True, id="no rule matches"),
        pytest.param(PRIVATE, False, id="a rule disallows"),
        pytest.param(f"{PRIVATE}/open", True, id="a longer rule allows"),
        pytest.param(ROBOTS_TXT, True, id="the file itself"),
        pytest.param(ORIGIN, True, id="no path"),
        pytest.param(f"{OTHER_ORIGIN}/private", True, id="an origin without a file"),
    ],
)
async def test_can_fetch_answers_by_the_rules_of_the_origin(
    url: str, *, allowed: bool
) -> None:
    checker = checker_of(site_of())

    first = await checker.can_fetch(AGENT, url)
    second = await checker.can_fetch(AGENT, url)

    assert (first, second) == (allowed, allowed)


async def entry_refused(clock: ManualClock) -> Entry:
    """An entry as an address guard leaves it behind."""
    site = FakeSite()
    site.fail(ORIGIN, httpx.ConnectError("refused"))
    store = MemoryStore()
    async with checker_of(site, store=StoreBehind(store), clock=clock) as checker:
        await checker.can_fetch(AGENT, PUBLIC)
    entry = await store.get(ORIGIN)
    assert entry is not None
    return replace(entry, failure=FailureKind.ADDRESS_REFUSED)


class StoreBehind:
    """Hands everything on to another store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def get(self, origin: str) -> Entry | None:
        return await self._store.get(origin)

    async def put(self, entry: Entry) -> None:
        await self._store.put(entry)

    async def delete(self, origin: str) -> None:
        await self._store.delete(origin)

    async def purge(self, now: float) -> int:
        return await self._store.purge(now)

    async def aclose(self) -> None:
        await self._store.aclose()


@pytest.mark.parametrize(
    ("site", "policy", "url", "reason", "allowed"),
    [
        pytest.param(
            site_of(), Policy(), PRIVATE, Reason.DISALLOWED_BY_RULE, False, id="rule"
        ),
        pytest.param(
            site_of(),
            Policy(),
            f"{PRIVATE}/open",
            Reason.ALLOWED_BY_RULE,
            True,
            id="allow",
        ),
        pytest.param(
            site_of(), Policy(), PUBLIC, Reason.NO_MATCHING_RULE, True, id="no match"
        ),
        pytest.param(
            site_of("User-agent: Other\nDisallow: /"),
            Policy(),
            PUBLIC,
            Reason.NO_GROUP,
            True,
            id="no group",
        ),
        pytest.param(
            site_of("", status=204),
            Policy(),
            PUBLIC,
            Reason.NO_GROUP,
            True,
            id="empty",
        ),
        pytest.param(
            site_of(FULL_DISALLOW),
            Policy(),
            ROBOTS_TXT,
            Reason.ROBOTS_TXT,
            True,
            id="robots.txt",
        ),
        pytest.param(
            site_of(status=503),
            Policy(),
            ROBOTS_TXT,
            Reason.ROBOTS_TXT,
            True,
            id="robots.txt of an unreachable origin",
        ),
        pytest.param(
            site_of(status=404), Policy(), PRIVATE, Reason.UNAVAILABLE, True, id="404"
        ),
        pytest.param(
            site_of(status=429), Policy(), PUBLIC, Reason.UNREACHABLE, False, id="429"
        ),
        pytest.param(
            site_of(status=503), Policy(), PUBLIC, Reason.UNREACHABLE, False, id="503"
        ),
        pytest.param(
            site_of(status=503),
            Policy(stale_window=0),
            PUBLIC,
            Reason.UNREACHABLE_TOO_LONG,
            True,
            id="unreachable too long",
        ),
        pytest.param(
            site_of(status=503),
            Policy(stale_window=0, after_stale_window=AfterStaleWindow.DISALLOW),
            PUBLIC,
            Reason.UNREACHABLE_TOO_LONG,
            False,
            id="unreachable too long, strictly",
        ),
        pytest.param(
            site_of(status=403),
            Policy.strict(),
            PUBLIC,
            Reason.RESTRICTED,
            False,
            id="403, strictly",
        ),
    ],
)
async def test_check_gives_the_reason(
    site: FakeSite, policy: Policy, url: str, reason: Reason, *, allowed: bool
) -> None:
    checker = checker_of(site, policy=policy)

    verdict = await checker.check(AGENT, url)

    assert (verdict.reason, verdict.allowed) == (reason, allowed)
    assert checker.peek(AGENT, url) is allowed
    assert await checker.can_fetch(AGENT, url) is allowed


async def test_refused_address_of_the_store_is_disallowed() -> None:
    clock = ManualClock()
    store = MemoryStore()
    await store.put(await entry_refused(clock))
    checker = checker_of(site_of(), store=StoreBehind(store), clock=clock)

    verdict = await checker.check(AGENT, PUBLIC)

    assert (verdict.allowed, verdict.reason) == (False, Reason.ADDRESS_REFUSED)


async def test_verdict_of_a_file_names_the_rule_and_its_line() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(), clock=clock)

    verdict = await checker.check(AGENT, PRIVATE)

    assert verdict.rule is not None
    assert (verdict.rule.kind, verdict.rule.line) == (RuleKind.DISALLOW, 2)
    assert verdict.group == "*"
    assert verdict.access is AccessResult.SUCCESSFUL
    assert (verdict.status, verdict.redirects, verdict.error) == (200, 0, None)
    assert verdict.is_stale is False
    assert verdict.origin == ORIGIN
    assert verdict.fetched_at == clock.now()
    assert verdict.fresh_until == clock.now() + DAY


async def test_verdict_of_a_stale_copy_names_the_rule_and_the_failure() -> None:
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
    assert verdict.fresh_until == fetched_at + DAY


async def test_verdict_of_a_missing_file_tells_when_it_was_found_missing() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(status=410), clock=clock)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.access, verdict.status) == (AccessResult.UNAVAILABLE, 410)
    assert (verdict.rule, verdict.group, verdict.error) == (None, None, None)
    assert (verdict.fetched_at, verdict.fresh_until) == (clock.now(), clock.now() + DAY)


async def test_verdict_of_a_429_tells_when_the_origin_is_asked_again() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(status=429, retry_after="7200"), clock=clock)

    verdict = await checker.check(AGENT, PUBLIC)

    assert (verdict.access, verdict.status) == (AccessResult.UNREACHABLE, 429)
    assert verdict.fresh_until == clock.now() + 2 * HOUR
    assert verdict.is_stale is False


async def test_verdict_after_a_redirect_is_of_the_first_origin() -> None:
    site = site_of(status=301, location=f"{OTHER_ORIGIN}/robots.txt")
    site.serve(OTHER_ORIGIN, RULES)
    checker = checker_of(site)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.redirects, verdict.status) == (False, 1, 200)
    assert verdict.origin == ORIGIN
    assert checker.peek(AGENT, f"{OTHER_ORIGIN}/private") is None


async def test_verdict_of_a_broken_redirect_says_what_is_wrong() -> None:
    checker = checker_of(site_of(status=302))

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.reason) == (True, Reason.UNAVAILABLE)
    assert verdict.status == 302
    assert verdict.error == "a redirect without a Location"


async def test_verdict_of_a_dead_host_says_what_failed() -> None:
    site = FakeSite()
    site.fail(ORIGIN, httpx.ConnectError("connection refused"))
    checker = checker_of(site)

    verdict = await checker.check(AGENT, PUBLIC)

    assert (verdict.allowed, verdict.reason) == (False, Reason.UNREACHABLE)
    assert (verdict.status, verdict.fetched_at) == (None, None)
    assert verdict.error == "ConnectError: connection refused"


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    "url",
    [
        ROBOTS_TXT,
        "HTTPS://EXAMPLE.COM:443/robots.txt",
        f"{ROBOTS_TXT}#rules",
        "https://user:secret@example.com/robots.txt",
    ],
)
async def test_robots_txt_itself_is_always_allowed(dialect: Dialect, url: str) -> None:
    """RFC 9309 §2.2.2."""
    checker = checker_of(site_of(FULL_DISALLOW), dialect=dialect)

    answers = [
        await checker.can_fetch(AGENT, url),
        checker.peek(AGENT, url),
        checker.peek(AGENT, url),
        await checker.can_fetch(AGENT, url),
        (await checker.check(AGENT, url)).allowed,
        *await checker.can_fetch_many(AGENT, [url]),
    ]

    assert answers == [True] * 6
    assert await checker.can_fetch(AGENT, f"{ROBOTS_TXT}?x=1") is False
    assert await checker.can_fetch(AGENT, f"{ROBOTS_TXT}/x") is False


@pytest.mark.parametrize(
    ("agent", "allowed"),
    [
        pytest.param("ExampleBot-News", False, id="a token"),
        pytest.param("EXAMPLEBOT-NEWS", False, id="a token in another case"),
        pytest.param("ExampleBot-News/2.1 (+https://e.org)", False, id="a header"),
        pytest.param(
            "Mozilla/5.0 (compatible; ExampleBot-News/2.1; +https://e.org)",
            False,
            id="a browser-like header",
        ),
        pytest.param("ExampleBot", True, id="another token"),
        pytest.param("Stranger", True, id="a token without a group"),
        pytest.param(["ExampleBot-News", "ExampleBot"], False, id="a list"),
        pytest.param(("ExampleBot", "ExampleBot-News"), True, id="a tuple"),
        pytest.param(["Stranger", "ExampleBot-News"], False, id="the second of a list"),
        pytest.param(["Stranger", "Other"], True, id="none of a list"),
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


async def test_url_may_be_any_object_that_reads_as_one() -> None:
    checker = checker_of(site_of())

    answers = [
        await checker.can_fetch(AGENT, httpx.URL(PRIVATE)),
        checker.peek(AGENT, httpx.URL(PRIVATE)),
        checker.peek(AGENT, httpx.URL(PUBLIC)),
        (await checker.check(AGENT, httpx.URL(PRIVATE))).allowed,
        *await checker.can_fetch_many(AGENT, [httpx.URL(PRIVATE), httpx.URL(PUBLIC)]),
    ]

    assert answers == [False, False, True, False, False, True]


@pytest.mark.parametrize(
    "url",
    [
        "https://www.example.com/private",
        "https://example.com:8181/private",
        "http://example.com/private",
        "http://example.com:443/private",
        "https://example.com./private",
    ],
)
async def test_rules_bind_no_other_origin(url: str) -> None:
    checker = checker_of(site_of())
    await checker.can_fetch(AGENT, PRIVATE)

    peeked = checker.peek(AGENT, url)
    allowed = await checker.can_fetch(AGENT, url)

    assert (peeked, allowed) == (None, True)


# --- what the caller does wrong -----------------------------------------------


@pytest.mark.parametrize(
    ("url", "message"),
    [
        pytest.param("/private", "absolute URL .* got '/private'", id="a path"),
        pytest.param("example.com/x", "got 'example.com/x'", id="no scheme"),
        pytest.param("//example.com/x", "got '//example.com/x'", id="no scheme but //"),
        pytest.param("", "got ''", id="nothing"),
        pytest.param("https://", "expected a host, got 'https://'", id="no host"),
        pytest.param("https:///x", "expected a host, got 'https:///x'", id="no host /"),
        pytest.param("https:x", "expected // and a host", id="no slashes"),
        pytest.param("https://user@/x", "expected a host", id="a user without a host"),
        pytest.param("gopher://example.com/", "scheme .* got 'gopher:", id="gopher"),
        pytest.param("mailto:a@example.com", "scheme http, .* got", id="mailto"),
        pytest.param("https://e.com:65536/", "port from 1 to 65535", id="port 65536"),
        pytest.param("https://e.com:0/", "port from 1 to 65535", id="port 0"),
        pytest.param("https://e.com:-1/", "port of digits", id="port -1"),
        pytest.param("https://e.com:http/", "port of digits", id="port http"),
        pytest.param("https://[::1/", "IPv6", id="half a bracket"),
        pytest.param("https://1.2.3.4.5/", "IPv4", id="five numbers"),
        pytest.param("https://a b/", "without ' '", id="a space in the host"),
        pytest.param(b"https://example.com/", "got bytes", id="bytes"),
        pytest.param(None, "got 'None'", id="None"),
        pytest.param(7, "got '7'", id="a number"),
    ],
)
async def test_url_without_an_origin_is_refused_by_name(
    ask_for: Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]],
    url: object,
    message: str,
) -> None:
    site = site_of()
    checker = checker_of(site)

    with pytest.raises(InvalidURLError, match=message) as caught:
        await ask_for(checker, AGENT, url)
    with pytest.raises(InvalidURLError, match=message):
        checker.peek(AGENT, url)

    assert caught.value.url is url
    assert site.requests == []


@pytest.mark.parametrize("method", ["robots_txt", "sitemaps", "refresh", "forget"])
async def test_url_without_an_origin_is_refused_where_there_is_no_agent(
    method: str,
) -> None:
    checker = checker_of(site_of())

    with pytest.raises(InvalidURLError, match="got '/relative'"):
        await getattr(checker, method)("/relative")


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        pytest.param("", "got ''", id="nothing"),
        pytest.param("   ", "got '   '", id="blanks"),
        pytest.param("/", "got '/'", id="a slash"),
        pytest.param(PUBLIC, f"got '{PUBLIC}': arguments swapped?", id="a URL"),
        pytest.param([], r"got \[\]", id="an empty list"),
        pytest.param((), r"got \(\)", id="an empty tuple"),
        pytest.param(["ExampleBot", ""], "got ''", id="nothing in a list"),
        pytest.param([PUBLIC], "swapped", id="a URL in a list"),
        pytest.param(["ExampleBot", 7], "got 7", id="a number in a list"),
        pytest.param([["ExampleBot"]], r"got \['ExampleBot'\]", id="a list in a list"),
        pytest.param(None, "got None", id="None"),
        pytest.param(7, "got 7", id="a number"),
        pytest.param(b"ExampleBot", "got b'ExampleBot'", id="bytes"),
        pytest.param({"ExampleBot"}, r"got \{'ExampleBot'\}", id="a set"),
        pytest.param(httpx.URL(PUBLIC), r"got URL\(", id="an httpx.URL"),
    ],
)
async def test_agent_without_a_token_is_refused_by_name(
    ask_for: Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]],
    agent: object,
    message: str,
) -> None:
    site = site_of()
    checker = checker_of(site)

    with pytest.raises(InvalidProductTokenError, match=message) as caught:
        await ask_for(checker, agent, PUBLIC)
    with pytest.raises(InvalidProductTokenError, match=message):
        checker.peek(agent, PUBLIC)

    assert caught.value.agent in (agent, *(agent if isinstance(agent, list) else ()))
    assert site.requests == []


async def test_set_of_agents_is_refused_even_if_the_same_tuple_is_known() -> None:
    checker = checker_of(site_of())
    await checker.can_fetch((AGENT,), PUBLIC)
    agents: Any = {AGENT}

    with pytest.raises(InvalidProductTokenError):
        await checker.can_fetch(agents, PUBLIC)


async def test_swapped_arguments_are_told_as_such(
    ask_for: Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]],
) -> None:
    checker = checker_of(site_of())

    with pytest.raises(InvalidProductTokenError, match=r"arguments swapped\?"):
        await ask_for(checker, PUBLIC, AGENT)


async def test_password_of_a_refused_url_is_not_shown() -> None:
    checker = checker_of(site_of())

    with pytest.raises(InvalidURLError) as caught:
        await checker.can_fetch(AGENT, "https://user:secret@example.com:port/")

    assert "secret" not in str(caught.value)


async def test_ftp_is_refused_as_unsupported(
    ask: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]],
) -> None:
    checker = checker_of(site_of())

    with pytest.raises(UnsupportedError, match=r"ftp .* got ftp://example\.com$"):
        await ask(checker, "ftp://example.com/file")


async def test_ftp_among_many_urls_is_refused_before_any_request() -> None:
    site = site_of()
    checker = checker_of(site)

    with pytest.raises(UnsupportedError):
        await checker.can_fetch_many(AGENT, [PUBLIC, "ftp://example.com/file"])

    assert site.requests == []


async def test_mistake_of_the_caller_among_many_is_raised_by_itself() -> None:
    """A client that was closed too early raises RuntimeError, and not in a group."""
    client = httpx.AsyncClient(transport=site_of())
    await client.aclose()
    checker = checker_of(client)

    with pytest.raises(RuntimeError, match="client has been closed"):
        await checker.can_fetch_many(AGENT, [PUBLIC, "https://other.example/"])


async def test_ftp_is_unknown_to_peek_and_forget() -> None:
    checker = checker_of(site_of())

    await checker.forget("ftp://example.com/file")

    assert checker.peek(AGENT, "ftp://example.com/file") is None


async def test_usage_preferences_are_refused_as_unsupported() -> None:
    checker = checker_of(site_of())

    with pytest.raises(UnsupportedError, match=r"usage preferences .* https://example"):
        await checker.usage_preferences(AGENT, PUBLIC)


class NoStore:
    """Has nothing of a store."""


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        pytest.param({"user_agent": 7}, TypeError, "user_agent as str, got 7"),
        pytest.param({"user_agent": None}, TypeError, "user_agent as str, got None"),
        pytest.param({"user_agent": ""}, ValueError, "user_agent .* got ''"),
        pytest.param({"user_agent": " Bot"}, ValueError, "user_agent .* got ' Bot'"),
        pytest.param({"user_agent": "B\u00f6t"}, ValueError, "user_agent .* ASCII"),
        pytest.param({"user_agent": "Bot\r\nX: y"}, ValueError, "user_agent .* got"),
        pytest.param({"client": 7}, TypeError, r"httpx\.AsyncClient .* got 7"),
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
        pytest.param({"max_origins": 0}, ValueError, "max_origins of 1 .* got 0"),
        pytest.param({"max_origins": -1}, ValueError, "max_origins of 1 .* got -1"),
        pytest.param({"max_origins": True}, TypeError, "max_origins as int, got True"),
        pytest.param({"max_origins": 1.5}, TypeError, "max_origins as int, got 1.5"),
        pytest.param({"max_origins": None}, TypeError, "max_origins .* got None"),
        pytest.param({"max_concurrent_fetches": 0}, ValueError, "max_concurrent_f"),
        pytest.param({"max_concurrent_fetches": "9"}, TypeError, "fetches .* got '9'"),
        pytest.param({"clock": 7}, TypeError, "clock .* got 7"),
        pytest.param({"on_event": 7}, TypeError, "on_event .* got 7"),
        pytest.param({"on_event": anyio.sleep_forever}, TypeError, "on_event .* plain"),
    ],
)
def test_wrong_argument_of_the_constructor_is_refused_by_name(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        RobotsChecker(**arguments)


def test_positional_arguments_are_refused() -> None:
    make: Callable[..., RobotsChecker] = RobotsChecker

    with pytest.raises(TypeError, match="positional"):
        make("ExampleBot/1.0")


def test_checker_without_arguments_can_be_made_outside_of_an_event_loop() -> None:
    checker = RobotsChecker()

    assert checker.stats == CheckerStats()
    assert checker.peek(AGENT, PUBLIC) is None


# --- can_fetch_many -----------------------------------------------------------


async def test_many_answers_come_in_the_order_of_the_urls() -> None:
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


async def test_many_urls_of_one_origin_cost_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC] * 600)

    assert answers == [False, True] * 600
    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize("urls", [[], (), iter(())])
async def test_no_urls_get_no_answers(urls: Iterable[str]) -> None:
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


async def test_bad_url_among_many_is_refused_before_any_request() -> None:
    site = site_of()
    checker = checker_of(site)

    with pytest.raises(InvalidURLError, match="got '/relative'"):
        await checker.can_fetch_many(AGENT, [PUBLIC, "/relative"])

    assert site.requests == []


async def test_bad_agent_is_refused_even_without_urls() -> None:
    with pytest.raises(InvalidProductTokenError):
        await checker_of(site_of()).can_fetch_many("", [])


async def test_one_url_in_the_place_of_many_is_refused() -> None:
    checker = checker_of(site_of())

    with pytest.raises(TypeError, match="several URLs, got the single 'https://"):
        await checker.can_fetch_many(AGENT, PUBLIC)
    with pytest.raises(TypeError, match="several URLs"):
        await checker.prefetch(PUBLIC)


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_unknown_origins_are_fetched_concurrently_up_to_the_limit(
    limit: int,
) -> None:
    site = GatedSite()
    checker = checker_of(site, max_concurrent_fetches=limit)
    urls = [f"https://host{number}.example/" for number in range(10)]
    answers: list[bool] = []

    async def ask_all() -> None:
        answers.extend(await checker.can_fetch_many(AGENT, urls))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_all)
        await let_others_run()
        under_way = site.under_way
        site.gate.set()

    assert under_way == min(limit, 10)
    assert site.most_under_way == min(limit, 10)
    assert answers == [True] * 10
    assert len(site.requests) == 10


@pytest.mark.parametrize("limit", [1, 3])
async def test_separate_questions_share_one_limit_of_fetches(limit: int) -> None:
    site = GatedSite()
    checker = checker_of(site, max_concurrent_fetches=limit)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(checker.can_fetch, AGENT, f"https://h{number}.example/")
        await let_others_run()
        site.gate.set()

    assert site.most_under_way == limit


async def test_origins_do_not_wait_for_each_other() -> None:
    slow, fast = GatedSite(), site_of()

    async def answer(request: httpx.Request) -> httpx.Response:
        site = slow if request.url.host == "other.example" else fast
        return await site.handle_async_request(request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        checker = RobotsChecker(client=client, clock=ManualClock())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(checker.can_fetch, AGENT, OTHER_ORIGIN)
            await let_others_run()
            answered = await checker.can_fetch(AGENT, PRIVATE)
            slow_is_unknown = checker.peek(AGENT, OTHER_ORIGIN) is None
            slow.gate.set()

    assert answered is False
    assert slow_is_unknown


async def turns_of_others_while(question: Awaitable[object]) -> int:
    """How often another task gets its turn before `question` is answered."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(count)
        await question
        tasks.cancel_scope.cancel()
    return turns


async def test_many_known_urls_let_others_run_from_time_to_time() -> None:
    checker = checker_of(site_of())
    await checker.can_fetch(AGENT, PUBLIC)

    turns = await turns_of_others_while(
        checker.can_fetch_many(AGENT, [PUBLIC] * 10_000)
    )

    assert turns >= 19


async def test_many_urls_of_a_cold_origin_let_others_run_from_time_to_time() -> None:
    few = await turns_of_others_while(
        checker_of(site_of()).can_fetch_many(AGENT, [PUBLIC])
    )
    checker = checker_of(site_of())

    turns = await turns_of_others_while(
        checker.can_fetch_many(AGENT, [PUBLIC] * 10_000)
    )

    assert turns >= few + 2 * 19  # those of the first look, and those of the answers


async def test_many_origins_in_the_store_let_others_run_from_time_to_time() -> None:
    checker = checker_of(FakeSite(), max_origins=1, max_concurrent_fetches=5)
    urls = [f"https://host{number}.example/" for number in range(200)]
    await checker.prefetch(urls)

    turns = await turns_of_others_while(checker.can_fetch_many(AGENT, urls))

    assert checker.stats.store_hits >= 199
    assert turns >= 200 / 5 - 1


# --- peek ---------------------------------------------------------------------


async def test_peek_knows_nothing_before_the_first_question() -> None:
    site = site_of()
    checker = checker_of(site)

    answer = checker.peek(AGENT, PRIVATE)

    assert answer is None
    assert site.requests == []


async def test_peek_knows_what_was_fetched_until_it_expires() -> None:
    clock = ManualClock()
    checker = checker_of(site_of(cache_control="max-age=600"), clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)

    at_once = [checker.peek(AGENT, PRIVATE), checker.peek(AGENT, PUBLIC)]
    clock.advance(599.9)
    just_before = [checker.peek(AGENT, PRIVATE), checker.peek("Newcomer", PUBLIC)]
    clock.advance(0.1)
    at_expiry = [checker.peek(AGENT, PRIVATE), checker.peek("Newcomer", PUBLIC)]

    assert at_once == [False, True]
    assert just_before == [False, True]
    assert at_expiry == [None, None]


async def test_peek_does_not_look_into_the_store() -> None:
    store = MemoryStore()
    clock = ManualClock()
    await checker_of(site_of(), store=StoreBehind(store), clock=clock).prefetch(
        [ORIGIN]
    )
    site = FakeSite()
    checker = checker_of(site, store=StoreBehind(store), clock=clock)

    before = checker.peek(AGENT, PRIVATE)
    allowed = await checker.can_fetch(AGENT, PRIVATE)
    after = checker.peek(AGENT, PRIVATE)

    assert (before, allowed, after) == (None, False, False)
    assert site.requests == []


async def test_peek_counts_as_a_check_only_where_it_answers() -> None:
    checker = checker_of(site_of())

    checker.peek(AGENT, PUBLIC)
    before = checker.stats.checks
    await checker.prefetch([PUBLIC])
    checker.peek(AGENT, PUBLIC)
    checker.peek(AGENT, PUBLIC)

    assert (before, checker.stats.checks) == (0, 2)


# --- a known origin -----------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(question, id=name)
        for name, question in QUESTIONS.items()
        if name not in {"can_fetch_many", "prefetch", "refresh"}
    ],
)
async def test_known_origin_is_answered_without_suspending(
    question: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]],
) -> None:
    site = site_of()
    checker = checker_of(site)
    awaited = await question(checker, PRIVATE)

    at_once = answered_at_once(question(checker, PRIVATE))

    assert type(at_once) is type(awaited)
    assert site.requests == [ROBOTS_TXT]


@pytest.mark.parametrize("status", [200, 404, 503])
@pytest.mark.parametrize("url", [PUBLIC, PRIVATE, ROBOTS_TXT, f"{ORIGIN}/%7e", ORIGIN])
async def test_known_origin_never_suspends_whatever_it_answered(
    status: int, url: str
) -> None:
    checker = checker_of(site_of(RULES, status=status))
    await checker.prefetch([ORIGIN])

    first = answered_at_once(checker.can_fetch(AGENT, url))
    second = answered_at_once(checker.can_fetch([AGENT], url))
    verdict = answered_at_once(checker.check("Newcomer", url))

    assert first == second == verdict.allowed


@pytest.mark.parametrize(
    "question",
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
async def test_check_of_a_known_origin_looks_at_the_clock_once(
    question: Callable[[RobotsChecker], object],
) -> None:
    clock = CountingClock()
    checker = checker_of(site_of(), clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    looks_before = clock.looks

    question(checker)

    assert clock.looks - looks_before == 1


HOT_BODY = (
    "User-agent: ExampleBot\n"
    "Disallow: /private\n"
    "Disallow: /*.php$\n"
    "Disallow: /caf\u00e9\n"
    "Disallow: /a%2Fb\n"
    "Disallow: /tilde~\n"
    "Disallow: /%41bc\n"
    "Disallow: /x?q=*&r\n"
    "Disallow: /star%2A\n"
    "Disallow: /cash%24\n"
    "Disallow: /semi;colon\n"
    "Allow: /private/open\n"
    "Allow: /index.html\n"
    "Disallow: /up/\n"
    "Disallow: /robots.txt\n"
)
HOT_ORIGINS = (
    "https://example.com",
    "http://example.com",
    "https://example.com:8443",
    "https://[2001:db8::1]",
    "http://192.0.2.7",
    "https://xn--bcher-kva.example",
    "http://a",
)
HOT_SPELLINGS = (
    *HOT_ORIGINS,
    "HTTPS://EXAMPLE.COM",
    "https://example.com:443",
    "https://example.com:",
    "http://example.com:80",
    "https://example.com:08443",
    "https://user:pass@example.com",
    "https://user@EXAMPLE.com:8443",
    "https://[2001:DB8:0::1]",
    "http://3221225991",
    "http://0xc0.0.2.7",
    "https://b\u00fccher.example",
    "https://B\u00dcCHER.example",
    "https://b%C3%BCcher.example",
    "https://ex\u00adample.com",
    "https:\\\\example.com",
    "  https://example.com",
    "ht\ttps://exam\nple.com",
)
HOT_TARGETS = (
    "",
    "/",
    "?",
    "#",
    "\\",
    "?q=/private",
    "#/private",
    "/private",
    "/private/open",
    "/private/../open",
    "/open/../private",
    "/open/%2e%2E/private",
    "/./private",
    "/.",
    "/..",
    "/up/.",
    "/up/x/..",
    "/open/..%2fprivate",
    "/private#open",
    "/open#/private",
    "/pri%76ate",
    "/pri%vate",
    "/%70RIVATE",
    "\\private",
    "/open\\..\\private",
    "/pri\tvate",
    "/private\n",
    "/private ",
    "/x.php",
    "/x.php?y",
    "/x.php%24",
    "/x.php$",
    "/caf\u00e9",
    "/caf%c3%a9",
    "/CAF%C3%89",
    "/cafe\u0301",
    "/a/b",
    "/a%2fb",
    "/a%252fb",
    "/tilde~",
    "/tilde%7e",
    "/Abc",
    "/%41bc",
    "/%4",
    "/%",
    "/star*",
    "/star%2a",
    "/cash$",
    "/cash%24",
    "/semi;colon",
    "/semi%3bcolon",
    "/x?q=1&r",
    "/x?q=1/../&r",
    "/x?q=%31&r",
    "/index.html",
    "//private",
    "/robots.txt",
    "/robots%2Etxt",
    "/robots.txt?",
    "/robots.txt#x",
    "/ROBOTS.TXT",
    "/\u20ac",
    "/\U0001f600",
    "/\udcff",
    "/[x]|{y}^`\"<>'",
)


class HotPath:
    """A checker that knows all of `HOT_ORIGINS`, with the file that it read there."""

    def __init__(self, dialect: Dialect) -> None:
        site = FakeSite()
        for origin in HOT_ORIGINS:
            site.serve(origin, HOT_BODY)
        self.dialect = dialect
        self.checker = checker_of(site, dialect=dialect)
        self.robots_txt = RobotsTxt.parse(HOT_BODY, dialect=dialect)
        anyio.run(self.checker.prefetch, HOT_ORIGINS)
        assert len(site.requests) == len(HOT_ORIGINS)

    def assert_answers_agree(self, url: str) -> None:
        origin, path = split_url(url)
        match = self.robots_txt.match(AGENT, f"{origin}{path}")
        hot = [self.checker.peek(AGENT, url), self.checker.peek(AGENT, url)]
        verdict = answered_at_once(self.checker.check(AGENT, url))
        listed = answered_at_once(self.checker.check([AGENT], url))

        expected = match.allowed or verdict.reason is Reason.ROBOTS_TXT
        answers = [*hot, verdict.allowed, listed.allowed]
        assert answers == [expected] * 4, (url, verdict)
        if verdict.reason is not Reason.ROBOTS_TXT:
            assert verdict.rule == match.rule


@pytest.fixture(scope="module", params=Dialect, ids=lambda dialect: dialect.value)
def hot_path(request: pytest.FixtureRequest) -> HotPath:
    return HotPath(request.param)


@pytest.mark.parametrize("spelling", HOT_SPELLINGS)
def test_hot_path_answers_as_the_parsed_file(hot_path: HotPath, spelling: str) -> None:
    for target in HOT_TARGETS:
        hot_path.assert_answers_agree(spelling + target)


@settings(max_examples=100, deadline=None)
@given(
    spelling=st.sampled_from(HOT_SPELLINGS),
    pieces=st.lists(
        st.one_of(
            st.sampled_from([target for target in HOT_TARGETS if target]),
            st.sampled_from(list("/.%*$?#\\;&=~ \t2eEfF")),
            st.text(max_size=3),
        ),
        max_size=6,
    ),
)
def test_hot_path_answers_any_url_as_the_parsed_file(
    hot_path: HotPath, spelling: str, pieces: list[str]
) -> None:
    hot_path.assert_answers_agree(f"{spelling}/{''.join(pieces)}")


@pytest.mark.parametrize("dialect", Dialect)
async def test_host_with_a_semicolon_gets_the_same_answer_hot_and_cold(
    dialect: Dialect,
) -> None:
    """Google's parser ends the host at ";", clients do not."""
    origin = "https://semi;colon"

    async def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=b"User-agent: *\nDisallow: /private\n")

    checker = RobotsChecker(
        client=httpx.MockTransport(answer), clock=ManualClock(), dialect=dialect
    )

    cold = (await checker.check(AGENT, f"{origin}/private")).allowed
    hot = [checker.peek(AGENT, f"{origin}/private") for _ in range(2)]

    assert [cold, *hot] == [False] * 3


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://user:p;w@example.com/private", id="userinfo with ;"),
        pytest.param("https://example.com\\private", id="a backslash"),
        pytest.param("https://example.com/pri\tvate", id="a tab"),
        pytest.param("https://example.com/public/../private", id="dots"),
        pytest.param("https:\\\\example.com/private", id="backslashes for slashes"),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
async def test_rules_bind_the_path_that_is_dialled(dialect: Dialect, url: str) -> None:
    """A checker knows the origin that is dialled, so it must judge its path."""
    checker = checker_of(site_of(), dialect=dialect)

    allowed = await checker.can_fetch(AGENT, url)

    assert allowed is False


# --- the file in force --------------------------------------------------------


async def test_robots_txt_is_the_parsed_file() -> None:
    checker = checker_of(site_of(RULES))

    robots_txt = await checker.robots_txt(PUBLIC)

    assert robots_txt is not None
    assert robots_txt.groups == RobotsTxt.parse(RULES).groups


async def test_robots_txt_has_the_dialect_of_the_checker() -> None:
    checker = checker_of(site_of("user-agent *\ndisalow /x"), dialect=Dialect.GOOGLE)

    robots_txt = await checker.robots_txt(PUBLIC)

    assert robots_txt is not None
    assert robots_txt.dialect is Dialect.GOOGLE
    assert await checker.can_fetch(AGENT, f"{ORIGIN}/x") is False


@pytest.mark.parametrize("status", [301, 401, 404, 429, 500, 503])
async def test_robots_txt_is_none_where_there_is_no_file(status: int) -> None:
    checker = checker_of(site_of(status=status))

    assert await checker.robots_txt(PUBLIC) is None
    assert await checker.sitemaps(PUBLIC) == ()
    assert await checker.crawl_delay(AGENT, PUBLIC) is None
    assert await checker.request_rate(AGENT, PUBLIC) is None


async def test_robots_txt_of_an_outage_is_the_last_copy() -> None:
    clock = ManualClock()
    site = site_of("Sitemap: https://example.com/s.xml\n" + RULES)
    checker = checker_of(site, clock=clock)
    await checker.prefetch([ORIGIN])
    site.serve(ORIGIN, status=503)
    clock.advance(DAY)

    robots_txt = await checker.robots_txt(PUBLIC)
    sitemaps = await checker.sitemaps(PUBLIC)

    assert robots_txt is not None
    assert sitemaps == robots_txt.sitemaps == ("https://example.com/s.xml",)


async def test_body_beyond_the_limit_of_the_policy_does_not_count() -> None:
    body = "User-agent: *\nDisallow: /private\nDisallow: /public\n"
    policy = Policy(max_body_bytes=body.index("blic"))
    checker = checker_of(site_of(body), policy=policy)

    assert await checker.can_fetch(AGENT, PUBLIC) is True
    assert await checker.can_fetch(AGENT, PRIVATE) is False


RATES = (
    "User-agent: SlowBot\nCrawl-delay: 2.5\nRequest-rate: 3/60\n\n"
    "User-agent: *\nCrawl-delay: 10\n\n"
    "Sitemap: https://example.com/1.xml\nSitemap: /relative.xml\n"
    "Sitemap: https://cdn.example/2.xml\n"
)


@pytest.mark.parametrize(
    ("agent", "delay", "rate"),
    [
        ("SlowBot", 2.5, RequestRate(requests=3, seconds=60)),
        ("SlowBot/2.0", 2.5, RequestRate(requests=3, seconds=60)),
        (["NoBot", "SlowBot"], 2.5, RequestRate(requests=3, seconds=60)),
        ("Stranger", 10.0, None),
    ],
)
async def test_rates_are_those_of_the_agents_group(
    agent: str | Sequence[str], delay: float, rate: RequestRate | None
) -> None:
    checker = checker_of(site_of(RATES))

    assert await checker.crawl_delay(agent, PUBLIC) == delay
    assert await checker.request_rate(agent, PUBLIC) == rate


async def test_rates_differ_where_rules_are_the_same() -> None:
    """Rules are held once for agents that share them; their delays are not."""
    body = "User-agent: a\nCrawl-delay: 1\nDisallow:\nUser-agent: b\nCrawl-delay: 2\n"
    checker = checker_of(site_of(body))

    assert await checker.crawl_delay("a", PUBLIC) == 1
    assert await checker.crawl_delay("b", PUBLIC) == 2
    assert await checker.crawl_delay("c", PUBLIC) is None


async def test_sitemaps_are_absolute_and_in_order() -> None:
    checker = checker_of(site_of(RATES))

    sitemaps = await checker.sitemaps(PUBLIC)

    assert sitemaps == ("https://example.com/1.xml", "https://cdn.example/2.xml")


# --- prefetch, refresh, forget ------------------------------------------------


async def test_prefetch_asks_each_unknown_origin_once() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)

    await checker.prefetch(iter([PUBLIC, f"{OTHER_ORIGIN}/a", f"{OTHER_ORIGIN}/b"]))

    assert site.requests == [ROBOTS_TXT, f"{OTHER_ORIGIN}/robots.txt"]
    assert checker.peek(AGENT, OTHER_ORIGIN) is True


async def test_prefetch_of_nothing_does_nothing() -> None:
    site = site_of()

    await checker_of(site).prefetch([])

    assert site.requests == []


async def test_prefetch_looks_at_all_urls_before_any_request() -> None:
    site = site_of()

    with pytest.raises(InvalidURLError):
        await checker_of(site).prefetch([PUBLIC, "/relative"])

    assert site.requests == []


async def test_refresh_fetches_what_is_fresh() -> None:
    site = site_of()
    checker = checker_of(site)
    before = await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, FULL_DISALLOW)
    unchanged = await checker.can_fetch(AGENT, PUBLIC)

    await checker.refresh(PUBLIC)
    after = await checker.can_fetch(AGENT, PUBLIC)

    assert (before, unchanged, after) == (True, True, False)
    assert len(site.requests) == 2


async def test_refresh_fetches_an_unknown_origin() -> None:
    site = site_of()
    checker = checker_of(site)

    await checker.refresh(PUBLIC)

    assert checker.peek(AGENT, PRIVATE) is False
    assert site.requests == [ROBOTS_TXT]


async def test_refresh_does_not_wait_for_the_retry_of_an_outage() -> None:
    site = site_of(status=503, retry_after="3600")
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, RULES)

    await checker.refresh(PUBLIC)

    assert await checker.can_fetch(AGENT, PUBLIC) is True


async def test_refresh_joins_a_fetch_that_is_under_way() -> None:
    site = GatedSite()
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        site.gate.set()

    assert site.requests == [ROBOTS_TXT]


async def test_refresh_fetches_even_while_another_looks_into_the_store() -> None:
    """A look into the store that finds a fresh entry is no fetch to wait for."""
    clock = ManualClock()
    store = GatedStore("get")
    site = site_of()
    kept = MemoryStore()
    await checker_of(site, store=StoreBehind(kept), clock=clock).prefetch([ORIGIN])
    entry = await kept.get(ORIGIN)
    assert entry is not None
    await store.put(entry)
    site.requests.clear()
    checker = checker_of(site, store=store, clock=clock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        store.gate.set()

    assert site.requests == [ROBOTS_TXT]


async def test_refresh_that_fails_leaves_the_copy_in_force() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, status=503)

    await checker.refresh(PUBLIC)
    verdict = await checker.check(AGENT, PRIVATE)

    assert verdict.reason is Reason.DISALLOWED_BY_RULE
    assert verdict.access is AccessResult.UNREACHABLE


async def test_copy_of_a_failed_refresh_is_stale_once_its_freshness_ends() -> None:
    clock = ManualClock()
    site = site_of(cache_control="max-age=3600")
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, status=503, headers={"Retry-After": "86400"})
    await checker.refresh(PUBLIC)

    before = await checker.check(AGENT, PRIVATE)
    clock.advance(HOUR)
    after = await checker.check(AGENT, PRIVATE)

    assert (before.allowed, before.is_stale) == (False, False)
    assert (after.allowed, after.is_stale) == (False, True)
    assert len(site.requests) == 2


async def test_forget_drops_memory_and_store() -> None:
    site = site_of()
    store = MemoryStore()
    checker = checker_of(site, store=StoreBehind(store))
    await checker.can_fetch(AGENT, PRIVATE)

    await checker.forget(PRIVATE)

    assert checker.peek(AGENT, PRIVATE) is None
    assert len(store) == 0
    assert checker.stats.live_origins == 0


async def test_forgotten_origin_is_fetched_anew() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    await checker.forget(PUBLIC)
    site.serve(ORIGIN, FULL_DISALLOW)

    allowed = await checker.can_fetch(AGENT, PUBLIC)

    assert allowed is False
    assert len(site.requests) == 2


async def test_forget_takes_the_copy_away_from_an_outage() -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, status=503)
    await checker.forget(PUBLIC)

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.reason is Reason.UNREACHABLE


async def test_forget_of_an_unknown_origin_does_nothing() -> None:
    checker = checker_of(site_of())

    await checker.forget(PUBLIC)

    assert checker.stats == CheckerStats()


# --- the end ------------------------------------------------------------------


async def test_closed_checker_refuses_questions(
    ask: Callable[[RobotsChecker, str], Coroutine[Any, Any, object]],
) -> None:
    site = site_of()
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)
    await checker.aclose()

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await ask(checker, PUBLIC)

    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.live_origins == 0


async def test_checker_may_be_closed_more_than_once() -> None:
    checker = checker_of(site_of())

    await checker.aclose()
    await checker.aclose()

    with pytest.raises(RuntimeError):
        await checker.can_fetch(AGENT, PUBLIC)


async def test_context_manager_gives_the_checker_and_closes_it() -> None:
    checker = checker_of(site_of())

    async with checker as entered:
        allowed = await entered.can_fetch(AGENT, PRIVATE)

    assert entered is checker
    assert allowed is False
    with pytest.raises(RuntimeError):
        await checker.can_fetch(AGENT, PRIVATE)


async def test_context_manager_closes_after_an_exception() -> None:
    checker = checker_of(site_of())

    with pytest.raises(KeyError):
        async with checker:
            raise KeyError

    with pytest.raises(RuntimeError):
        await checker.can_fetch(AGENT, PRIVATE)


async def test_closing_under_many_waiters_tells_them_all_and_asks_nobody() -> None:
    site = GatedSite()
    checker = checker_of(site)
    ended = []

    async def ask() -> None:
        with pytest.raises(RuntimeError, match="closed"):
            await checker.can_fetch(AGENT, PUBLIC)
        ended.append(1)

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        await checker.aclose()
        site.gate.set()

    assert len(ended) == 50
    assert site.requests == []


async def test_endless_error_of_a_client_is_cut() -> None:
    site = FakeSite()
    site.fail(ORIGIN, httpx.RemoteProtocolError("x" * 400_000))

    verdict = await checker_of(site).check(AGENT, PUBLIC)

    assert verdict.error is not None
    assert 100 < len(verdict.error) < 400


async def test_question_after_the_end_of_a_fetch_that_outlived_the_checker() -> None:
    """A fetch under way at `aclose` must not bring the closed checker back to life."""
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    checker = checker_of(site)

    async def ask_and_ignore_the_end() -> None:
        try:
            await checker.can_fetch(AGENT, PUBLIC)
        except RuntimeError:
            return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_and_ignore_the_end)
        await let_others_run()
        await checker.aclose()
        site.gate.set()

    assert checker.stats.live_origins == 0
    with pytest.raises(RuntimeError, match="closed"):
        await checker.can_fetch(AGENT, PUBLIC)


async def test_store_and_client_that_were_handed_over_stay_open() -> None:
    site = site_of()
    store = ClosableStore()
    async with httpx.AsyncClient(transport=site) as client:
        async with RobotsChecker(
            client=client, store=StoreBehind(store), clock=ManualClock()
        ) as checker:
            await checker.can_fetch(AGENT, PUBLIC)

        assert client.is_closed is False
        assert store.is_closed is False
        assert len(store) == 1


async def test_empty_memory_store_that_was_handed_over_is_used() -> None:
    """An empty `MemoryStore` has the length 0 and so is false."""
    store = MemoryStore()
    checker = checker_of(site_of(), store=store)

    await checker.can_fetch(AGENT, PUBLIC)

    assert checker.stats.store_failures == 0
    assert await store.get(ORIGIN) is not None


# --- one fetch for all --------------------------------------------------------


async def test_200_callers_of_a_cold_origin_make_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    answers = await concurrently(200, lambda: checker.can_fetch(AGENT, PRIVATE))

    assert answers == [False] * 200
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats == CheckerStats(
        checks=200, fetches=1, successful=1, joined=199, store_misses=1, live_origins=1
    )


async def test_all_ways_to_ask_share_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        for question in QUESTIONS.values():
            tasks.start_soon(question, checker, PUBLIC)

    assert site.requests == [ROBOTS_TXT]


async def test_200_callers_of_a_dead_host_make_one_attempt() -> None:
    site = FakeSite()
    site.fail(ORIGIN, httpx.ConnectError("connection refused"))
    checker = checker_of(site)

    answers = await concurrently(200, lambda: checker.can_fetch(AGENT, PRIVATE))
    later = await checker.can_fetch(AGENT, PRIVATE)

    assert [*answers, later] == [False] * 201
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.unreachable == 1


async def test_200_callers_after_the_expiry_make_one_request() -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)
    clock.advance(DAY)

    answers = await concurrently(200, lambda: checker.can_fetch(AGENT, PRIVATE))

    assert answers == [False] * 200
    assert len(site.requests) == 2


@pytest.mark.parametrize("cache_control", ["max-age=0", "no-store", "no-cache"])
async def test_200_callers_of_what_is_never_fresh_share_requests(
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


async def test_what_is_never_fresh_is_fetched_for_each_question() -> None:
    site = site_of(cache_control="max-age=0")
    checker = checker_of(site, policy=Policy(min_lifetime=0))

    for _ in range(3):
        assert await checker.can_fetch(AGENT, PRIVATE) is False

    assert len(site.requests) == 3


async def test_cancelled_leader_hands_over() -> None:
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    checker = checker_of(site)
    leader = anyio.CancelScope()
    answers: list[bool] = []

    async def lead() -> None:
        with leader:
            await checker.can_fetch(AGENT, PRIVATE)

    async def follow() -> None:
        answers.append(await checker.can_fetch(AGENT, PRIVATE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        await let_others_run()
        for _ in range(199):
            tasks.start_soon(follow)
        await let_others_run()
        begun_before = site.under_way
        leader.cancel()
        await let_others_run()
        begun_after = site.under_way
        site.gate.set()

    assert leader.cancelled_caught
    assert answers == [False] * 199
    assert (begun_before, begun_after) == (1, 1)
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.fetches_under_way == 0


async def test_cancelled_waiters_leave_the_leader_and_the_others_alone() -> None:
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    checker = checker_of(site)
    answers: list[bool] = []

    async def ask() -> None:
        answers.append(await checker.can_fetch(AGENT, PRIVATE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await let_others_run()
        async with anyio.create_task_group() as tasks_in_vain:
            for _ in range(50):
                tasks_in_vain.start_soon(ask)
                tasks.start_soon(ask)
            await let_others_run()
            under_way = checker.stats.fetches_under_way
            tasks_in_vain.cancel_scope.cancel()
        site.gate.set()

    assert under_way == 1
    assert answers == [False] * 51
    assert site.requests == [ROBOTS_TXT]


async def test_all_cancelled_leave_an_origin_that_can_be_asked_again() -> None:
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    checker = checker_of(site)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(checker.can_fetch, AGENT, PRIVATE)
        await let_others_run()
        tasks.cancel_scope.cancel()
    site.gate.set()

    assert await checker.can_fetch(AGENT, PRIVATE) is False
    assert checker.stats.fetches_under_way == 0


async def test_cancelled_limit_of_fetches_frees_its_place() -> None:
    site = GatedSite()
    checker = checker_of(site, max_concurrent_fetches=1)

    for _ in range(3):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
            tasks.start_soon(checker.can_fetch, AGENT, OTHER_ORIGIN)
            await let_others_run()
            tasks.cancel_scope.cancel()
    site.gate.set()

    assert await checker.can_fetch_many(AGENT, [PUBLIC, OTHER_ORIGIN]) == [True, True]


async def test_leader_cancelled_while_the_store_writes_costs_no_second_request() -> (
    None
):
    site = site_of()
    store = GatedStore("put")
    checker = checker_of(site, store=StoreBehind(store))
    leader = anyio.CancelScope()
    answers: list[bool] = []

    async def lead() -> None:
        with leader:
            await checker.can_fetch(AGENT, PRIVATE)

    async def follow() -> None:
        answers.append((await checker.check(AGENT, PRIVATE)).allowed)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        tasks.start_soon(follow)
        await let_others_run()
        leader.cancel()
        await let_others_run()
        store.gate.set()

    assert answers == [False]
    assert site.requests == [ROBOTS_TXT]


async def test_waiters_know_their_agent_however_many_agents_ask_meanwhile() -> None:
    """1,000 agents are remembered; the 1,001st must not unsettle those who wait."""
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    checker = checker_of(site)
    answers: list[bool] = []

    async def ask(agent: str) -> None:
        answers.append(await checker.can_fetch(agent, PRIVATE))

    async with anyio.create_task_group() as tasks:
        for number in range(1_001):
            tasks.start_soon(ask, f"Bot{number}")
        await let_others_run()
        site.gate.set()

    assert answers == [False] * 1_001


async def test_any_number_of_agents_may_ask() -> None:
    checker = checker_of(site_of())

    answers = [await checker.can_fetch(f"Bot{n}", PRIVATE) for n in range(1_200)]

    assert answers == [False] * 1_200
    assert len(checker._agents) <= 1_000


# --- time ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "lifetime"),
    [
        pytest.param({}, DAY, id="no headers"),
        pytest.param({"cache_control": "max-age=600"}, 600, id="max-age"),
        pytest.param({"cache_control": "max-age=1"}, MINUTE, id="less than a minute"),
        pytest.param({"cache_control": "no-store"}, MINUTE, id="no-store"),
        pytest.param({"cache_control": "max-age=9999999"}, 7 * DAY, id="too much"),
        pytest.param({"cache_control": "max-age=600", "age": "100"}, 500, id="age"),
    ],
)
@pytest.mark.parametrize("status", [200, 404])
async def test_origin_is_asked_again_when_its_answer_is_no_longer_fresh(
    status: int, headers: dict[str, str], lifetime: float
) -> None:
    clock = ManualClock()
    site = site_of(RULES, status=status, **headers)
    checker = checker_of(site, clock=clock)

    await checker.can_fetch(AGENT, PRIVATE)
    clock.advance(lifetime - 1)
    await checker.can_fetch(AGENT, PRIVATE)
    before = len(site.requests)
    clock.advance(1)
    await checker.can_fetch(AGENT, PRIVATE)
    after = len(site.requests)

    assert (before, after) == (1, 2)


async def test_lifetime_begins_when_the_answer_is_there() -> None:
    clock = ManualClock()
    site = SlowSite(clock, seconds=10)
    events: list[CheckerEvent] = []
    checker = checker_of(site, clock=clock, on_event=events.append)
    began_at = clock.now()

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.fetched_at == began_at + 10
    assert verdict.fresh_until == began_at + 10 + DAY
    assert isinstance(events[0], RobotsTxtFetched)
    assert events[0].elapsed_seconds == 10


@pytest.mark.parametrize("back", [0.001, HOUR, 365 * DAY])
async def test_clock_set_back_fetches_again(back: float) -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)
    clock.set(clock.now() - back)

    peeked = checker.peek(AGENT, PRIVATE)
    allowed = await checker.can_fetch(AGENT, PRIVATE)
    again = await checker.can_fetch(AGENT, PRIVATE)

    assert (peeked, allowed, again) == (None, False, False)
    assert len(site.requests) == 2


async def test_clock_set_back_within_the_lifetime_changes_nothing() -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)
    clock.advance(2 * HOUR)
    await checker.can_fetch(AGENT, PRIVATE)
    clock.set(clock.now() - HOUR)

    await checker.can_fetch(AGENT, PRIVATE)

    assert len(site.requests) == 1


async def test_clock_set_back_does_not_stop_the_retries_of_an_outage() -> None:
    clock = ManualClock()
    site = site_of(status=503)
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)
    clock.set(clock.now() - DAY)
    site.serve(ORIGIN, RULES)

    allowed = await checker.can_fetch(AGENT, PUBLIC)

    assert allowed is True


async def outage_of_a_day(clock: ManualClock, policy: Policy) -> RobotsChecker:
    """A checker with a copy whose origin begins a long outage now."""
    site = site_of()
    checker = checker_of(site, clock=clock, policy=policy)
    await checker.prefetch([ORIGIN])
    clock.advance(policy.default_lifetime)
    site.serve(ORIGIN, status=503, headers={"Retry-After": "86400"})
    await checker.prefetch([ORIGIN])
    site.requests.clear()
    return checker


PHASES = Policy(outage_grace=2 * HOUR, stale_window=4 * HOUR)


async def test_phases_of_an_outage_follow_each_other_between_two_attempts() -> None:
    clock = ManualClock()
    checker = await outage_of_a_day(clock, PHASES)
    reasons = []

    for _ in range(6):
        verdict = await checker.check(AGENT, PUBLIC)
        reasons.append((verdict.reason, verdict.allowed, verdict.is_stale))
        assert checker.peek(AGENT, PUBLIC) is verdict.allowed
        clock.advance(HOUR)

    stopped = (Reason.UNREACHABLE, False, False)
    by_copy = (Reason.NO_MATCHING_RULE, True, True)
    too_long = (Reason.UNREACHABLE_TOO_LONG, True, False)
    assert reasons == [stopped] * 2 + [by_copy] * 2 + [too_long] * 2
    assert checker.stats.fetches == 2


async def test_phase_of_an_outage_ends_for_peek_as_well() -> None:
    clock = ManualClock()
    checker = await outage_of_a_day(clock, PHASES)
    answers = []

    for _ in range(6):
        answers.append((checker.peek(AGENT, PUBLIC), checker.peek(AGENT, PRIVATE)))
        clock.advance(HOUR)

    assert answers == [(False, False)] * 2 + [(True, False)] * 2 + [(True, True)] * 2


async def test_clock_set_back_returns_to_the_phase_of_that_time() -> None:
    clock = ManualClock()
    checker = await outage_of_a_day(clock, PHASES)
    clock.advance(HOUR)
    during_grace = checker.peek(AGENT, PUBLIC)
    clock.advance(4 * HOUR)
    after_window = checker.peek(AGENT, PRIVATE)

    clock.set(clock.now() - 4 * HOUR)
    back_in_grace = checker.peek(AGENT, PRIVATE)

    assert (during_grace, after_window, back_in_grace) == (False, True, False)


async def test_outage_ends_with_the_first_answer() -> None:
    clock = ManualClock()
    site = site_of(status=503)
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, status=404)
    clock.advance(HOUR)

    verdict = await checker.check(AGENT, PUBLIC)

    assert (verdict.allowed, verdict.reason) == (True, Reason.UNAVAILABLE)


# --- stores -------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["get", "put", "delete"])
async def test_store_that_fails_is_worked_without(
    operation: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[CheckerEvent] = []
    store = FailingStore(operation)
    checker = checker_of(site_of(), store=StoreBehind(store), on_event=events.append)

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
        await checker.forget(ORIGIN)

    failures = [event for event in events if isinstance(event, StoreFailed)]
    assert answers == [False, True]
    assert checker.stats.store_failures == 1
    assert [(event.origin, event.operation) for event in failures] == [
        (ORIGIN, operation)
    ]
    assert isinstance(failures[0].error, OSError)
    assert [
        (record.name, record.levelname, record.getMessage())
        for record in caplog.records
        if record.levelname != "INFO"
    ] == [
        (
            "robotsgate.checker",
            "WARNING",
            f"store failed to {operation} {ORIGIN}: {failures[0].error!r}",
        )
    ]


async def test_store_that_always_fails_changes_no_answer() -> None:
    clock = ManualClock()
    site = site_of()
    store = FailingStore("get", "put", "delete")
    checker = checker_of(site, store=StoreBehind(store), clock=clock)

    fresh = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
    site.serve(ORIGIN, status=503)
    clock.advance(DAY)
    stale = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
    await checker.forget(ORIGIN)
    gone = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert (fresh, stale, gone) == ([False, True], [False, True], [False, False])


class StoreOfRubbish(StoreBehind):
    """Gives the same answer to whatever it is asked for."""

    def __init__(self, rubbish: object) -> None:
        super().__init__(MemoryStore())
        self._rubbish: Any = rubbish

    async def get(self, origin: str) -> Entry | None:
        del origin
        entry: Entry | None = self._rubbish
        return entry


async def entry_of_origin(clock: ManualClock) -> Entry:
    store = MemoryStore()
    await checker_of(site_of(), store=StoreBehind(store), clock=clock).prefetch(
        [ORIGIN]
    )
    entry = await store.get(ORIGIN)
    assert entry is not None
    return entry


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda entry: {"origin": entry.origin}, id="no entry"),
        pytest.param(
            lambda entry: replace(entry, origin=OTHER_ORIGIN),
            id="an entry of another origin",
        ),
        pytest.param(
            lambda entry: replace(entry, checked_at=None), id="an entry without a date"
        ),
        pytest.param(
            lambda entry: replace(entry, failures="2"), id="a number that is none"
        ),
        pytest.param(
            lambda entry: replace(entry, access="successful"), id="no access result"
        ),
        pytest.param(
            lambda entry: replace(entry, unreachable_since=math.nan), id="no date"
        ),
        pytest.param(
            lambda entry: replace(entry, unreachable_since=-math.inf),
            id="a date before all others",
        ),
        pytest.param(lambda entry: replace(entry, status="200"), id="a status of text"),
        pytest.param(lambda entry: replace(entry, redirects=None), id="no redirects"),
        pytest.param(lambda entry: replace(entry, failure="pool"), id="no failure"),
        pytest.param(lambda entry: replace(entry, error=b"x"), id="an error of octets"),
        pytest.param(
            lambda entry: replace(
                entry, copy=replace(entry.copy, fetched_at="yesterday")
            ),
            id="a copy without a date",
        ),
        pytest.param(
            lambda entry: replace(entry, copy=replace(entry.copy, packed=b"rubbish")),
            id="a copy that cannot be unpacked",
        ),
    ],
)
async def test_store_that_gives_rubbish_is_worked_without(
    spoil: Callable[[Entry], object],
) -> None:
    """An entry that cannot be read is a miss and a warning (design, section 6)."""
    clock = ManualClock()
    site = site_of()
    rubbish = spoil(await entry_of_origin(clock))
    checker = checker_of(site, store=StoreOfRubbish(rubbish), clock=clock)

    answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert answers == [False, True]
    assert checker.peek(AGENT, f"{OTHER_ORIGIN}/private") is None
    assert site.requests == [ROBOTS_TXT]


async def test_older_entry_of_the_store_does_not_replace_a_newer_one_in_memory() -> (
    None
):
    clock = ManualClock()
    site = site_of()
    store = FailingStore("put")
    old = await entry_of_origin(clock)
    await MemoryStore.put(store, old)
    clock.advance(2 * DAY)
    checker = checker_of(site, store=store, clock=clock)
    await checker.refresh(ORIGIN)  # in memory only: the store cannot keep it
    site.serve(ORIGIN, status=503)
    clock.advance(2 * DAY)

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.is_stale
    assert verdict.fetched_at == old.checked_at + 2 * DAY


@pytest.mark.parametrize(
    ("status", "headers", "later", "policy", "allowed"),
    [
        pytest.param(401, {}, 1, Policy.strict(), False, id="401, strict"),
        pytest.param(301, {}, 1, Policy.strict(), False, id="broken redirect, strict"),
        pytest.param(429, {}, 1, Policy.rfc9309(), True, id="429, RFC 9309"),
        pytest.param(404, {}, 1, Policy.strict(), True, id="404, strict"),
        pytest.param(503, {}, 1, Policy.strict(), False, id="503, strict"),
        pytest.param(
            404,
            {"cache_control": "max-age=604800"},
            2 * DAY,
            Policy.rfc9309(),
            True,
            id="longer than the policy keeps anything",
        ),
    ],
)
async def test_entry_of_another_policy_is_not_used_where_ours_would_differ(
    status: int,
    headers: dict[str, str],
    later: float,
    policy: Policy,
    *,
    allowed: bool,
) -> None:
    """A store may be shared by checkers with different policies."""
    clock = ManualClock()
    site, store = FakeSite(), MemoryStore()
    site.serve(
        ORIGIN,
        status=status,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    await checker_of(site, store=store, clock=clock).prefetch([ORIGIN])
    clock.advance(later)
    ours = checker_of(site, store=store, clock=clock, policy=policy)

    answer = await ours.can_fetch(AGENT, PRIVATE)

    is_reused = status in {404, 503} and not headers
    assert answer is allowed
    assert site.requests == [ROBOTS_TXT] * (1 if is_reused else 2)


async def test_missing_page_in_the_store_stands_where_the_policy_would_see_it() -> None:
    clock = ManualClock()
    site, store = FakeSite(), MemoryStore()
    site.serve(ORIGIN, "<title>Not found</title>", status=500)
    await checker_of(site, store=store, clock=clock).prefetch([ORIGIN])
    same = checker_of(site, store=store, clock=clock)
    literal = checker_of(site, store=store, clock=clock, policy=Policy.rfc9309())

    answers = [await same.can_fetch(AGENT, PUBLIC)]
    assert site.requests == [ROBOTS_TXT]
    answers.append(await literal.can_fetch(AGENT, PUBLIC))

    assert answers == [True, False]
    assert site.requests == [ROBOTS_TXT] * 2


async def test_copy_cut_by_a_smaller_limit_is_not_used_under_a_larger_one() -> None:
    clock = ManualClock()
    site, store = FakeSite(), MemoryStore()
    site.serve(ORIGIN, "User-agent: *\nDisallow: /a\nAllow: /a/press\n")
    small = checker_of(site, store=store, clock=clock, policy=Policy(max_body_bytes=35))
    await small.prefetch([ORIGIN])

    allowed = await checker_of(site, store=store, clock=clock).can_fetch(
        AGENT, f"{ORIGIN}/a/secret"
    )

    assert allowed is False
    assert site.requests == [ROBOTS_TXT, ROBOTS_TXT]


async def test_store_answers_for_an_origin_that_memory_let_go() -> None:
    site = site_of()
    checker = checker_of(site, max_origins=1)
    await checker.can_fetch(AGENT, PRIVATE)
    await checker.can_fetch(AGENT, OTHER_ORIGIN)

    peeked = checker.peek(AGENT, PRIVATE)
    allowed = await checker.can_fetch(AGENT, PRIVATE)

    assert (peeked, allowed) == (None, False)
    assert len(site.requests) == 2
    assert checker.stats.store_hits == 1
    assert checker.stats.store_misses == 2
    assert checker.stats.live_origins == 1


async def test_copy_in_the_store_answers_in_an_outage() -> None:
    clock = ManualClock()
    site = site_of()
    checker = checker_of(site, max_origins=1, clock=clock)
    await checker.can_fetch(AGENT, PRIVATE)
    await checker.can_fetch(AGENT, OTHER_ORIGIN)
    site.serve(ORIGIN, status=503)
    clock.advance(DAY)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.is_stale) == (False, True)
    assert checker.stats.store_hits == 0


async def test_entry_of_another_checker_is_used_from_the_store() -> None:
    clock = ManualClock()
    store = MemoryStore()
    await checker_of(site_of(), store=StoreBehind(store), clock=clock).prefetch(
        [ORIGIN]
    )
    site = FakeSite()
    checker = checker_of(site, store=StoreBehind(store), clock=clock)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.fetched_at) == (False, clock.now())
    assert site.requests == []
    assert (checker.stats.fetches, checker.stats.store_hits) == (0, 1)


async def test_entry_that_another_checker_renewed_spares_a_request() -> None:
    """An entry that ended in memory may stand in a store that is shared."""
    clock = ManualClock()
    store = MemoryStore()
    site = site_of()
    one = checker_of(site, store=StoreBehind(store), clock=clock)
    other = checker_of(site, store=StoreBehind(store), clock=clock)
    await one.prefetch([ORIGIN])
    await other.prefetch([ORIGIN])
    clock.advance(DAY)

    await one.can_fetch(AGENT, PRIVATE)
    await other.can_fetch(AGENT, PRIVATE)

    assert len(site.requests) == 2


async def test_entry_of_the_store_from_the_future_is_not_used() -> None:
    clock = ManualClock()
    store = MemoryStore()
    site = site_of()
    await checker_of(site, store=StoreBehind(store), clock=clock).prefetch([ORIGIN])
    clock.set(clock.now() - DAY)

    await checker_of(site, store=StoreBehind(store), clock=clock).prefetch([ORIGIN])

    assert len(site.requests) == 2


async def test_known_origin_is_not_looked_up_in_the_store() -> None:
    store = GatedStore("get")
    store.gate.set()
    checker = checker_of(site_of(), store=StoreBehind(store))
    await checker.prefetch([ORIGIN])
    store.gate = anyio.Event()

    answered_at_once(checker.can_fetch(AGENT, PUBLIC))
    answered_at_once(checker.check(AGENT, PUBLIC))

    assert store.waiting == 0


# --- bounds -------------------------------------------------------------------


async def test_no_more_origins_are_held_than_allowed() -> None:
    checker = checker_of(FakeSite(), max_origins=3)

    for number in range(10):
        await checker.can_fetch(AGENT, f"https://host{number}.example/")

    known = [n for n in range(10) if checker.peek(AGENT, f"https://host{n}.example/")]
    assert checker.stats.live_origins == 3
    assert known == [7, 8, 9]


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda checker, url: checker.peek(AGENT, url), id="peek"),
        pytest.param(
            lambda checker, url: answered_at_once(checker.check(AGENT, url)), id="check"
        ),
        pytest.param(
            lambda checker, url: checker.peek(AGENT, url.upper()), id="upper case"
        ),
    ],
)
async def test_origin_in_use_is_held(
    use: Callable[[RobotsChecker, str], object],
) -> None:
    checker = checker_of(FakeSite(), max_origins=3)
    urls = [f"https://host{number}.example/" for number in range(4)]
    for url in urls[:3]:
        await checker.can_fetch(AGENT, url)

    use(checker, urls[0])
    await checker.can_fetch(AGENT, urls[3])

    assert [checker.peek(AGENT, url) for url in urls] == [True, None, True, True]


async def test_rules_of_all_origins_together_are_bounded() -> None:
    lines = "".join(f"Disallow: /{number}\n" for number in range(1_000))
    site = FakeSite()
    urls = [f"https://host{number}.example/0" for number in range(20)]
    for url in urls:
        site.serve(url, f"User-agent: *\n{lines}")
    checker = checker_of(site, max_origins=40)

    answers = [await checker.can_fetch(AGENT, url) for url in urls]
    held = checker.stats.live_origins
    again = [await checker.can_fetch(AGENT, url) for url in urls]

    assert answers == again == [False] * 20
    assert 1 <= held < 10
    assert len(site.requests) == 20


# --- counters, events, log ----------------------------------------------------


async def test_stats_are_a_snapshot() -> None:
    checker = checker_of(site_of())

    before = checker.stats
    await checker.can_fetch(AGENT, PUBLIC)

    assert before == CheckerStats()
    assert checker.stats.checks == 1


async def test_stats_count_what_attempts_came_to() -> None:
    site = site_of()
    for number, status in enumerate([200, 204, 404, 403, 410, 503, 429]):
        site.serve(f"https://host{number}.example", status=status)
    checker = checker_of(site, policy=Policy.strict())
    urls = [f"https://host{number}.example/" for number in range(7)]

    await checker.can_fetch_many(AGENT, urls)
    await checker.check(AGENT, urls[0])

    assert checker.stats == CheckerStats(
        checks=8,
        fetches=7,
        successful=2,
        unavailable=2,
        unreachable=2,
        restricted=1,
        store_misses=7,
        live_origins=7,
    )


async def test_stats_count_a_fetch_with_redirects_once() -> None:
    site = site_of(status=301, location=f"{OTHER_ORIGIN}/robots.txt")
    checker = checker_of(site)

    await checker.can_fetch(AGENT, PUBLIC)

    assert len(site.requests) == 2
    assert checker.stats.fetches == 1


async def test_fetch_is_told_as_an_event() -> None:
    clock = ManualClock()
    events: list[CheckerEvent] = []
    checker = checker_of(site_of(), clock=clock, on_event=events.append)

    await checker.can_fetch(AGENT, PUBLIC)
    await checker.can_fetch(AGENT, PRIVATE)

    assert events == [
        RobotsTxtFetched(
            origin=ORIGIN,
            access=AccessResult.SUCCESSFUL,
            status=200,
            redirects=0,
            error=None,
            body_bytes=len(RULES),
            elapsed_seconds=0.0,
            next_fetch_at=clock.now() + DAY,
        )
    ]


async def test_failed_fetch_is_told_with_its_error() -> None:
    events: list[CheckerEvent] = []
    site = FakeSite()
    site.fail(ORIGIN, httpx.ReadTimeout("too slow"))
    checker = checker_of(site, on_event=events.append)

    await checker.can_fetch(AGENT, PUBLIC)

    (event,) = events
    assert isinstance(event, RobotsTxtFetched)
    assert (event.access, event.status) == (AccessResult.UNREACHABLE, None)
    assert event.error == "ReadTimeout: no answer in time"
    assert event.body_bytes == 0


async def test_changed_access_is_told_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    events: list[CheckerEvent] = []
    site = site_of()
    checker = checker_of(site, clock=clock, on_event=events.append)

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

    changes = [event for event in events if isinstance(event, AccessChanged)]
    assert changes == [
        AccessChanged(
            origin=ORIGIN,
            before=AccessResult.SUCCESSFUL,
            after=AccessResult.UNREACHABLE,
        ),
        AccessChanged(
            origin=ORIGIN,
            before=AccessResult.UNREACHABLE,
            after=AccessResult.SUCCESSFUL,
        ),
    ]
    assert [
        (record.name, record.levelname, record.getMessage())
        for record in caplog.records
    ] == [
        (
            "robotsgate.checker",
            "INFO",
            f"{ORIGIN} was successful and is unreachable now (status 503, None)",
        ),
        (
            "robotsgate.checker",
            "INFO",
            f"{ORIGIN} was unreachable and is successful now (status 200, None)",
        ),
    ]


async def test_change_since_the_entry_of_the_store_is_told() -> None:
    clock = ManualClock()
    store = MemoryStore()
    site = site_of()
    await checker_of(site, store=StoreBehind(store), clock=clock).prefetch([ORIGIN])
    site.serve(ORIGIN, status=404)
    clock.advance(DAY)
    events: list[CheckerEvent] = []

    await checker_of(
        site, store=StoreBehind(store), clock=clock, on_event=events.append
    ).prefetch([ORIGIN])

    assert [type(event) for event in events] == [RobotsTxtFetched, AccessChanged]


async def test_first_answer_is_no_change() -> None:
    events: list[CheckerEvent] = []
    checker = checker_of(site_of(status=503), on_event=events.append)

    await checker.can_fetch(AGENT, PUBLIC)

    assert [type(event) for event in events] == [RobotsTxtFetched]


async def test_listener_that_raises_is_logged_and_counted(
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
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


@pytest.mark.parametrize("status", [200, 404, 500, 503])
async def test_log_never_holds_a_body_or_a_password(
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


async def test_requests_carry_our_user_agent_and_no_conditions() -> None:
    requests: list[httpx.Request] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, headers={"ETag": '"1"', "Last-Modified": "x"})

    clock = ManualClock()
    checker = RobotsChecker(
        client=httpx.MockTransport(answer),
        clock=clock,
        user_agent="ExampleBot/1.0 (+https://example.org/bot)",
    )

    await checker.can_fetch(AGENT, "https://user:password@example.com/page#fragment")
    clock.advance(DAY)
    await checker.can_fetch(AGENT, PUBLIC)

    assert [str(request.url) for request in requests] == [ROBOTS_TXT] * 2
    for request in requests:
        assert request.headers["User-Agent"] == (
            "ExampleBot/1.0 (+https://example.org/bot)"
        )
        assert set(request.headers) <= {
            "host",
            "user-agent",
            "accept",
            "accept-encoding",
            "connection",
        }
