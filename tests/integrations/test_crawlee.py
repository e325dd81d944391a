"""Real crawlers of crawlee against real servers: what they skip, and when they ask."""

from __future__ import annotations

import inspect
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import (
    DisallowedError,
    PolitenessGate,
    Reason,
    RobotsChecker,
    SystemClock,
)
from robotsgate.testing import ManualClock
from tests.checking.builders import AGENT, RULES
from tests.integrations.chromium import NEEDS_CHROMIUM, page
from tests.servers.answers import Raw, Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Answer, Connection, LoopbackServer, Request

    Site = Callable[..., LoopbackServer]

runs = pytest.importorskip("tests.integrations.crawlee_runs")
integration = pytest.importorskip("robotsgate.integrations.crawlee")

pytestmark = pytest.mark.anyio

PAGE = page("page")
KINDS = [
    "impit",
    "httpx",
    pytest.param("chromium", marks=NEEDS_CHROMIUM),
]
DISALLOWED = Reason.DISALLOWED_BY_RULE
DELAY = 0.2
CLOCK = SystemClock()


@pytest.fixture
def anyio_backend() -> str:
    """The only event loop of crawlee."""
    return "asyncio"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def site(serve: Site) -> Site:
    """Starts an origin with pages and, at /robots.txt, an answer."""

    def start(
        robots: Answer = Reply(body=RULES.encode()),  # noqa: B008 (never changes)
        **pages: Answer,
    ) -> LoopbackServer:
        named = {"public": PAGE, "other": PAGE, "private": PAGE} | pages
        answers = {f"/{name}": answer for name, answer in named.items()}
        return serve(Routes({**answers, "/robots.txt": robots}))

    return start


class Timed:
    """A page that notes when it is about to answer, seconds.

    Not when it has answered: by then, the turn may be over.
    """

    def __init__(self, answer: Answer = PAGE) -> None:
        self._answer = answer
        self.times: list[float] = []

    def __call__(self, request: Request, connection: Connection) -> None:
        self.times.append(CLOCK.monotonic())
        self._answer(request, connection)


async def test_allowed_page_is_crawled_and_a_disallowed_one_skipped(
    site: Site, kind: str
) -> None:
    server = site()
    private = f"{server.url}/private"

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        stats = await crawl.crawler.run([f"{server.url}/public", private])

    assert crawl.pages == [f"{server.url}/public"]
    assert crawl.skips == [(private, "robots_txt")]
    assert crawl.skipped == {DISALLOWED: 1}
    assert server.targets == ["/robots.txt", "/public"]
    assert (stats.requests_failed, stats.retry_histogram) == (0, [1])


async def test_redirect_to_a_disallowed_page_is_skipped(site: Site, kind: str) -> None:
    other = site()
    server = site(away=redirect(f"{other.url}/private"))

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        stats = await crawl.crawler.run([f"{server.url}/away"])

    assert crawl.skips == [(f"{server.url}/away", "robots_txt")]
    assert crawl.skipped == {DISALLOWED: 1}
    assert (crawl.pages, crawl.failed) == ([], [])
    assert server.targets == ["/robots.txt", "/away"]
    assert other.targets == ["/robots.txt"]
    assert (stats.requests_failed, stats.retry_histogram) == (0, [0])


async def test_redirect_to_another_host_is_followed(site: Site, kind: str) -> None:
    other = site()
    server = site(away=redirect(f"{other.url}/public"))

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        await crawl.crawler.run([f"{server.url}/away"])

    assert crawl.pages == [f"{other.url}/public"]
    assert other.targets == ["/robots.txt", "/public"]


@pytest.mark.parametrize(
    "location",
    ["/x\\..\\private", "/pri\tvate", "/%2e/private", "http://1.2.3.4.5/"],
)
async def test_redirect_that_is_written_in_an_odd_way_is_not_followed(
    site: Site, kind: str, location: str
) -> None:
    """For three of them, impit and browsers would send /private."""
    server = site(away=redirect(location))

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker, max_request_retries=0)
        await crawl.crawler.run([f"{server.url}/away"])

    assert crawl.pages == []
    assert server.targets == ["/robots.txt", "/away"]


async def test_robots_txt_itself_is_requested_unasked(site: Site, kind: str) -> None:
    server = site()

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        await crawl.crawler.run([f"{server.url}/robots.txt"])

    assert crawl.pages == [f"{server.url}/robots.txt"]
    assert server.targets.count("/robots.txt") == 1


