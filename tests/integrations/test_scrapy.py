"""Our middleware in real crawls: Scrapy's engine, real sockets, no reactor."""

from __future__ import annotations

import gzip
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from robotsgate import (
    AddressGuard,
    DisallowedError,
    InvalidURLError,
    Policy,
    Reason,
    StoreError,
    SystemClock,
    UnsupportedError,
)
from robotsgate.integrations import scrapy as integration
from robotsgate.integrations.scrapy import (
    RobotsGateAddon,
    RobotsGateMiddleware,
    RobotsGateParser,
)
from tests.integrations.crawls import BUILT_IN, crawl
from tests.servers.answers import Late, Raw, Reply, Routes
from tests.servers.answers import redirect as redirect_to
from tests.servers.loopback import Connection, dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

    from tests.integrations.crawls import CrawlSpider
    from tests.servers import loopback
    from tests.servers.loopback import Answer, LoopbackServer, Serve


pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n\nUser-agent: OwnBot\nDisallow: /own\n"
PAGE = Reply(body=b"page")


@pytest.fixture
def anyio_backend() -> str:
    """Without a reactor, Scrapy runs only on asyncio."""
    return "asyncio"


@pytest.fixture
def site(serve: Serve) -> Callable[..., LoopbackServer]:
    """Starts a site with pages and a robots.txt."""

    def start(robots: Answer | None = None, **pages: Answer) -> LoopbackServer:
        named: dict[str, Answer] = {"public": PAGE, "private": PAGE, "own": PAGE}
        answers = {f"/{name}": answer for name, answer in (named | pages).items()}
        rules = Reply(body=RULES)
        return serve(Routes({**answers, "/robots.txt": robots or rules}))

    return start


def robots_stats(spider: CrawlSpider) -> dict[str, float]:
    stats = spider.report.stats
    return {
        name.removeprefix("robotstxt/"): value
        for name, value in stats.items()
        if name.startswith("robotstxt/")
    }


async def test_disallowed_page_is_not_requested_and_its_error_says_why(
    site: Serve,
) -> None:
    """Including one that is only disallowed by the host in its Host header."""
    server, other = site(), site(Reply())
    headers = {"Host": f"127.0.0.1:{server.port}"}
    private, public = (f"{server.url}/{name}" for name in ("private", "public"))
    other_private, other_public = (
        Request(f"{other.url}/{name}", headers=headers)
        for name in ("private", "public")
    )

    spider = await crawl(private, public, other_private, other_public)

    for one in (server, other):
        assert sorted(one.targets) == ["/public", "/robots.txt"]
    assert sorted(spider.report.pages) == sorted([public, other_public.url])
    assert len(spider.errors) == 2
    for error in spider.errors:
        assert isinstance(error, IgnoreRequest)
        assert str(error).startswith("Forbidden by robots.txt: disallowed by line 2 (")
        assert isinstance(error.__cause__, DisallowedError)
        assert error.__cause__.verdict.reason is Reason.DISALLOWED_BY_RULE


@cases("settings meta", {
    "a setting turns the middleware off": ({"ROBOTSTXT_OBEY": False}, {}),
    "the request opts out": ({}, {"dont_obey_robotstxt": True}),
})  # fmt: skip
async def test_page_is_not_checked_if(
    site: Serve, settings: dict[str, Any], meta: dict[str, Any]
) -> None:
    server = site()

    await crawl(Request(f"{server.url}/private", meta=meta), settings=settings)

    assert server.targets == ["/private"]


@cases("settings headers refused", {
    "USER_AGENT": ({"USER_AGENT": "OwnBot/1.0 (+https://example.com)"}, {}, "/own"),
    "header of the request": (
        {"USER_AGENT": "OtherBot"}, {"User-Agent": "OwnBot/1.0"}, "/own"
    ),
    "ROBOTSTXT_USER_AGENT": (
        {"ROBOTSTXT_USER_AGENT": "OwnBot"}, {"User-Agent": "OtherBot"}, "/own"
    ),
    "no product token": ({"USER_AGENT": "(unnamed)"}, {}, "/private"),
    "no User-Agent": ({"USER_AGENT": None}, {}, "/private"),
})  # fmt: skip
async def test_group_of_the_agent_applies(
    site: Serve, settings: dict[str, Any], headers: dict[str, str], refused: str
) -> None:
    server = site()
    urls = [f"{server.url}/private", f"{server.url}/own"]

    spider = await crawl(
        *(Request(url, headers=headers) for url in urls), settings=settings
    )

    assert spider.report.pages == [
        url for url in urls if url != f"{server.url}{refused}"
    ]


