"""Clients on a network where every name and address leads to one raw server.

The server records each request's Host and target as received. `faults` reports those
that robots.txt disallows. Run as a program, this module crawls with a Twisted reactor,
which can be started only once per process.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote

import requests

from robotsgate import DisallowedError, sync
from robotsgate.integrations.hops import robots_get
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.integrations.url_forms import ALLOWED, ordinary_urls, url_forms
from tests.integrations.wraps import NO_TLS, WRAPS, Get, Setting
from tests.servers.answers import Reply, redirect
from tests.servers.loopback import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from tests.servers.loopback import Connection, Request

AGENT = "ExampleBot"

# Its path /7 redirects to the form with index 7.
_START = "start.test"
_OPEN = {ALLOWED, _START}
_RULES = b"User-agent: *\nDisallow: /private\n"

_TIMEOUT_SECONDS = 120
_FAST_SETTINGS = {
    "CONCURRENT_REQUESTS": 32,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 5,
    "RETRY_ENABLED": False,
}

_LOCATIONS = [form for form in url_forms() if "\n" not in form]
_DOTS = {"as given": "(?!)", "literal": r"\.\.?", "all": r"(\.|%2e){1,2}"}


class Tally(NamedTuple):
    """The outcomes of a client's requests.

    Attributes:
        counts: how many were "sent", "refused" by robots.txt, or ended in an "error".
        faults: disallowed requests that reached the wire.
        lost: ordinary URLs that were not requested.
    """

    counts: dict[str, int]
    faults: list[str]
    lost: list[str]


class Wire(NamedTuple):
    """The servers, one for each address family."""

    servers: tuple[LoopbackServer, ...]

    @property
    def requests(self) -> list[Request]:
        return [one for server in self.servers for one in server.requests]


def answer(request: Request, connection: Connection) -> None:
    """Answer with a robots.txt, a redirect to a form, or a page."""
    host = _host(request)
    if request.target == "/robots.txt":
        reply = Reply(body=b"" if host in _OPEN else _RULES)
    elif host == _START and request.target[1:].isdigit():
        location = _LOCATIONS[int(request.target[1:])]
        reply = redirect(location.encode().decode("latin-1"))
    else:
        reply = Reply(body=b"page")
    reply(request, connection)


@contextmanager
def wired() -> Iterator[Wire]:
    """Direct all of this process's connections to our servers."""
    with ExitStack() as stack:
        servers = {
            family: stack.enter_context(LoopbackServer(answer, host=host))
            for family, host in (
                (socket.AF_INET, "127.0.0.1"),
                (socket.AF_INET6, "::1"),
            )
        }

        def address_of(connection: socket.socket) -> tuple[str, int]:
            server = servers[connection.family]
            host = "127.0.0.1" if connection.family == socket.AF_INET else "::1"
            return host, server.port

        def look_up(host: object, port: object, *_: object, **__: object) -> object:
            is_ipv6 = ":" in (host.decode() if isinstance(host, bytes) else str(host))
            family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
            address = ("::1", port, 0, 0) if is_ipv6 else ("127.0.0.1", port)
            return [(family, socket.SOCK_STREAM, 6, "", address)]

        for name in ("connect", "connect_ex"):
            plain = getattr(socket.socket, name)
            stack.enter_context(
                patch.object(
                    socket.socket,
                    name,
                    lambda one, _, plain=plain: plain(one, address_of(one)),
                )
            )
        stack.enter_context(patch.object(socket, "getaddrinfo", look_up))
        stack.enter_context(patch.dict(os.environ))
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            del os.environ[name]
        by_name = patch.object(socket, "gethostbyname", lambda _: "127.0.0.1")
        stack.enter_context(by_name)
        yield Wire(tuple(servers.values()))


def _host(request: Request) -> str:
    host = request.headers.get("host", "").lower()
    host = re.sub(r"\.?(:80)?$", "", host)
    with suppress(OSError):  # numeric forms that resolvers accept
        host = socket.inet_ntoa(socket.inet_aton(host))
    with suppress(ValueError):
        host = f"[{ipaddress.IPv6Address(host.strip('[]'))}]"
    return host


def faults(requests: Sequence[Request]) -> Iterator[str]:
    """Yield a message for each of `requests` that must not have been sent."""
    fetched = {_host(one) for one in requests if one.target == "/robots.txt"}
    for request in requests:
        host, target = _host(request), request.target
        if host in _OPEN or target == "/robots.txt":
            continue
        if host not in fetched:
            yield f"{host} {target}: this host's robots.txt was never requested"
        elif any(one.startswith("/private") for one in _readings(target)):
            yield f"{host} {target}: a reading is disallowed"