async def test_override_of_an_origin_lets_its_pages_pass(site: Site, kind: str) -> None:
    server = site()

    async with RobotsChecker(user_agent=AGENT, overrides={server.url: ""}) as checker:
        crawl = await runs.crawl_of(kind, checker)
        await crawl.crawler.run([f"{server.url}/private"])

    assert server.targets == ["/private"]


async def test_page_is_crawled_once_a_failing_server_allows_it(
    serve: Site, kind: str
) -> None:
    answers: dict[str, Answer] = {"/robots.txt": Reply(status=500), "/public": PAGE}
    server = serve(Routes(answers))
    clock = ManualClock()

    async with RobotsChecker(user_agent=AGENT, clock=clock) as checker:
        crawl = await runs.crawl_of(kind, checker)
        await crawl.crawler.run([f"{server.url}/public"])
        answers["/robots.txt"] = Reply(body=RULES.encode())
        await clock.pass_time(120)
        await crawl.crawler.run([f"{server.url}/public"])

    assert crawl.skipped == {Reason.UNREACHABLE: 1}
    assert crawl.pages == [f"{server.url}/public"]
    assert server.targets == ["/robots.txt", "/robots.txt", "/public"]


async def test_many_requests_to_a_new_origin_fetch_one_robots_txt(
    site: Site, kind: str
) -> None:
    server = site(**{f"page{number}": PAGE for number in range(10)})
    urls = [f"{server.url}/page{number}" for number in range(10)]

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        await crawl.crawler.run(urls)

    assert sorted(crawl.pages) == sorted(urls)
    assert server.targets.count("/robots.txt") == 1


@pytest.mark.parametrize("is_gated", [False, True])
async def test_closed_checker_ends_the_crawl(
    site: Site, kind: str, *, is_gated: bool
) -> None:
    server = site()
    checker = RobotsChecker(user_agent=AGENT)
    gate = PolitenessGate(checker, AGENT) if is_gated else None
    crawl = await runs.crawl_of(kind, checker, gate=gate)

    await checker.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await crawl.crawler.run([f"{server.url}/public"])

    assert server.targets == []


async def test_each_request_has_its_turn_redirects_too(site: Site, kind: str) -> None:
    page, away = Timed(), Timed(redirect("/public"))
    robots = Timed(Reply(body=RULES.encode()))
    server = site(robots, public=page, other=page, away=away)
    urls = [f"{server.url}/{name}" for name in ("public", "away", "private", "other")]

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=DELAY) as gate,
    ):
        crawl = await runs.crawl_of(kind, checker, gate=gate)
        stats = await crawl.crawler.run(urls)

        assert (gate.stats.turns, gate.stats.under_way) == (4, 0)
    times = sorted(robots.times + page.times + away.times)
    gaps = [after - before for before, after in pairwise(times)]
    assert [gap for gap in gaps if gap < DELAY] == []
    assert len(gaps) == 4
    assert crawl.skips == [(f"{server.url}/private", "robots_txt")]
    assert (stats.requests_failed, stats.retry_histogram) == (0, [3])


async def test_request_that_fails_ends_its_turn_as_an_incident(
    site: Site, kind: str
) -> None:
    server = site(public=Raw(b"rubbish\r\n\r\n"))

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of(kind, checker, gate=gate, max_request_retries=0)
        await crawl.crawler.run([f"{server.url}/public"])

        assert crawl.failed == [f"{server.url}/public"]
        assert (gate.stats.incidents, gate.stats.under_way) == (1, 0)


async def test_host_that_asks_for_less_is_left_alone(site: Site, kind: str) -> None:
    # A browser shows an error of its own in place of an empty one.
    busy = Reply(status=503, headers={"Retry-After": "99"}, body=b"busy")
    server = site(public=busy)

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        before = gate.ready_at(server.url)
        crawl = await runs.crawl_of(kind, checker, gate=gate, max_request_retries=0)
        await crawl.crawler.run([f"{server.url}/public"])

        assert gate.ready_at(server.url) > before + 90
        assert gate.stats.under_way == 0


