"""Lookups give the same results on the fast path and in a worker thread."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate import Dialect, Policy, Reason, RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.urls._url import readings, split_url
from tests.tables import cases

from .builders import (
    AGENT,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    add_answer,
    answered_at_once,
    checker_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.anyio

OTHER_AGENT = "OtherBot"

# Larger files are parsed in a worker thread.
MAX_BYTES_AT_ONCE = 65_536

# A 100 KB file with every kind of line.
BIG = "".join(
    [
        "User-agent: *\nCrawl-delay: 7\nRequest-rate: 2/5\n",
        *(f"Disallow: /private/{number}/\n" for number in range(3_000)),
        *(f"Allow: /private/{number}/open\n" for number in range(0, 900, 3)),
        "Disallow: /*.pdf$\n",
        f"Sitemap: {ORIGIN}/sitemap.xml\n",
        "User-agent: OtherBot\nDisallow: /public\n",
        *(f"Sitemap: {ORIGIN}/sitemap-{number}.xml\n" for number in range(300)),
    ]
)

# A small file whose rules are slow to match with a long URL.
WILD = "User-agent: *\n" + "".join(
    f"{'Disallow' if number % 3 else 'Allow'}: /*a*{number:04}*{'ab' * 12}$\n"
    for number in range(1_200)
)
LONG = f"{ORIGIN}/{'ab' * 400}"

PATHS = [
    "/",
    "/public",
    "/private",
    "/robots.txt",
    "/a.pdf",
    "/a.pdf?b",
    *(f"/private/{number}/{end}" for number in (0, 1, 2_997) for end in ("x", "open")),
]
URLS = [f"{ORIGIN}{path}" for path in PATHS]


def parsed(body: str, *, dialect: Dialect = Dialect.RFC9309) -> RobotsTxt:
    return RobotsTxt.parse(body, dialect=dialect)


@asynccontextmanager
async def worker_thread_blocked(checker: RobotsChecker) -> AsyncIterator[None]:
    """Make everything that needs a worker thread wait."""
    async with checker._lookups._one_at_a_time:
        yield


async def until_parsing(checker: RobotsChecker) -> None:
    """Let other tasks run until one of them is parsing a file or waiting to."""
    for _ in range(1_000):
        if checker._lookups.parsing:
            return
        await anyio.lowlevel.checkpoint()
    pytest.fail("nothing is being parsed")


async def prefetched_checker(body: str = BIG) -> RobotsChecker:
    """A checker that has fetched `body` but not parsed it."""
    checker = checker_of(site_of(body))
    await checker.prefetch([ORIGIN])
    return checker


def test_files_have_the_sizes_that_these_tests_need() -> None:
    assert len(WILD) < MAX_BYTES_AT_ONCE < len(BIG) < 512_000
    rules = parsed(WILD).rules_for(AGENT).rules
    assert len("/robots.txt") < rules.quick_length < len(LONG) - len(ORIGIN)


# --- large files ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "peeked"), [(MAX_BYTES_AT_ONCE, False), (MAX_BYTES_AT_ONCE + 1, None)]
)
async def test_peek_parses_a_file_of_64_kibibytes_but_no_larger_one(
    size: int, *, peeked: bool | None
) -> None:
    checker = await prefetched_checker(RULES + "#" * (size - len(RULES)))

    assert checker.peek(AGENT, PRIVATE) is peeked
    assert await checker.can_fetch(AGENT, PRIVATE) is False


@pytest.mark.parametrize("dialect", Dialect, ids=lambda one: one.value)
async def test_large_file_gives_the_same_results_as_the_parsed_file(
    dialect: Dialect,
) -> None:
    checker = checker_of(site_of(BIG), dialect=dialect)
    robots_txt = parsed(BIG, dialect=dialect)

    for agent in (AGENT, OTHER_AGENT):
        answers = [robots_txt.can_fetch(agent, url) for url in URLS]
        answers[PATHS.index("/robots.txt")] = True
        verdicts = [await checker.check(agent, url) for url in URLS]
        assert [verdict.allowed for verdict in verdicts] == answers
        assert await checker.can_fetch_many(agent, URLS) == answers
        for url, verdict in zip(URLS, verdicts, strict=True):
            match = robots_txt.match(agent, url)
            assert (verdict.rule, verdict.group) == (match.rule, match.group)
        assert await checker.crawl_delay(agent, ORIGIN) == robots_txt.crawl_delay(agent)
        assert await checker.request_rate(agent, ORIGIN) == robots_txt.request_rate(
            agent
        )
    assert await checker.sitemaps(ORIGIN) == robots_txt.sitemaps


# --- concurrent lookups ---------------------------------------------------------


async def test_50_concurrent_lookups_parse_a_large_file_once() -> None:
    checker = checker_of(site_of(BIG))
    urls = [f"{PRIVATE}/{number}/{'open' * (number % 2)}" for number in range(50)]
    robots_txt = parsed(BIG)
    answers: dict[str, bool] = {}

    async def look_up(url: str) -> None:
        answers[url] = await checker.can_fetch(AGENT, url)

    async with anyio.create_task_group() as tasks, worker_thread_blocked(checker):
        for url in urls:
            tasks.start_soon(look_up, url)
        await until_parsing(checker)
        await let_others_run()

    assert answers == {url: robots_txt.can_fetch(AGENT, url) for url in urls}
    assert set(answers.values()) == {True, False}
    assert checker._lookups.parsing.joined == 49
    assert checker.stats.fetches == 1


# --- slow rules -----------------------------------------------------------------


@cases("url", {
    "disallowed": (f"{LONG}0007{'ab' * 12}",),
    "allowed by a rule": (f"{LONG}0009{'ab' * 12}",),
    "no rule matches": (f"{LONG}7777{'ab' * 12}",),
    "with a dot segment": (f"{LONG}0007/a/../{'ab' * 12}",),
    "with an escape": (f"{LONG}0007%61{'ab' * 12}",),
})  # fmt: skip
async def test_slow_rules_give_the_same_results_as_the_parsed_file(url: str) -> None:
    checker = await prefetched_checker(WILD)
    robots_txt = parsed(WILD)

    before = checker.peek(AGENT, url)
    answers = [
        await checker.can_fetch(AGENT, url),
        (await checker.check(AGENT, url)).allowed,
        *await checker.can_fetch_many(AGENT, [url, url]),
    ]
    verdict = await checker.check(AGENT, url)

    assert answers == [robots_txt.can_fetch(AGENT, url)] * 4
    assert verdict.rule == robots_txt.match(AGENT, url).rule
    assert (before, checker.peek(AGENT, url)) == (None, None)
    assert checker.peek(AGENT, f"{ORIGIN}/a0007{'ab' * 12}") is False


@cases("body look_up", {
    "a file": (BIG, lambda checker: checker.robots_txt(ORIGIN)),
    "its rules": (BIG, lambda checker: checker.check(AGENT, ORIGIN)),
    "a result": (WILD, lambda checker: checker.can_fetch(AGENT, LONG)),
    "a verdict": (WILD, lambda checker: checker.check(AGENT, LONG)),
    "preferences": (WILD, lambda checker: checker.usage_preferences(AGENT, LONG)),
})  # fmt: skip
async def test_slow_work_needs_a_worker_thread(
    body: str, look_up: Callable[[RobotsChecker], Awaitable[object]]
) -> None:
    checker = await prefetched_checker(body)
    results = []

    async def keep_result() -> None:
        results.append(await look_up(checker))

    async with anyio.create_task_group() as tasks, worker_thread_blocked(checker):
        tasks.start_soon(keep_result)
        await let_others_run()
        tasks.cancel_scope.cancel()

    assert results == []


async def test_results_for_long_urls_are_in_order() -> None:
    checker = checker_of(site_of(WILD))
    urls = [f"{LONG}{number:04}{'ab' * 12}" for number in range(9)]
    urls += [f"{ORIGIN}/a{number:04}{'ab' * 12}" for number in range(9)]

    cold = await checker.can_fetch_many(AGENT, urls)
    known = await checker.can_fetch_many(AGENT, urls)

    expected = [number % 3 == 0 for number in range(9)] * 2
    assert (cold, known) == (expected, expected)
    assert checker.stats.checks == 2 * len(urls)


async def test_robots_txt_is_allowed_despite_slow_rules() -> None:
    """With 800 KB of rules, even its path counts as long."""
    body = f"User-agent: *\nDisallow: /\nDisallow: /*{'a' * 800_000}\n"
    checker = checker_of(site_of(body), policy=Policy(max_body_bytes=1_000_000))

    allowed = await checker.can_fetch(AGENT, ROBOTS_TXT)
    verdict = await checker.check(AGENT, ROBOTS_TXT)
    many = await checker.can_fetch_many(AGENT, [ROBOTS_TXT, PUBLIC])

    assert (allowed, many) == (True, [True, False])
    assert (verdict.allowed, verdict.reason) == (True, Reason.ROBOTS_TXT)
    assert checker.peek(AGENT, ROBOTS_TXT) is True


# --- changes during parsing -----------------------------------------------------


async def test_origin_forgotten_during_parsing_is_answered_but_not_live() -> None:
    checker = await prefetched_checker()
    answers: list[bool] = []

    async with anyio.create_task_group() as tasks, worker_thread_blocked(checker):
        tasks.start_soon(add_answer, answers, checker, f"{PRIVATE}/1/x")
        await until_parsing(checker)
        await checker.forget(ORIGIN)

    assert answers == [False]
    assert checker.peek(AGENT, PUBLIC) is None
    assert checker.stats.live_origins == 0
    assert await checker.can_fetch(AGENT, PUBLIC) is True
    assert checker.stats.fetches == 2


@pytest.mark.parametrize("seconds", [1.0, 0.0], ids=["later", "at the same instant"])
async def test_lookup_after_a_refresh_during_parsing_uses_the_new_copy(
    seconds: float,
) -> None:
    clock = ManualClock()
    site = site_of(BIG)
    checker = checker_of(site, clock=clock)
    await checker.prefetch([ORIGIN])
    answers: dict[str, bool] = {}

    async def look_up(when: str) -> None:
        answers[when] = await checker.can_fetch(AGENT, PUBLIC)

    async with anyio.create_task_group() as tasks, worker_thread_blocked(checker):
        tasks.start_soon(look_up, "before")
        await until_parsing(checker)
        clock.advance(seconds)
        site.serve(ORIGIN, f"User-agent: *\nDisallow: /public\n{BIG}")
        await checker.refresh(ORIGIN)
        tasks.start_soon(look_up, "after")
        await let_others_run()

    assert answers == {"before": True, "after": False}
    assert checker.peek(AGENT, PUBLIC) is False


async def test_closing_the_checker_ends_the_parsing_of_a_large_file() -> None:
    checker = await prefetched_checker()

    async def look_up() -> None:
        with pytest.raises(RuntimeError, match="the checker is closed"):
            await checker.can_fetch(AGENT, PUBLIC)

    async with anyio.create_task_group() as tasks, worker_thread_blocked(checker):
        tasks.start_soon(look_up)
        await until_parsing(checker)
        await checker.aclose()

    assert checker.stats.live_origins == 0


# --- the fast path --------------------------------------------------------------

HOT_BODY = """\
User-agent: ExampleBot
Disallow: /private
Disallow: /*.php$
Disallow: /caf\u00e9
Disallow: /a%2Fb
Disallow: /tilde~
Disallow: /%41bc
Disallow: /x?q=*&r
Disallow: /100%25-
Disallow: /star%2A
Disallow: /cash%24
Disallow: /semi;colon
Allow: /private/open
Allow: /index.html
Disallow: /up/
Disallow: /robots.txt
"""
HOT_ORIGINS = (
    "https://example.com", "http://example.com", "https://example.com:8443",
    "https://[2001:db8::1]", "http://192.0.2.7", "https://xn--bcher-kva.example",
    "http://a",
    "https://semi;colon",  # Google's parser would end the host at ";"
)  # fmt: skip
HOT_SPELLINGS = (
    *HOT_ORIGINS, "HTTPS://EXAMPLE.COM", "https://example.com:443",
    "https://example.com:", "http://example.com:80", "https://example.com:08443",
    "https://user:pass@example.com", "https://user@EXAMPLE.com:8443",
    "https://user:p;w@example.com", "https://[2001:DB8:0::1]", "http://3221225991",
    "http://0xc0.0.2.7", "https://b\u00fccher.example", "https://B\u00dcCHER.example",
    "https://b%C3%BCcher.example", "https://ex\u00adample.com", "https://example.com.",
    "https://EXAMPLE.com.:443", "  https://example.com", "ht\ttps://exam\nple.com",
)  # fmt: skip
HOT_TARGETS = (
    "", "/", "?", "#", "/\\", "?q=/private", "#/private", "/private", "/private/open",
    "/private/../open", "/open/../private", "/open/%2e%2E/private", "/./private", "/.",
    "/..", "/up/.", "/up/x/..", "/open/..%2fprivate", "/private#open", "/open#/private",
    "/pri%76ate", "/pri%vate", "/%70RIVATE", "/\\private", "/open\\%2e%2e/private",
    "/private/%2e%2e/../open", "/./robots.txt", "/open\\..\\private", "/pri\tvate",
    "/private\n", "/private ", "/x.php", "/x.php?y", "/x.php%24", "/x.php$",
    "/caf\u00e9", "/caf%c3%a9", "/CAF%C3%89", "/cafe\u0301", "/a/b", "/a%2fb",
    "/a%252fb", "/tilde~", "/tilde%7e", "/Abc", "/%41bc", "/%4", "/%", "/100%-off",
    "/star*", "/star%2a", "/cash$", "/cash%24", "/semi;colon", "/semi%3bcolon",
    "/x?q=1&r", "/x?q=1/../&r", "/x?q=%31&r", "/index.html", "//private",
    "/robots.txt", "/robots%2Etxt", "/robots.txt?", "/robots.txt#x", "/ROBOTS.TXT",
    "/\u20ac", "/\U0001f600", "/\udcff", "/[x]|{y}^`\"<>'",
)  # fmt: skip


class FastPath:
    """A checker with all of `HOT_ORIGINS` in memory, and their parsed file."""

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
        _, target = split_url(url)
        matches = {
            one: self.robots_txt.match(AGENT, f"{ORIGIN}{one}")
            for one in readings(target)
        }
        refusals = [
            match
            for one, match in matches.items()
            if not (match.allowed or one == "/robots.txt")
        ]
        match = (refusals or [*matches.values()])[0]
        hot = [self.checker.peek(AGENT, url), self.checker.peek(AGENT, url)]
        verdict = answered_at_once(self.checker.check(AGENT, url))
        listed = answered_at_once(self.checker.check([AGENT], url))

        answers = [*hot, verdict.allowed, listed.allowed]
        assert answers == [not refusals] * 4, (url, verdict)
        if verdict.reason is not Reason.ROBOTS_TXT:
            assert verdict.rule == match.rule


@pytest.fixture(scope="module", params=Dialect, ids=lambda dialect: dialect.value)
def fast_path(request: pytest.FixtureRequest) -> FastPath:
    return FastPath(request.param)


@pytest.mark.parametrize("spelling", HOT_SPELLINGS)
def test_fast_path_agrees_with_the_parsed_file(
    fast_path: FastPath, spelling: str
) -> None:
    for target in HOT_TARGETS:
        fast_path.assert_answers_agree(spelling + target)


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
def test_fast_path_agrees_with_the_parsed_file_for_any_url(
    fast_path: FastPath, spelling: str, pieces: list[str]
) -> None:
    fast_path.assert_answers_agree(f"{spelling}/{''.join(pieces)}")
