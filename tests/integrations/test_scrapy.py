"""Our middleware in real crawls: Scrapy's engine, real sockets, no reactor."""

from __future__ import annotations

import gzip
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, signals
from scrapy.core.downloader import Slot
from scrapy.exceptions import IgnoreRequest, NotConfigured
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
from robotsgate.integrations.scrapy import RobotsGateMiddleware, RobotsGateParser
from tests.integrations.crawls import BUILT_IN, MIDDLEWARES, crawl
from tests.servers.answers import Late, Raw, Reply, Routes
from tests.servers.answers import redirect as redirect_to
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scrapy import Spider
    from scrapy.http import Response
    from scrapy.robotstxt import RobotParser

    from tests.integrations.crawls import CrawlSpider
    from tests.servers import loopback
    from tests.servers.loopback import Answer, LoopbackServer
    from tests.servers.valkey import Valkey

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n\nUser-agent: OwnBot\nDisallow: /own\n"
PAGE = Reply(body=b"page")


@pytest.fixture
def anyio_backend() -> str:
    """The only event loop of Scrapy."""
    return "asyncio"


@pytest.fixture
def site(serve: Serve) -> Callable[..., LoopbackServer]:
    """Starts a site with pages and, at /robots.txt, an answer."""

    def start(robots: Answer = Reply(body=RULES), **pages: Answer) -> LoopbackServer:  # noqa: B008 (never changes)
        named: dict[str, Answer] = {"public": PAGE, "private": PAGE, "own": PAGE}
        answers = {f"/{name}": answer for name, answer in (named | pages).items()}
        return serve(Routes({**answers, "/robots.txt": robots}))

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
    server = site()

    spider = await crawl(f"{server.url}/private", f"{server.url}/public")

    assert sorted(server.targets) == ["/public", "/robots.txt"]
    assert spider.report.pages == [f"{server.url}/public"]
    [error] = spider.errors
    assert isinstance(error, IgnoreRequest)
    assert str(error).startswith("Forbidden by robots.txt: disallowed by line 2 (")
    assert isinstance(error.__cause__, DisallowedError)
    assert error.__cause__.verdict.reason is Reason.DISALLOWED_BY_RULE


async def test_herd_that_waits_for_a_slow_file_is_refused_whole(site: Serve) -> None:
    """Scrapy's own middleware lets those pass that come while the first one waits."""
    ours, theirs = (site(Late(0.3, Reply(body=RULES))) for _ in range(2))
    herd = {"CONCURRENT_REQUESTS_PER_DOMAIN": 8}

    spider = await crawl(*[f"{ours.url}/private"] * 8, settings=herd)
    await crawl(
        *[f"{theirs.url}/private"] * 8,
        settings=herd | {"DOWNLOADER_MIDDLEWARES": {BUILT_IN: 100}},
    )

    assert ours.targets == ["/robots.txt"]
    assert robots_stats(spider)["forbidden"] == 8
    # Until Scrapy mends it; then the how-to must not tell of it any more.
    assert theirs.targets.count("/private") > 0


AGENTS: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "USER_AGENT": ({"USER_AGENT": "OwnBot/1.0 (+https://example.com)"}, {}, "/own"),
    "header of the request": (
        {"USER_AGENT": "OtherBot"},
        {"User-Agent": "OwnBot/1.0"},
        "/own",
    ),
    "ROBOTSTXT_USER_AGENT": (
        {"ROBOTSTXT_USER_AGENT": "OwnBot"},
        {"User-Agent": "OtherBot"},
        "/own",
    ),
    "no product token": ({"USER_AGENT": "(unnamed)"}, {}, "/private"),
    "no User-Agent": ({"USER_AGENT": None}, {}, "/private"),
}