def _readings(target: str) -> Iterator[str]:
    path = target.partition("?")[0]
    for slashed in (path, path.replace("\\", "/")):
        for dots in _DOTS.values():
            kept: list[str] = []
            for segment in slashed.split("/")[1:]:
                is_dots = re.fullmatch(dots, segment, re.IGNORECASE)
                if is_dots and len(unquote(segment)) > 1:
                    kept = kept[:-1]
                elif not is_dots:
                    kept.append(segment)
            yield "/" + unquote("/".join(kept))


@asynccontextmanager
async def _robots_get(_: Setting) -> AsyncIterator[Get]:
    """Not curl_cffi, whose connections we cannot direct to our servers."""
    with sync.RobotsChecker(user_agent=AGENT) as checker, requests.Session() as session:
        get = robots_get(checker, AGENT, partial(session.get, timeout=PATIENCE_SECONDS))

        async def send(url: str) -> int:
            status: int = (await asyncio.to_thread(get, url)).status_code
            return status

        yield Get(send=send, send_ignoring=send, checker=checker)


CLIENTS: dict[str, Callable[[Setting], AbstractAsyncContextManager[Get]]] = {
    "httpx": WRAPS["httpx hook on asyncio"].open,
    "httpx2": WRAPS["httpx2 hook on asyncio"].open,
    "aiohttp": WRAPS["aiohttp"].open,
    "robots_get": _robots_get,
    "requests": WRAPS["requests"].open,
}


def _links(step: int) -> tuple[list[str], list[str]]:
    """Every `step`th ordinary URL, and every `step`th of all, including redirects."""
    ordinary = ordinary_urls()[::step]
    starts = [f"http://{_START}/{n}" for n in range(0, len(_LOCATIONS), step)]
    return ordinary, [*ordinary, *url_forms()[::step], *starts]


async def tally(client: str, *, step: int = 1) -> Tally:
    """Count the outcomes of every `step`th form, as a link and as a Location."""
    counts: Counter[str] = Counter(sent=0, refused=0, error=0)
    lost: list[str] = []
    ordinary, links = _links(step)
    with wired() as wire:
        async with CLIENTS[client](Setting(tls=NO_TLS)) as get:
            for number, url in enumerate(links):
                try:
                    await get(url)
                except DisallowedError:
                    outcome = "refused"
                except Exception:  # noqa: BLE001 (of any client, about any URL)
                    outcome = "error"
                else:
                    outcome = "sent"
                counts[outcome] += 1
                if number < len(ordinary) and outcome != "sent":
                    lost.append(url)
        return Tally(dict(counts), list(faults(wire.requests)), lost)


def tally_scrapy(*, step: int = 1) -> Tally:
    """Like `tally`, for a spider in another process, with Scrapy's own reactor."""
    completed = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-m", __name__, str(step)],
        cwd=Path(__file__).parents[2],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    return Tally(*json.loads(completed.stdout))


def _crawl(step: int) -> Tally:
    """Tally a spider's crawl of the forms; call it only once per process."""
    with wired() as wire:
        # Imported late, because they keep references to what is patched.
        import scrapy  # noqa: PLC0415
        from scrapy import signals  # noqa: PLC0415
        from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415

        from tests.integrations.crawls import SETTINGS, CrawlSpider  # noqa: PLC0415

        counts: Counter[str] = Counter(sent=0, refused=0, error=0)
        ordinary, links = _links(step)
        pages, answered = [], set()
        for url in links:
            try:
                pages.append(scrapy.Request(url, dont_filter=True, meta={"url": url}))
            except ValueError:
                counts["error"] += 1

        def record(response: object, request: scrapy.Request) -> None:
            del response
            answered.add(request.meta.get("url"))

        process = AsyncCrawlerProcess({**SETTINGS, **_FAST_SETTINGS})
        crawler = process.create_crawler(CrawlSpider)
        listeners = {signals.response_received: record}
        process.crawl(crawler, requests=pages, listeners=listeners)
        process.start()
        spider = crawler.spider
        assert isinstance(spider, CrawlSpider)
        counts["sent"] = len(spider.report.pages)
        for error in spider.errors:
            is_refusal = isinstance(error.__cause__, DisallowedError)
            counts["refused" if is_refusal else "error"] += 1
        lost = [url for url in ordinary if url not in answered]
        return Tally(dict(counts), list(faults(wire.requests)), lost)


if __name__ == "__main__":
    json.dump(_crawl(int(sys.argv[1])), sys.stdout)
