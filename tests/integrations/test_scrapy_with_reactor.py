"""Our middleware as most run it: Scrapy with its reactor, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integrations.crawls import Plan, crawl_elsewhere
from tests.servers.answers import Raw, Reply, endless, redirect
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]


def head(*lines: str) -> bytes:
    return "\r\n".join([*lines, "", ""]).encode()


def test_failures_of_its_downloader_are_told_apart(
    serve: Serve, server_tls: ssl.SSLContext
) -> None:
    half = Raw(head("HTTP/1.1 200 OK", "Content-Length: 99") + b"half")
    without_end = Raw(head("HTTP/1.1 200 OK"), endless(b"#" * 99))
    no_tls = serve(Raw(b"no TLS here\r\n\r\n"), reads_requests=False)
    expected = {
        serve(Reply(body=b"file")).url: "200, 4 bytes",
        serve(Reply(body=b"file"), ssl_context=server_tls).url: "200, 4 bytes",
        serve(Reply(status=404, body=b"no")).url: "404, 2 bytes",
        serve(redirect("/elsewhere")).url: "302, 0 bytes",
        serve(without_end).url: "200, 1000 bytes",
        serve(half).url: "protocol",
        serve(Raw(b"rubbish\r\n\r\n")).url: "protocol",
        serve(Raw(b"")).url: "transfer",
        serve(Raw(b"", Connection.hang)).url: "timeout",
        no_tls.url.replace("http:", "https:"): "tls",
        f"http://127.0.0.1:{dead_port()}": "connect",
        "http://nobody.invalid": "name-resolution",
    }

    report = crawl_elsewhere(Plan(fetches=[f"{url}/robots.txt" for url in expected]))

    assert dict(zip(expected, report.fetched, strict=True)) == expected
