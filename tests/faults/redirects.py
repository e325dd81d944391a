"""Redirects, valid and invalid."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults import certificates
from tests.faults.fault import RULES
from tests.faults.rows import (
    answering,
    head,
    raw,
    reply,
    rules_apply,
    unavailable,
    unreachable,
)
from tests.servers.answers import Raw, Reply, Routes, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage
    from tests.servers.loopback import Request

_RULES = Reply(body=RULES)


def _to(location: str, target: str) -> Callable[[Stage], str]:
    """A redirect to `location` on the same server, which serves rules at `target`."""
    return answering(Routes({"/robots.txt": redirect(location), target: _RULES}))


def _raw_location(location: bytes, target: str) -> Callable[[Stage], str]:
    data = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b\r\n\r\n" % location
    return answering(
        Routes({"/robots.txt": Raw(data, Connection.hang), target: _RULES})
    )


def _to_two_locations(*locations: str) -> Callable[[Stage], str]:
    lines = [f"Location: {location}" for location in locations]
    answer = Raw(head("302 Found", *lines, "Content-Length: 0"), Connection.hang)
    targets = dict.fromkeys(locations, _RULES)
    return answering(Routes({"/robots.txt": answer, **targets}))


def _to_another_server(location: str) -> Callable[[Stage], str]:
    """A redirect to `location` on a second server, whose port replaces `{port}`."""

    def arrange(stage: Stage) -> str:
        second = stage.serve(Routes({"/other": _RULES}))
        return stage.serve(redirect(location.format(port=second.port))).url

    return arrange


def _across_hosts(hosts: int) -> Callable[[Stage], str]:
    """A chain of `hosts` hosts; each redirects to the next, the last serves rules."""

    def arrange(stage: Stage) -> str:
        url = stage.serve(_RULES, host=f"127.0.0.{hosts}").url
        for number in range(hosts - 1, 0, -1):
            answer = redirect(f"{url}/robots.txt")
            url = stage.serve(answer, host=f"127.0.0.{number}").url
        return url

    return arrange


def _to_tls_and_back(stage: Stage) -> str:
    last = stage.serve(_RULES)
    middle = stage.serve(
        redirect(f"{last.url}/robots.txt"), ssl_context=certificates.valid()
    )
    return stage.serve(redirect(f"{middle.url}/robots.txt")).url


def _to_itself_with_a_cookie(request: Request, connection: Connection) -> None:
    """Serve the rules only to a client that sends the cookie back."""
    headers = {"Location": "/robots.txt", "Set-Cookie": "been=here"}
    answer = Reply(status=302, headers=headers)
    (_RULES if "cookie" in request.headers else answer)(request, connection)


def _between_two(stage: Stage) -> str:
    answers = {"/robots.txt": redirect("/a"), "/a": redirect("/robots.txt")}
    return stage.serve(Routes(answers)).url


def _to_ever_longer_paths(stage: Stage) -> str:
    """Redirects that never lead to the same URL twice."""
    answers = {"/robots.txt": redirect("/a")}
    answers |= {f"/{'a' * n}": redirect(f"/{'a' * (n + 1)}") for n in range(1, 9)}
    return stage.serve(Routes(answers)).url


REDIRECTS = (
    rules_apply("redirects to an absolute path, `/other`", _to("/other", "/other"),
        requested=("/robots.txt", "/other")),
    rules_apply("redirects to a relative path, `a/../other`",
        _to("a/../other", "/other"), requested=("/robots.txt", "/other")),
    rules_apply("redirects to only a query, `?other`",
        _to("?other", "/robots.txt?other"),
        requested=("/robots.txt", "/robots.txt?other")),
    rules_apply("redirects to a host without a scheme, `//127.0.0.1/other`",
        _to_another_server("//127.0.0.1:{port}/other"),
        requested=("/other", "/robots.txt")),
    rules_apply("redirects with backslashes, `\\\\127.0.0.1\\other`",
        _to_another_server("\\\\127.0.0.1:{port}\\other"),
        requested=("/other", "/robots.txt")),
    rules_apply("redirects with a fragment, `/other#part`, which is not sent",
        _to("/other#part", "/other"), requested=("/robots.txt", "/other")),
    rules_apply("redirects with a name and a password, which are not sent",
        _to_another_server("http://name:password@127.0.0.1:{port}/other"),
        requested=("/other", "/robots.txt")),
    unreachable("redirects to a `Location` of 20 kB", _to("/" + "x" * 20_000, "/"),
        error="20001"),
    rules_apply("redirects to a `Location` with UTF-8 in it, `/é`",
        _raw_location("/é".encode(), "/%C3%A9"), requested=("/robots.txt", "/%C3%A9")),
    rules_apply("redirects to a `Location` with a space in it, `/a b`",
        _to("/a b", "/a%20b"), requested=("/robots.txt", "/a%20b")),
    unreachable("redirects to a `Location` with a control character in it",
        _raw_location(b"/a\x01b", "/"), error="control characters"),
    unreachable("redirects without a `Location`", reply(status=302), error="Location"),
    unreachable("returns 304 with a `Location`, which is not followed",
        raw(head("304 Not Modified", "Location: /a"), Connection.hang),
        requested=("/robots.txt",)),
    unreachable("sends two `Location` headers that differ",
        _to_two_locations("/a", "/b"), error="2 different Location headers"),
    rules_apply("sends the same `Location` header twice",
        _to_two_locations("/a", "/a")),
    unreachable("redirects to `ftp:`", _to("ftp://127.0.0.1/a", "/"), error="'ftp'"),
    unreachable("redirects to `file:`", _to("file:///etc/passwd", "/"), error=""),
    unreachable("redirects to a URL without a host", _to("http://", "/"), error=""),
    unreachable("redirects to an impossible port, `:99999`",
        _to("http://127.0.0.1:99999/", "/"), error=""),
    unavailable("redirects to itself", _to("/robots.txt", "/"), error="loop"),
    unavailable("redirects to itself with a cookie, and serves the rules for it",
        answering(_to_itself_with_a_cookie), error="loop",
        requested=("/robots.txt",)),
    unavailable("redirects back and forth", _between_two, error="loop"),
    unavailable("redirects to a new path each time", _to_ever_longer_paths,
        error="more than 5 redirects",
        requested=("/robots.txt", "/a", "/aa", "/aaa", "/aaaa", "/aaaaa")),
    unavailable("redirects across seven hosts, six times", _across_hosts(7),
        error="more than 5 redirects"),
    rules_apply("redirects from http to https and back to http", _to_tls_and_back),
)  # fmt: skip