async def test_late_request_goes_back_without_a_retry_and_lets_others_pass(
    site: Site,
) -> None:
    server, other = site(), site()
    late = f"{server.url}/public"
    prompt = f"{other.url.replace('127.0.0.1', 'localhost')}/public"
    prompt_event = anyio.Event()

    async def handle(_context: object) -> None:
        prompt_event.set()

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
        anyio.create_task_group() as tasks,
    ):
        crawl = await runs.crawl_of(
            "impit",
            checker,
            gate=gate,
            handle=handle,
            request_manager=await runs.throttled_queue("127.0.0.1"),
            concurrency_settings=runs.ONE_AT_ONCE,
        )
        async with gate.turn(f"{server.url}/other"):
            tasks.start_soon(crawl.crawler.run, [late, prompt])
            await prompt_event.wait()

    assert crawl.pages == [prompt, late]
    assert crawl.failed == []
    assert crawl.crawler.statistics.calculate().retry_histogram == [2]


async def test_link_that_a_page_adds_is_skipped(site: Site) -> None:
    links = b"<a href='/private'>no</a><a href='/other'>yes</a>"
    server = site(public=Reply(headers=PAGE.headers, body=links))

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(
            "httpx", checker, handle=lambda context: context.enqueue_links()
        )
        await crawl.crawler.run([f"{server.url}/public"])

    assert crawl.skips == [(f"{server.url}/private", "robots_txt")]
    assert crawl.pages == [f"{server.url}/public", f"{server.url}/other"]


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_request_that_a_handler_sends_raises_the_refusal(
    site: Site, kind: str
) -> None:
    server = site(away=redirect("/private"))
    refusals = []

    async def handle(context: Any) -> None:  # noqa: ANN401 (of crawlee)
        await context.send_request(f"{server.url}/other")
        with pytest.raises(DisallowedError) as refusal:
            await context.send_request(f"{server.url}/away")
        refusals.append(refusal.value.verdict.url)

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker, handle=handle)
        await crawl.crawler.run([f"{server.url}/public"])

    assert refusals == [f"{server.url}/private"]
    assert server.targets == ["/robots.txt", "/public", "/other", "/away"]


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_body_that_is_streamed_belongs_to_the_turn(site: Site, kind: str) -> None:
    server = site(away=redirect("/public"))
    under_way = []

    async def handle(context: Any) -> None:  # noqa: ANN401 (of crawlee)
        under_way.append(gate.stats.under_way)
        assert [piece async for piece in context.http_response.read_stream()]

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of(
            f"{kind}, streams", checker, gate=gate, handle=handle
        )
        await crawl.crawler.run([f"{server.url}/away"])

        assert under_way == [1]
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_client_that_is_used_outside_of_requests_has_turns(
    site: Site, kind: str
) -> None:
    """The loader of a sitemap may share it."""
    server = site()

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of(kind, checker, gate=gate)
        client = crawl.crawler._http_client
        async with client, client.stream(f"{server.url}/public") as response:
            assert gate.stats.under_way == 1
            assert [piece async for piece in response.read_stream()]

        async with gate.turn(f"{server.url}/other", patience=5):
            assert gate.stats.under_way == 1


async def test_turn_of_a_page_does_not_serve_another_request(site: Site) -> None:
    """A hook before the navigation may send requests, too."""
    server, other = site(), site()

    async def send(context: Any) -> None:  # noqa: ANN401 (of crawlee)
        await context.send_request(f"{other.url}/public")

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of("impit", checker, gate=gate)
        crawl.crawler.pre_navigation_hook(send)
        await crawl.crawler.run([f"{server.url}/public"])

        assert (gate.stats.turns, gate.stats.under_way) == (3, 0)
    assert crawl.pages == [f"{server.url}/public"]
    assert other.targets == ["/robots.txt", "/public"]


