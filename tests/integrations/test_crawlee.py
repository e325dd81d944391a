"""Real crawlee crawlers and servers: what is skipped, and when requests are sent."""

from __future__ import annotations

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
from tests.integrations.chromium import NEEDS_CHROMIUM, page, speculation
from tests.servers.answers import Raw, Reply, Routes, redirect
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.servers.loopback import Answer, Connection, LoopbackServer
    from tests.servers.loopback import Request as SentRequest

    Site = Callable[..., LoopbackServer]

Request = pytest.importorskip("crawlee").Request
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
    """crawlee supports only asyncio."""
    return "asyncio"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@pytest.fixture
def site(serve: Site) -> Site:
    """Starts an origin with pages and a robots.txt."""

    def start(robots: Answer | None = None, **pages: Answer) -> LoopbackServer:
        named = {"public": PAGE, "other": PAGE, "private": PAGE} | pages
        answers = {f"/{name}": answer for name, answer in named.items()}
        rules = Reply(body=RULES.encode())
        return serve(Routes({**answers, "/robots.txt": robots or rules}))

    return start


@pytest.fixture
async def checker() -> AsyncIterator[RobotsChecker]:
    async with RobotsChecker(user_agent=AGENT) as checker:
        yield checker


@pytest.fixture
async def gate(checker: RobotsChecker) -> AsyncIterator[PolitenessGate]:
    async with PolitenessGate(checker, AGENT, default_delay=0) as gate:
        yield gate


class Timed:
    """A page that records when it is about to answer, in seconds.

    Once it has answered, the turn may be over.
    """

    def __init__(self, answer: Answer = PAGE) -> None:
        self._answer = answer
        self.times: list[float] = []

    def __call__(self, request: SentRequest, connection: Connection) -> None:
        self.times.append(CLOCK.monotonic())
        self._answer(request, connection)


async def test_disallowed_pages_and_redirects_are_skipped(
    site: Site, kind: str, checker: RobotsChecker
) -> None:
    other, third = site(), site()
    server = site(away=redirect(f"{other.url}/private"))
    public, private, away = (
        f"{server.url}/{name}" for name in ("public", "private", "away")
    )
    robots = f"{third.url}/robots.txt"  # itself needs no check

    crawl = await runs.new_crawl(kind, checker)
    stats = await crawl.crawler.run([public, private, away, robots])

    assert sorted(crawl.pages) == sorted([public, robots])
    assert sorted(crawl.skips) == [(away, "robots_txt"), (private, "robots_txt")]
    assert crawl.skipped == {DISALLOWED: 2}
    assert sorted(server.targets) == ["/away", "/public", "/robots.txt"]
    assert other.targets == ["/robots.txt"]
    assert third.targets[0] == "/robots.txt"  # a browser also wants an icon
    assert (stats.requests_failed, sum(stats.retry_histogram[1:])) == (0, 0)