async def test_url_that_cannot_be_checked_is_refused_if_it_names_a_host() -> None:
    data = "data:text/plain,page"

    spider = await crawl(
        data, "ftp://127.0.0.1/file", "http://127.0.0.1:0/page", "http://h..:80/page"
    )

    assert spider.report.pages == [data]
    assert [type(error) for error in spider.errors] == [IgnoreRequest] * 3
    causes = Counter(type(error.__cause__) for error in spider.errors)
    assert causes == {UnsupportedError: 1, InvalidURLError: 2}


@cases("middlewares active", {
    "nothing": ({}, {RobotsGateMiddleware: 100}),
    "Scrapy's middleware elsewhere": ({BUILT_IN: 90}, {RobotsGateMiddleware: 100}),
    "ours elsewhere": (
        {"robotsgate.integrations.scrapy.RobotsGateMiddleware": 90},
        {"robotsgate.integrations.scrapy.RobotsGateMiddleware": 90},
    ),
})  # fmt: skip
def test_addon_replaces_the_middleware_if_the_project_has(
    middlewares: dict[str, int], active: dict[object, int]
) -> None:
    settings = Settings({"DOWNLOADER_MIDDLEWARES": middlewares})

    RobotsGateAddon().update_settings(settings)

    assert settings.getbool("ROBOTSTXT_OBEY")
    every = settings.get_component_priority_dict_with_base("DOWNLOADER_MIDDLEWARES")
    assert {
        name: every[name]
        for name in every
        if "robots" in getattr(name, "__module__", name)
    } == active


FETCHED = {"request_count": 1, "response_count": 1, "response_status_count/200": 1}
FAILED = "exception_count/<class 'scrapy.exceptions.DownloadFailedError'>"


@cases("answer settings counts", {
    "a file": (Reply(body=RULES), {}, {**FETCHED, "forbidden": 2}),
    "an invalid response": (
        Raw(b"rubbish\r\n\r\n"), {}, {"request_count": 1, FAILED: 1, "forbidden": 3}
    ),
    "a store that fails": (
        Reply(body=RULES), {"ROBOTSGATE_STORE": f"redis://127.0.0.1:{dead_port()}"},
        {**FETCHED, "forbidden": 2},
    ),
})  # fmt: skip
async def test_stats_are_counted_as_scrapy_counts_them(
    site: Serve, answer: Answer, settings: dict[str, Any], counts: dict[str, int]
) -> None:
    server = site(answer)
    pages = [f"{server.url}/{page}" for page in ("private", "private", "public")]

    spider = await crawl(*pages, settings=settings)

    assert robots_stats(spider) == counts
    assert server.targets.count("/robots.txt") == 1


async def test_signal_is_sent_once_per_file_and_requests_wait_for_it(
    site: Serve,
) -> None:
    server, without_file = site(), site(Reply(status=404))
    others = without_file.url.replace("127.0.0.1", "localhost") + "/public"
    seen: list[tuple[str, bool, float | None, list[str]]] = []

    async def listen(robotparser: RobotParser, request: Request) -> None:
        await SystemClock().wait(0.2)
        seen.append(
            (
                request.url,
                robotparser.allowed(f"{server.url}/own", "OwnBot"),
                robotparser.crawl_delay("OwnBot"),
                list(server.targets),
            )
        )

    page = f"{server.url}/public"
    spider = await crawl(others, *[page] * 4, listeners={signals.robots_parsed: listen})

    assert seen == [(page, False, None, ["/robots.txt"])]
    assert sorted(spider.report.pages) == [*[page] * 4, others]


async def test_robots_txt_redirect_is_followed_even_off_site(
    site: Serve,
) -> None:
    elsewhere = site()
    location = elsewhere.url.replace("127.0.0.1", "localhost") + "/robots.txt"
    server = site(redirect_to(location, status=308))

    await crawl(Request(f"{server.url}/private"), allowed_domains=["127.0.0.1"])

    assert server.targets == elsewhere.targets == ["/robots.txt"]


async def test_stored_file_is_not_fetched_again_but_its_signal_is_sent(
    site: Serve, tmp_path: Path
) -> None:
    server = site()
    settings = {"ROBOTSGATE_STORE": f"sqlite:///{tmp_path}/robots.db"}
    page = f"{server.url}/private"
    parsed: list[str] = []

    def listen(request: Request) -> None:
        parsed.append(request.url)

    await crawl(page, settings=settings)
    spider = await crawl(
        page, settings=settings, listeners={signals.robots_parsed: listen}
    )

    assert server.targets == ["/robots.txt"]
    assert robots_stats(spider) == {"forbidden": 1}
    assert parsed == [page]