async def test_only_one_of_two_concurrent_requests_uses_the_turn_of_a_page(
    site: Site,
) -> None:
    server, clock = site(), ManualClock()

    async def send_two(context: Any) -> None:  # noqa: ANN401 (of crawlee)
        clock.advance(2 * 86_400)  # so that each check has to wait
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(context.send_request, f"{server.url}/public")

    async with (
        RobotsChecker(user_agent=AGENT, clock=clock) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of("impit", checker, gate=gate)
        crawl.crawler.pre_navigation_hook(send_two)
        await crawl.crawler.run([f"{server.url}/public"])

        assert (gate.stats.turns, gate.stats.under_way) == (3, 0)
    assert crawl.pages == [f"{server.url}/public"]


async def test_turn_of_a_page_that_is_never_sent_ends(site: Site) -> None:
    server = site()

    async def fail(_context: object) -> None:
        raise ValueError("a mistake of the user")

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of("impit", checker, gate=gate, max_request_retries=0)
        crawl.crawler.pre_navigation_hook(fail)
        await crawl.crawler.run([f"{server.url}/public"])

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
        assert gate.stats.incidents == 0


@NEEDS_CHROMIUM
async def test_other_browsers_skip_a_redirect_after_it_was_sent(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Chromium plays one of them: its hops are not asked about."""

    async def is_of_another_browser(*_: object) -> bool:
        return False

    monkeypatch.setattr(integration, "check_navigations", is_of_another_browser)
    server = site(away=redirect("/private"), to=redirect("/public"))
    away = f"{server.url}/away"

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of("chromium", checker, gate=gate)
        await crawl.crawler.run([away, f"{server.url}/to"])

        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)
    assert crawl.pages == [f"{server.url}/public"]
    assert crawl.skips == [(away, "robots_txt")]
    assert "/private" in server.targets


@NEEDS_CHROMIUM
async def test_page_that_a_script_leaves_for_a_disallowed_one_is_not_left(
    site: Site,
) -> None:
    script = b"<script>location = '/private'</script>"
    server = site(public=Reply(headers=PAGE.headers, body=script))

    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of("chromium", checker)
        await crawl.crawler.run([f"{server.url}/public"])

    assert "/private" not in server.targets


@NEEDS_CHROMIUM
async def test_turn_that_comes_when_the_crawler_has_left_the_page_ends(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = site()
    kept = []

    async def keep(_page: object, may_send: Any) -> bool:  # noqa: ANN401 (a function)
        kept.append(may_send)
        return await may_send(f"{server.url}/public") is True

    monkeypatch.setattr(integration, "check_navigations", keep)

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.crawl_of("chromium", checker, gate=gate)
        await crawl.crawler.run([f"{server.url}/public"])
        await kept[0](f"{server.url}/other")

        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


SEAMS = {
    "BasicCrawler._handle_skipped_request": "self, request, reason, need_mark",
    "BasicCrawler._is_allowed_based_on_robots_txt_file": "self, url",
    "BasicCrawler._run_request_handler": "self, context",
    "HttpxHttpClient._get_client": "self, proxy_url",
    "ImpitHttpClient._get_client": "self, proxy_url",
}


@pytest.mark.parametrize(("name", "parameters"), SEAMS.items(), ids=SEAMS)
def test_what_is_private_in_crawlee_is_still_there(name: str, parameters: str) -> None:
    owner, _, method = name.partition(".")

    signature = inspect.signature(getattr(runs.CLASSES[owner], method))

    assert ", ".join(signature.parameters) == parameters


async def test_crawlee_that_lacks_a_method_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Robots.txt would count for nothing, and nobody would know."""
    monkeypatch.delattr(
        runs.CLASSES["BasicCrawler"], "_is_allowed_based_on_robots_txt_file"
    )
    async with RobotsChecker(user_agent=AGENT) as checker:
        with pytest.raises(RuntimeError, match=r"crawlee>=1\.11,<1\.12, got"):
            await runs.crawl_of("impit", checker)


@pytest.mark.parametrize("name", ["BasicCrawler", "CurlCrawler"])
async def test_crawler_whose_hops_nobody_sees_is_refused(name: str) -> None:
    async with RobotsChecker(user_agent=AGENT) as checker:
        with pytest.raises(TypeError, match="expected an "):
            integration.obey_robots(runs.CLASSES[name](), checker, AGENT)


async def test_crawlee_must_not_look_at_robots_txt_as_well() -> None:
    async with RobotsChecker(user_agent=AGENT) as checker:
        with pytest.raises(ValueError, match="respect_robots_txt_file"):
            await runs.crawl_of("impit", checker, respect_robots_txt_file=True)


async def test_crawler_that_obeys_already_is_refused(kind: str) -> None:
    """With a gate, its first page waited for itself, and that ended the crawl."""
    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        with pytest.raises(ValueError, match=r"got .*Crawler.* already obeys "):
            integration.obey_robots(crawl.crawler, checker, AGENT)


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_client_of_another_crawler_that_obeys_is_refused(kind: str) -> None:
    async with RobotsChecker(user_agent=AGENT) as checker:
        crawl = await runs.crawl_of(kind, checker)
        other = type(crawl.crawler)(http_client=crawl.crawler._http_client)
        with pytest.raises(ValueError, match=r"got .*HttpClient.* already obeys "):
            integration.obey_robots(other, checker, AGENT)


async def test_what_is_not_a_checker_is_refused() -> None:
    with pytest.raises(TypeError, match=r"expected a robotsgate\.RobotsChecker"):
        await runs.crawl_of("impit", None)