@pytest.mark.parametrize("kind", ["impit", "httpx"])  # browsers allow no such header
async def test_page_disallowed_by_the_host_in_its_host_header_is_skipped(
    site: Site, kind: str, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    server, other = site(Reply()), site()
    headers = {"Host": f"127.0.0.1:{other.port}"}
    urls = [f"{server.url}/{page}" for page in ("private", "public")]

    crawl = await runs.new_crawl(kind, checker, gate=gate)
    await crawl.crawler.run([Request.from_url(url, headers=headers) for url in urls])

    assert crawl.pages == urls[1:]
    assert crawl.skips == [(urls[0], "robots_txt")]
    assert server.targets == ["/robots.txt", "/public"]
    assert gate.stats.under_way == 0


@pytest.mark.parametrize(
    "location",
    ["/x\\..\\private", "/pri\tvate", "/%2e/private", "http://1.2.3.4.5/"],
)
async def test_oddly_written_redirect_is_not_followed(
    site: Site, kind: str, location: str, checker: RobotsChecker
) -> None:
    """For three of them, impit and browsers would request /private."""
    server = site(away=redirect(location))

    crawl = await runs.new_crawl(kind, checker, max_request_retries=0)
    await crawl.crawler.run([f"{server.url}/away"])

    assert crawl.pages == []
    assert server.targets == ["/robots.txt", "/away"]
    if location.startswith("http:") and kind != "chromium":
        assert (crawl.skipped, crawl.failed) == ({None: 1}, [])


@pytest.mark.parametrize("is_gated", [False, True])
async def test_closed_checker_ends_the_crawl(
    site: Site, kind: str, *, is_gated: bool
) -> None:
    server = site()
    checker = RobotsChecker(user_agent=AGENT)
    gate = PolitenessGate(checker, AGENT) if is_gated else None
    crawl = await runs.new_crawl(kind, checker, gate=gate)

    await checker.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await crawl.crawler.run([f"{server.url}/public"])

    assert server.targets == []


async def test_each_request_has_a_turn_including_redirects(
    site: Site, kind: str
) -> None:
    page, away = Timed(), Timed(redirect("/public"))
    robots = Timed(Reply(body=RULES.encode()))
    server = site(robots, public=page, other=page, away=away)
    urls = [f"{server.url}/{name}" for name in ("public", "away", "private", "other")]

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        PolitenessGate(checker, AGENT, default_delay=DELAY) as gate,
    ):
        crawl = await runs.new_crawl(kind, checker, gate=gate)
        stats = await crawl.crawler.run(urls)

        assert (gate.stats.turns, gate.stats.under_way) == (4, 0)
    times = sorted(robots.times + page.times + away.times)
    gaps = [after - before for before, after in pairwise(times)]
    assert [gap for gap in gaps if gap < DELAY] == []
    assert len(gaps) == 4
    assert crawl.skips == [(f"{server.url}/private", "robots_txt")]
    assert (stats.requests_failed, stats.retry_histogram) == (0, [3])


@cases("answer seconds", {
    "failure": (Raw(b"rubbish\r\n\r\n"), 50),
    # A browser replaces an empty error page with its own.
    "503": (Reply(status=503, headers={"Retry-After": "99"}, body=b"busy"), 90),
})  # fmt: skip
async def test_turn_ends_with_a_block_after_a(
    *,
    site: Site,
    kind: str,
    checker: RobotsChecker,
    gate: PolitenessGate,
    answer: Answer,
    seconds: float,
) -> None:
    server = site(public=answer)

    before = gate.ready_at(server.url)
    crawl = await runs.new_crawl(kind, checker, gate=gate, max_request_retries=0)
    await crawl.crawler.run([f"{server.url}/public"])

    assert gate.ready_at(server.url) > before + seconds
    assert (gate.stats.incidents, gate.stats.under_way) == (1, 0)