async def test_file_that_expires_during_a_crawl_is_fetched_again(site: Serve) -> None:
    bodies = [b"", b"User-agent: *\nDisallow: /public\n"]

    def answer(request: loopback.Request, connection: Connection) -> None:
        Reply(body=bodies.pop(0))(request, connection)

    server = site(answer, moved=Late(1.2, redirect_to("/public")))

    spider = await crawl(
        f"{server.url}/moved",
        settings={"ROBOTSGATE_POLICY": Policy(default_lifetime=1.0)},
    )

    assert server.targets == ["/robots.txt", "/moved", "/robots.txt"]
    assert "line 2" in spider.report.refused[0]


LONG = RULES + b"#" * 600_000
GZIP = {"Content-Encoding": "gzip"}


@cases("headers body refused", {
    "long": ({}, LONG, "line 2"),
    "long without a last chunk": (
        {"Transfer-Encoding": "chunked"}, b"fffff\r\n" + LONG, "line 2"
    ),
    "compressed": (GZIP, gzip.compress(RULES), "line 2"),
    "long and compressed": (GZIP, gzip.compress(LONG, compresslevel=0), "line 2"),
    "long when decompressed": (
        GZIP, gzip.compress(RULES + bytes(1_000_000)), "line 2"
    ),
    "a decompression bomb": (
        GZIP, gzip.compress(bytes(40_000_000)), "/robots.txt is unreachable"
    ),
    "compressed garbage": (GZIP, b"rubbish", "/robots.txt is unreachable"),
})  # fmt: skip
async def test_start_of_the_file_applies_if_it_can_be_decoded(
    site: Serve, headers: dict[str, str], body: bytes, refused: str
) -> None:
    server = site(Reply(headers=headers, body=body))

    spider = await crawl(
        f"{server.url}/private",
        f"{server.url}/public",
        settings={"DOWNLOAD_MAXSIZE": 10_000},
    )

    assert refused in spider.report.refused[0]
    assert len(spider.report.pages) == (refused == "line 2")


async def test_long_page_is_not_cut_off_during_a_robots_txt_fetch(
    site: Serve,
) -> None:
    slow = site(Late(0.3, Reply(body=RULES)))
    quick = site(Reply(status=404), long=Reply(body=LONG))
    sizes: dict[str, int] = {}

    def listen(response: Response) -> None:
        sizes[response.url] = len(response.body)

    await crawl(
        f"{slow.url}/private",
        f"{quick.url}/long",
        listeners={signals.response_received: listen},
    )

    assert sizes[f"{quick.url}/long"] == len(LONG)


ADDED_BY_THE_HANDLER = {"connection", "content-length"}


async def test_robots_txt_is_one_plain_get_whatever_the_settings(
    site: Serve, tmp_path: Path
) -> None:
    """No credentials, no conditional headers, no HTTP cache and no retry."""
    server = site(Reply(status=503, headers={"Set-Cookie": "a=b"}))
    settings = {
        "COMPRESSION_ENABLED": False,
        "COOKIES_ENABLED": True,
        "DEFAULT_REQUEST_HEADERS": {"Cookie": "secret", "If-None-Match": "secret"},
        "HTTPAUTH_USER": "user",
        "HTTPAUTH_PASS": "secret",
        "HTTPAUTH_DOMAIN": None,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "USER_AGENT": "ExampleBot/1.0",
    }
    page = Request(f"{server.url}/public", cookies={"session": "secret"})

    for _ in range(2):
        await crawl(page.copy(), settings=settings)

    assert server.targets == ["/robots.txt"] * 2
    sent = server.requests[0].headers
    assert {name: sent[name] for name in sent if name not in ADDED_BY_THE_HANDLER} == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": "ExampleBot/1.0",
        "accept": "text/plain, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
    }


class Refusing:
    """A user's middleware that blocks requests for robots.txt."""

    error: Exception

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise self.error


@cases("error counts", {
    "IgnoreRequest": (IgnoreRequest("no"), {}),
    "another exception": (
        ValueError("no"), {"exception_count/<class 'ValueError'>": 1}
    ),
})  # fmt: skip
async def test_page_is_refused_if_a_middleware_blocks_robots_txt(
    site: Serve, error: Exception, counts: dict[str, int]
) -> None:
    server = site()
    refusing = type("Refusing", (Refusing,), {"error": error})

    spider = await crawl(
        f"{server.url}/public",
        settings={"DOWNLOADER_MIDDLEWARES": {refusing: 200}},
    )

    assert server.targets == []
    assert robots_stats(spider) == {"request_count": 1, "forbidden": 1, **counts}