@pytest.mark.parametrize(
    ("settings", "headers", "refused"), AGENTS.values(), ids=AGENTS
)
async def test_group_of_the_agent_decides(
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


async def test_setting_off_turns_the_middleware_off(site: Serve) -> None:
    server = site()

    await crawl(f"{server.url}/private", settings={"ROBOTSTXT_OBEY": False})

    assert server.targets == ["/private"]


async def test_request_may_opt_out(site: Serve) -> None:
    server = site()

    await crawl(Request(f"{server.url}/private", meta={"dont_obey_robotstxt": True}))

    assert server.targets == ["/private"]


async def test_scheme_without_robots_txt_passes() -> None:
    spider = await crawl("data:text/plain,page")

    assert spider.report.pages == ["data:text/plain,page"]


async def test_ftp_is_an_error_and_not_a_yes() -> None:
    spider = await crawl("ftp://127.0.0.1/file")

    assert [type(error) for error in spider.errors] == [IgnoreRequest]
    assert isinstance(spider.errors[0].__cause__, UnsupportedError)


async def test_url_that_names_no_origin_is_an_error_of_scrapy() -> None:
    spider = await crawl("http://127.0.0.1:0/page", "http://h..:80/page")

    assert [type(error) for error in spider.errors] == [IgnoreRequest] * 2
    for error in spider.errors:
        assert isinstance(error.__cause__, InvalidURLError)


COUNTED: dict[str, tuple[Answer, dict[str, int]]] = {
    "a file": (
        Reply(body=RULES),
        {
            "request_count": 1,
            "response_count": 1,
            "response_status_count/200": 1,
            "forbidden": 2,
        },
    ),
    "no answer": (
        Raw(b"rubbish\r\n\r\n"),
        {
            "request_count": 1,
            "exception_count/<class 'scrapy.exceptions.DownloadFailedError'>": 1,
            "forbidden": 3,
        },
    ),
    "silence": (
        Raw(b"", Connection.hang),
        {
            "request_count": 1,
            "exception_count/<class 'scrapy.exceptions.DownloadTimeoutError'>": 1,
            "forbidden": 3,
        },
    ),
}


@pytest.mark.parametrize(("answer", "counts"), COUNTED.values(), ids=COUNTED)
async def test_stats_are_those_of_scrapy(
    site: Serve, answer: Answer, counts: dict[str, int]
) -> None:
    server = site(answer)
    pages = [f"{server.url}/{page}" for page in ("private", "private", "public")]

    spider = await crawl(
        *pages, settings={"ROBOTSGATE_POLICY": Policy(fetch_deadline=2.0)}
    )

    assert robots_stats(spider) == counts
    assert server.targets.count("/robots.txt") == 1


async def test_signal_is_sent_once_for_a_file_and_all_requests_wait_for_it(
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


async def test_redirect_to_a_disallowed_page_is_not_followed(site: Serve) -> None:
    server = site(moved=redirect_to("/private"))

    spider = await crawl(f"{server.url}/moved")

    assert server.targets == ["/robots.txt", "/moved"]
    assert "Forbidden by robots.txt" in spider.report.refused[0]


async def test_redirect_of_robots_txt_is_ours_to_follow_and_off_site(
    site: Serve,
) -> None:
    elsewhere = site()
    location = elsewhere.url.replace("127.0.0.1", "localhost") + "/robots.txt"
    server = site(redirect_to(location, status=308))

    spider = await crawl(
        Request(f"{server.url}/private"), allowed_domains=["127.0.0.1"]
    )

    assert server.targets == elsewhere.targets == ["/robots.txt"]
    assert robots_stats(spider) == {
        "request_count": 1,
        "response_count": 1,
        "response_status_count/200": 1,
        "forbidden": 1,
    }


async def test_file_in_a_store_is_not_fetched_again_and_its_signal_is_sent(
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


async def test_file_that_expires_in_a_crawl_is_renewed(site: Serve) -> None:
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


async def test_store_with_connections_works_over_the_tasks_of_scrapy(
    site: Serve, valkey: Valkey
) -> None:
    server = site()
    settings = {"ROBOTSGATE_STORE": valkey.url}

    for _ in range(2):
        await crawl(f"{server.url}/private", settings=settings)

    assert server.targets == ["/robots.txt"]


LONG = RULES + b"#" * 600_000
BODIES: dict[str, tuple[dict[str, str], bytes]] = {
    "long": ({}, LONG),
    "without an end": ({"Transfer-Encoding": "chunked"}, b"fffff\r\n" + LONG),
    "coded": ({"Content-Encoding": "gzip"}, gzip.compress(RULES)),
    "long and coded": (
        {"Content-Encoding": "gzip"},
        gzip.compress(LONG, compresslevel=0),
    ),
    "long when decoded": (
        {"Content-Encoding": "gzip"},
        gzip.compress(RULES + bytes(1_000_000)),
    ),
}


@pytest.mark.parametrize(("headers", "body"), BODIES.values(), ids=BODIES)
async def test_start_of_a_long_or_coded_file_counts(
    site: Serve, headers: dict[str, str], body: bytes
) -> None:
    server = site(Reply(headers=headers, body=body))

    spider = await crawl(
        f"{server.url}/private",
        f"{server.url}/public",
        settings={"DOWNLOAD_MAXSIZE": 10_000},
    )

    assert spider.report.pages == [f"{server.url}/public"]


async def test_long_page_is_not_cut_while_a_robots_txt_is_under_way(
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


@pytest.mark.parametrize(
    "body",
    [gzip.compress(bytes(40_000_000)), b"rubbish"],
    ids=["a bomb", "rubbish"],
)
async def test_body_that_scrapy_cannot_decode_closes_the_origin(
    site: Serve, body: bytes
) -> None:
    server = site(Reply(headers={"Content-Encoding": "gzip"}, body=body))

    spider = await crawl(f"{server.url}/public")

    assert "/robots.txt is unreachable" in spider.report.refused[0]


OF_THE_HANDLER = {"connection", "content-length"}


async def test_robots_txt_is_one_plain_get_whatever_is_set(
    site: Serve, tmp_path: Path
) -> None:
    """Neither credentials nor conditions, no cache, and no second try."""
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
    assert {name: sent[name] for name in sent if name not in OF_THE_HANDLER} == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": "ExampleBot/1.0",
        "accept": "text/plain, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
    }


@pytest.mark.parametrize(
    ("store", "requests"),
    [
        ("memory:", ["/robots.txt", "/public", "/robots.txt"]),
        ("sqlite:///{}/robots.db", ["/robots.txt", "/public"]),
    ],
)
async def test_robots_txt_is_kept_by_the_store_and_not_by_the_cache_of_scrapy(
    site: Serve, tmp_path: Path, store: str, requests: list[str]
) -> None:
    server = site()
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path),
        "ROBOTSGATE_STORE": store.format(tmp_path),
    }

    for _ in range(2):
        spider = await crawl(f"{server.url}/public", settings=settings)

        assert spider.report.pages == [f"{server.url}/public"]
    assert server.targets == requests


class Refusing:
    """A user's own middleware that stops the requests for robots.txt."""

    error: Exception

    def process_request(self, request: Request) -> None:
        if request.url.endswith("/robots.txt"):
            raise self.error


@pytest.mark.parametrize(
    ("error", "counts"),
    [
        (IgnoreRequest("no"), {}),
        (ValueError("no"), {"exception_count/<class 'ValueError'>": 1}),
    ],
    ids=["IgnoreRequest", "another exception"],
)
async def test_robots_txt_that_another_middleware_stops_closes_the_origin(
    site: Serve, error: Exception, counts: dict[str, int]
) -> None:
    server = site()
    refusing = type("Refusing", (Refusing,), {"error": error})

    spider = await crawl(
        f"{server.url}/public",
        settings={"DOWNLOADER_MIDDLEWARES": MIDDLEWARES | {refusing: 200}},
    )

    assert server.targets == []
    assert robots_stats(spider) == {"request_count": 1, "forbidden": 1, **counts}


async def test_wait_in_a_download_slot_is_not_the_silence_of_a_server(
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


SLOTS = {
    "no delay of the user's": ((0, 0.5), 10, (10, 0)),
    "a smaller one": ((6, 0.5), 10, (10, 0)),
    "a larger one that chance might make smaller": ((16, 0.5), 8, (16, 0.5)),
    "a larger one that chance would make smaller": ((10, 0.5), 8, (10, 0.2)),
    "a larger one without chance": ((10, 0), 8, (10, 0)),
    "chance beyond nothing": ((10, 2), 5, (10, 0.5)),
}


@pytest.mark.skipif(not hasattr(Slot, "jitter"), reason="Scrapy 2.18 knows only half")
@pytest.mark.parametrize(("before", "least", "after"), SLOTS.values(), ids=SLOTS)
def test_slot_waits_for_the_crawl_delay_at_the_least(
    before: tuple[float, float], least: float, after: tuple[float, float]
) -> None:
    delay, jitter = before
    slot = Slot(1, delay, jitter)

    integration._hold_back(slot, least)

    assert (slot.delay, slot.jitter) == pytest.approx(after)


@pytest.mark.parametrize(("least", "is_random"), [(4, True), (6, False)])
def test_slot_of_scrapy_2_18_loses_its_chance_where_it_might_be_too_short(
    least: float, *, is_random: bool
) -> None:
    slot: Any = SimpleNamespace(delay=10, randomize_delay=True)

    integration._hold_back(slot, least)

    assert (slot.delay, slot.randomize_delay) == (10, is_random)


async def test_crawl_delay_becomes_the_delay_of_the_slot_up_to_a_bound(
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


def test_without_asyncio_the_crawl_does_not_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would go on without robots.txt if the middleware only stepped aside."""
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
async def test_wrong_setting_is_an_error_at_the_start(
    setting: str, value: object, error: type[Exception]
) -> None:
    crawler = get_crawler(settings_dict={"ROBOTSTXT_OBEY": True, setting: value})

    with pytest.raises(error):
        RobotsGateMiddleware.from_crawler(crawler)


@pytest.mark.parametrize(
    ("settings", "is_chosen"),
    [
        ({}, False),
        ({"ROBOTSGATE_POLICY": Policy(stale_window=0)}, False),
        ({"ROBOTSGATE_POLICY": Policy(address_guard=AddressGuard.PUBLIC_ONLY)}, True),
    ],
    ids=["no policy", "a policy for another reason", "a policy for its guard"],
)
async def test_guard_is_warned_about_by_the_name_of_its_setting_if_it_was_chosen(
    site: Serve,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, Any],
    *,
    is_chosen: bool,
) -> None:
    monkeypatch.setattr("robotsgate.fetching._robots_fetch._warned", set())

    await crawl(f"{site().url}/public", settings=settings)

    name = "with ROBOTSGATE_POLICY=Policy(address_guard=AddressGuard.OFF)"
    said = [
        text for log, _, text in caplog.record_tuples if log == "robotsgate.fetching"
    ]
    assert [name in text for text in said] == [True] * is_chosen


async def test_parser_serves_the_middleware_of_scrapy(site: Serve) -> None:
    server = site()

    spider = await crawl(
        f"{server.url}/private",
        f"{server.url}/public",
        settings={
            "DOWNLOADER_MIDDLEWARES": {BUILT_IN: 100},
            "ROBOTSTXT_PARSER": "robotsgate.integrations.scrapy.RobotsGateParser",
        },
    )

    assert spider.report.pages == [f"{server.url}/public"]


def test_parser_answers_as_scrapy_asks() -> None:
    body = RULES + b"Crawl-delay: 2.5\n"

    parser = RobotsGateParser.from_crawler(get_crawler(), body)

    assert not parser.allowed(b"https://example.com/own", b"OwnBot/1.0")
    assert parser.crawl_delay(b"OwnBot/1.0") == 2.5
    assert not parser.allowed("https://example.com/private", "")
    assert not parser.allowed("https://example.com/private", b"\xe4\x00")
