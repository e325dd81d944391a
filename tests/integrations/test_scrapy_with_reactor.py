"""Our middleware in its usual setup: a separate process, with Scrapy's reactor."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from robotsgate import SystemClock
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.integrations.crawls import Plan, crawl_in_subprocess
from tests.servers.answers import Late, Raw, Reply, Routes, endless, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    import ssl

    from tests.servers.loopback import Answer, Request, Serve


RULES = b"User-agent: *\nDisallow: /private\nCrawl-delay: 0.5\n"


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def test_crawl_delay_applies_to_each_host_despite_autothrottle(
    serve: Serve,
) -> None:
    """And all disallowed pages are refused, although many wait for the slow file."""
    clock = SystemClock()
    times: dict[str, list[float]] = {}

    def timed(answer: Answer) -> Answer:
        def timed_answer(request: Request, connection: Connection) -> None:
            times.setdefault(request.headers["host"], []).append(clock.monotonic())
            answer(request, connection)

        return timed_answer

    pages = [f"/{number}" for number in range(5)]
    answers = dict.fromkeys(pages, timed(Reply(body=b"page")))
    answers["/robots.txt"] = Late(0.2, timed(Reply(body=RULES)))
    servers = [serve(Routes(answers)) for _ in range(2)]
    origins = [servers[0].url, servers[1].url.replace("127.0.0.1", "localhost")]
    paths = [*["/private"] * 8, *pages]

    report = crawl_in_subprocess(
        Plan(
            urls=[origin + path for path in paths for origin in origins],
            settings={
                "AUTOTHROTTLE_ENABLED": True,
                "AUTOTHROTTLE_START_DELAY": 0.01,
                "AUTOTHROTTLE_MAX_DELAY": 0.01,
                "CONCURRENT_REQUESTS": 32,
            },
        )
    )

    for server in servers:
        assert sorted(server.targets) == [*pages, "/robots.txt"]
    assert len(report.pages) == 2 * len(pages)
    assert report.stats["robotstxt/forbidden"] == 2 * 8
    for robots_txt, *_, last in times.values():
        # The first page is sent after it, but may be recorded late.
        assert last - robots_txt >= 4 * 0.5


def test_example_prints_what_is_fetched_and_what_is_not() -> None:
    example = Path(__file__).parents[2] / "examples/scrapy_spider.py"

    output = subprocess.run(  # noqa: S603 (our own example)
        [sys.executable, "-W", "error", example],
        timeout=60,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout

    assert output.count("got http://127.0.0.1:") == 2
    assert output.count("not fetched: disallowed by line 2 (Disallow: /diary,") == 1


def test_downloads_of_the_fetcher_are_bounded_and_not_redirected(
    serve: Serve, server_tls: ssl.SSLContext
) -> None:
    half, half_404 = (
        Raw(head(f"HTTP/1.1 {status} No", "Content-Length: 99") + b"half")
        for status in (200, 404)
    )
    without_end = Raw(head("HTTP/1.1 200 OK"), endless(b"#" * 99))
    expected = {
        serve(Reply(body=b"file"), ssl_context=server_tls).url: "200, 4 bytes",
        serve(redirect("/elsewhere")).url: "302, 0 bytes",
        serve(without_end).url: "200, 1000 bytes",
        serve(half).url: "protocol",
        serve(half_404).url: "404, 0 bytes",
        serve(Raw(b"", Connection.hang)).url: "timeout",
    }

    report = crawl_in_subprocess(
        Plan(
            fetches={
                f"{url}/robots.txt": 0.2 if result == "timeout" else PATIENCE_SECONDS
                for url, result in expected.items()
            }
        )
    )

    assert dict(zip(expected, report.fetched, strict=True)) == expected