async def test_time_in_a_download_slot_does_not_count_as_a_timeout(
    site: Serve,
) -> None:
    server = site(redirect_to("/rules"), rules=Reply(body=RULES))
    settings = {
        "DOWNLOAD_DELAY": 1.2,
        "DOWNLOAD_DELAY_JITTER": 0,
        "ROBOTSGATE_POLICY": Policy(fetch_deadline=1.0),
    }

    spider = await crawl(f"{server.url}/private", settings=settings)

    assert server.targets == ["/robots.txt", "/rules"]
    assert "line 2" in spider.report.refused[0]


@pytest.mark.skipif(
    not hasattr(Slot, "jitter"), reason="Scrapy 2.18 has no adjustable jitter"
)
@cases("before least after", {
    "no configured delay": ((0, 0.5), 10, (10, 0)),
    "a shorter delay": ((6, 0.5), 10, (10, 0)),
    "a longer delay that jitter keeps long enough": ((16, 0.5), 8, (16, 0.5)),
    "a longer delay that jitter could make too short": ((10, 0.5), 8, (10, 0.2)),
    "a longer delay without jitter": ((10, 0), 8, (10, 0)),
    "jitter larger than the delay": ((10, 2), 5, (10, 0.5)),
})  # fmt: skip
def test_slot_waits_at_least_the_crawl_delay(
    before: tuple[float, float], least: float, after: tuple[float, float]
) -> None:
    delay, jitter = before
    slot = Slot(1, delay, jitter)

    integration._hold_back(slot, least)

    assert (slot.delay, slot.jitter) == pytest.approx(after)


@pytest.mark.parametrize(("least", "is_random"), [(4, True), (6, False)])
def test_scrapy_2_18_slot_is_not_randomized_if_that_could_be_too_short(
    least: float, *, is_random: bool
) -> None:
    slot: Any = SimpleNamespace(delay=10, randomize_delay=True)

    integration._hold_back(slot, least)

    assert (slot.delay, slot.randomize_delay) == (10, is_random)


class Scope:
    """A throttling scope, as in https://github.com/scrapy/scrapy/pull/6931."""

    def __init__(self) -> None:
        self._base_delay, self._jitter = 0.0, 0.5
        self._next_allowed_time: float | None = None

    def get_base_delay(self) -> float:
        return self._base_delay

    def set_base_delay(self, delay: float) -> None:
        self._base_delay = delay


@pytest.mark.skipif(find_spec("scrapy.throttler") is not None, reason="has scopes")
async def test_throttling_scope_is_held_back_like_a_slot(site: Serve) -> None:
    scope = Scope()
    busy = Reply(status=404, headers={"Retry-After": "9"})
    server = site(Reply(body=b"User-agent: *\nCrawl-delay: 0.1\n"), busy=busy)

    def use_scopes(spider: Spider) -> None:
        spider.crawler.throttler = SimpleNamespace(
            get_applied_scopes=lambda _: ["scope"],
            get_scope_manager=lambda _: scope,
            get_scopes_key=lambda _: "127.0.0.1",
        )

    await crawl(f"{server.url}/busy", listeners={signals.spider_opened: use_scopes})

    assert (scope._base_delay, scope._jitter) == (0.1, 0)
    assert 0 < (scope._next_allowed_time or 0) - SystemClock().monotonic() < 9


async def test_crawl_delay_sets_the_slot_delay_up_to_a_maximum(
    site: Serve,
) -> None:
    slow = site(Reply(body=b"User-agent: *\nCrawl-delay: 99\n"))
    quick = site()
    delays: dict[str, float] = {}

    def listen(request: Request, spider: Spider) -> None:
        if request.url.endswith("/public"):
            key = request.meta["download_slot"]
            delays[key] = spider.crawler.engine.downloader.slots[key].delay

    spider = await crawl(
        f"{slow.url}/public",
        f"{quick.url.replace('127.0.0.1', 'localhost')}/public",
        settings={"ROBOTSGATE_MAX_CRAWL_DELAY": 0.1},
        listeners={signals.response_downloaded: listen},
    )

    assert len(spider.report.pages) == 2
    assert delays == {"127.0.0.1": 0.1, "localhost": 0}