async def test_request_awaiting_its_turn_is_requeued_without_a_retry(
    site: Site, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    server, other = site(), site()
    late = f"{server.url}/public"
    prompt = f"{other.url.replace('127.0.0.1', 'localhost')}/public"
    prompt_event = anyio.Event()

    async def handle(_context: object) -> None:
        prompt_event.set()

    async with anyio.create_task_group() as tasks:
        crawl = await runs.new_crawl(
            "impit",
            checker,
            gate=gate,
            handle=handle,
            request_manager=await runs.throttled_queue("127.0.0.1"),
            concurrency_settings=runs.ONE_AT_A_TIME,
        )
        async with gate.turn(f"{server.url}/other"):
            tasks.start_soon(crawl.crawler.run, [late, prompt])
            await prompt_event.wait()

    assert crawl.pages == [prompt, late]
    assert crawl.failed == []
    assert crawl.crawler.statistics.calculate().retry_histogram == [2]


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_refused_request_sent_by_a_handler_raises(
    site: Site, kind: str, checker: RobotsChecker
) -> None:
    server = site(away=redirect("/private"))
    refusals = []

    async def handle(context: Any) -> None:  # noqa: ANN401 (crawlee's)
        await context.send_request(f"{server.url}/other")
        with pytest.raises(DisallowedError) as refusal:
            await context.send_request(f"{server.url}/away")
        refusals.append(refusal.value.verdict.url)

    crawl = await runs.new_crawl(kind, checker, handle=handle)
    await crawl.crawler.run([f"{server.url}/public"])

    assert refusals == [f"{server.url}/private"]
    assert server.targets == ["/robots.txt", "/public", "/other", "/away"]


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_turn_lasts_while_the_body_is_streamed(
    site: Site, kind: str, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    server = site(away=redirect("/public"))
    under_way = []

    async def handle(context: Any) -> None:  # noqa: ANN401 (crawlee's)
        under_way.append(gate.stats.under_way)
        assert [piece async for piece in context.http_response.read_stream()]

    crawl = await runs.new_crawl(f"{kind}, streams", checker, gate=gate, handle=handle)
    await crawl.crawler.run([f"{server.url}/away"])

    assert under_way == [1]
    assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


@pytest.mark.parametrize("kind", ["impit", "httpx"])
async def test_client_used_outside_a_request_has_turns(
    site: Site, kind: str, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    """A sitemap loader may share the client."""
    server = site()

    crawl = await runs.new_crawl(kind, checker, gate=gate)
    client = crawl.crawler._http_client
    async with client, client.stream(f"{server.url}/public") as response:
        assert gate.stats.under_way == 1
        assert [piece async for piece in response.read_stream()]

    async with gate.turn(f"{server.url}/other", patience=5):
        assert gate.stats.under_way == 1


async def test_page_turn_is_not_used_for_another_request(
    site: Site, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    """A pre-navigation hook may send requests as well."""
    server, other = site(), site()

    async def send(context: Any) -> None:  # noqa: ANN401 (crawlee's)
        await context.send_request(f"{other.url}/public")

    crawl = await runs.new_crawl("impit", checker, gate=gate)
    crawl.crawler.pre_navigation_hook(send)
    await crawl.crawler.run([f"{server.url}/public"])

    assert (gate.stats.turns, gate.stats.under_way) == (3, 0)
    assert crawl.pages == [f"{server.url}/public"]
    assert other.targets == ["/robots.txt", "/public"]


async def test_only_one_of_two_concurrent_requests_uses_the_page_turn(
    site: Site,
) -> None:
    server, clock = site(), ManualClock()

    async def send_two(context: Any) -> None:  # noqa: ANN401 (crawlee's)
        clock.advance(2 * 86_400)  # so that each check must fetch robots.txt again
        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(context.send_request, f"{server.url}/public")

    async with (
        RobotsChecker(user_agent=AGENT, clock=clock) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
    ):
        crawl = await runs.new_crawl("impit", checker, gate=gate)
        crawl.crawler.pre_navigation_hook(send_two)
        await crawl.crawler.run([f"{server.url}/public"])

        assert (gate.stats.turns, gate.stats.under_way) == (3, 0)
    assert crawl.pages == [f"{server.url}/public"]


async def test_turn_ends_if_its_page_is_never_requested(
    site: Site, checker: RobotsChecker, gate: PolitenessGate
) -> None:
    server = site()

    async def fail(_context: object) -> None:
        raise ValueError("a bug in user code")

    crawl = await runs.new_crawl("impit", checker, gate=gate, max_request_retries=0)
    crawl.crawler.pre_navigation_hook(fail)
    await crawl.crawler.run([f"{server.url}/public"])

    assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
    assert gate.stats.incidents == 0


@NEEDS_CHROMIUM
async def test_other_browsers_skip_the_page_after_a_disallowed_redirect(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    checker: RobotsChecker,
    gate: PolitenessGate,
) -> None:
    """Chromium stands in for them; its hops are not checked."""

    async def cannot_check(*_: object) -> None:
        return None

    monkeypatch.setattr(integration, "check_navigations", cannot_check)
    server = site(away=redirect("/private"), to=redirect("/public"))
    away = f"{server.url}/away"

    crawl = await runs.new_crawl("chromium", checker, gate=gate)
    await crawl.crawler.run([away, f"{server.url}/to"])

    assert (gate.stats.turns, gate.stats.under_way) == (2, 0)
    assert crawl.pages == [f"{server.url}/public"]
    assert crawl.skips == [(away, "robots_txt")]
    assert "/private" in server.targets


@NEEDS_CHROMIUM
async def test_script_cannot_navigate_to_a_disallowed_page(
    site: Site, checker: RobotsChecker
) -> None:
    script = b"<script>location = '/private'</script>"
    server = site(public=Reply(headers=PAGE.headers, body=script))

    crawl = await runs.new_crawl("chromium", checker)
    await crawl.crawler.run([f"{server.url}/public"])

    assert "/private" not in server.targets


@NEEDS_CHROMIUM
async def test_disallowed_page_that_was_requested_in_advance_is_skipped(
    site: Site, checker: RobotsChecker
) -> None:
    answers = speculation("/private", PAGE)
    server = site(**{path.removeprefix("/"): answers[path] for path in answers})
    url = f"{server.url}/speculation"

    crawl = await runs.new_crawl("chromium", checker)
    await crawl.crawler.run([url])

    assert crawl.pages == []
    assert crawl.skips == [(url, "robots_txt")]
    assert server.targets.count("/private") == 1


@NEEDS_CHROMIUM
async def test_turn_is_ended_if_granted_after_the_crawler_left_the_page(
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    checker: RobotsChecker,
    gate: PolitenessGate,
) -> None:
    server = site()
    callbacks = []

    async def record(_page: object, may_send: Any) -> list[str]:  # noqa: ANN401 (a callback)
        callbacks.append(may_send)
        assert await may_send(f"{server.url}/public")
        return []

    monkeypatch.setattr(integration, "check_navigations", record)

    crawl = await runs.new_crawl("chromium", checker, gate=gate)
    await crawl.crawler.run([f"{server.url}/public"])
    await callbacks[0](f"{server.url}/other")

    assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


async def test_crawler_that_cannot_obey_is_refused(
    monkeypatch: pytest.MonkeyPatch, checker: RobotsChecker
) -> None:
    """Otherwise, robots.txt would be silently ignored."""
    with pytest.raises(ValueError, match="respect_robots_txt_file"):
        await runs.new_crawl("impit", checker, respect_robots_txt_file=True)
    monkeypatch.delattr(
        runs.CLASSES["BasicCrawler"], "_is_allowed_based_on_robots_txt_file"
    )
    with pytest.raises(RuntimeError, match=r"crawlee>=1\.10\.3,<1\.12, got"):
        await runs.new_crawl("impit", checker)


@pytest.mark.parametrize("name", ["BasicCrawler", "CurlCrawler"])
async def test_crawler_whose_hops_cannot_be_checked_is_refused(
    name: str, checker: RobotsChecker
) -> None:
    with pytest.raises(TypeError, match="expected an "):
        integration.obey_robots(runs.CLASSES[name](), checker, AGENT)


async def test_crawler_or_client_that_already_obeys_is_refused(
    kind: str, checker: RobotsChecker
) -> None:
    """With a gate, its first page used to wait for itself, which ended the crawl."""
    crawler = (await runs.new_crawl(kind, checker)).crawler
    others = [crawler]
    if kind != "chromium":
        others.append(type(crawler)(http_client=crawler._http_client))
    for other in others:
        with pytest.raises(ValueError, match=r"got .*(Crawler|Client).* already obeys"):
            integration.obey_robots(other, checker, AGENT)