@cases("page robots settings is_delayed", {
    "429, which Scrapy retries": ((429, "1"), (404, None), {}, True),
    "redirect": ((301, "1"), (404, None), {}, True),
    "AutoThrottle": ((503, "1"), (404, None), {"AUTOTHROTTLE_ENABLED": True}, True),
    "more than retry_after_max": ((503, "99"), (404, None), {
        "ROBOTSGATE_POLICY": Policy(
            retry_initial=1, retry_initial_503=1, retry_after_max=1
        ),
    }, True),
    "no Retry-After": ((429, None), (404, None), {}, False),
    "404 for robots.txt": ((301, None), (404, "99"), {}, False),
})  # fmt: skip
async def test_retry_after_delays_the_next_request_of_its_slot(
    site: Serve,
    page: tuple[int, str | None],
    robots: tuple[int, str | None],
    settings: dict[str, Any],
    *,
    is_delayed: bool,
) -> None:
    """Scrapy's retry used to come 0.01 s after a 429."""
    times: list[float] = []

    def reply(status: int, retry_after: str | None) -> Reply:
        headers = {} if retry_after is None else {"Retry-After": retry_after}
        return Reply(status=status, headers={"Location": "/busy", **headers})

    def answer(request: loopback.Request, connection: Connection) -> None:
        times.append(SystemClock().monotonic())
        (PAGE if len(times) > 1 else reply(*page))(request, connection)

    server = site(reply(*robots), busy=answer)
    settings = {"AUTOTHROTTLE_START_DELAY": 0.1, **settings}
    spider = await crawl(f"{server.url}/busy", settings=settings)

    assert spider.report.pages == [f"{server.url}/busy"]
    first, second = times
    assert (second - first >= 1) is is_delayed


def test_crawl_without_asyncio_does_not_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the middleware only disabled itself, the crawl would ignore robots.txt."""
    monkeypatch.setattr(integration, "is_asyncio_available", lambda: False)

    with pytest.raises(RuntimeError, match="to run on asyncio, got the reactor"):
        RobotsGateMiddleware.from_crawler(
            get_crawler(settings_dict={"ROBOTSTXT_OBEY": True})
        )


@pytest.mark.parametrize(
    ("setting", "value", "error"),
    [
        ("ROBOTSGATE_POLICY", "strict", TypeError),
        ("ROBOTSGATE_STORE", "mongodb:", StoreError),
        ("ROBOTSTXT_OBEY", False, NotConfigured),
    ],
)
async def test_unusable_setting_raises_at_startup(
    setting: str, value: object, error: type[Exception]
) -> None:
    crawler = get_crawler(settings_dict={"ROBOTSTXT_OBEY": True, setting: value})

    with pytest.raises(error):
        RobotsGateMiddleware.from_crawler(crawler)


@cases("settings is_explicit", {
    "no policy": ({}, False),
    "a policy without a guard": ({"ROBOTSGATE_POLICY": Policy(stale_window=0)}, False),
    "a policy with a guard": (
        {"ROBOTSGATE_POLICY": Policy(address_guard=AddressGuard.PUBLIC_ONLY)}, True
    ),
})  # fmt: skip
async def test_only_an_explicit_guard_causes_a_warning_naming_the_setting(
    site: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    *,
    is_explicit: bool,
) -> None:
    monkeypatch.setattr("robotsgate.fetching._robots_fetch._warned", set())

    await crawl(f"{site().url}/public", settings=settings)

    name = "with ROBOTSGATE_POLICY=Policy(address_guard=AddressGuard.OFF)"
    messages = [
        text for log, _, text in caplog.record_tuples if log == "robotsgate.fetching"
    ]
    assert [name in text for text in messages] == [True] * is_explicit


async def test_parser_works_in_scrapys_own_middleware(site: Serve) -> None:
    server = site()
    settings = {
        "ADDONS": {},
        "ROBOTSTXT_OBEY": True,
        "ROBOTSTXT_PARSER": "robotsgate.integrations.scrapy.RobotsGateParser",
    }
    urls = [f"{server.url}/private", f"{server.url}/public"]

    spider = await crawl(*urls, settings=settings)
    body = RULES + b"Crawl-delay: 2.5\n"
    parser = RobotsGateParser.from_crawler(spider.crawler, body)

    assert spider.report.pages == [f"{server.url}/public"]
    assert not parser.allowed(b"https://example.com/own", b"OwnBot/1.0")
    assert not parser.allowed("https://example.com/private", b"\xe4\x00")
    assert parser.crawl_delay(b"OwnBot/1.0") == 2.5
