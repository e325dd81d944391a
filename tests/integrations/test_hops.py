"""`robots_get`: what `test_behaviours.py` does not cover."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import curl_cffi
import pytest
import requests

from robotsgate import DisallowedError, InvalidURLError, RobotsChecker, sync
from robotsgate.integrations.hops import robots_get
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, ORIGIN, site_of
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.loopback import Answer, LoopbackServer, Serve


SECRETS = {
    "Authorization": "Bearer word",
    "cookie": "session=1",
    "Proxy-Authorization": "Basic word",
    "X-Trace": "7",
}


@pytest.fixture
def session() -> Iterator[curl_cffi.Session[Any]]:
    with curl_cffi.Session() as session:
        yield session


@pytest.fixture
def checker() -> Iterator[sync.RobotsChecker]:
    """A checker with a fake network, where every other host allows everything."""
    with sync.RobotsChecker(client=site_of()) as checker:
        yield checker


def sent_secrets(server: LoopbackServer) -> list[tuple[str, set[str]]]:
    """The target of each request, and which of the caller's headers it carried."""
    names = {name.lower() for name in SECRETS}
    return [(one.target, names & one.headers.keys()) for one in server.requests]


def test_credentials_are_dropped_once_a_redirect_leaves_the_origin(
    session: curl_cffi.Session[Any], checker: sync.RobotsChecker, serve: Serve
) -> None:
    answers: dict[str, Answer] = {"/start": redirect("/next"), "/back": Reply()}
    server = serve(Routes(answers))
    other = serve(Routes({"/other": redirect(f"{server.url}/back")}))
    answers["/next"] = redirect(f"{other.url}/other", status=307)
    get = robots_get(checker, AGENT, session.get)

    response = get(f"{server.url}/start", headers={**SECRETS, "Host": "h.test"})

    assert response.url == f"{server.url}/back"
    everything = {name.lower() for name in SECRETS}
    assert sent_secrets(server) == [
        ("/start", everything),
        ("/next", everything),
        ("/back", {"x-trace"}),
    ]
    assert sent_secrets(other) == [("/other", {"x-trace"})]
    assert [one.headers["host"] for one in (*server.requests, *other.requests)] == [
        "h.test",
        "h.test",
        f"127.0.0.1:{server.port}",
        f"127.0.0.1:{other.port}",
    ]


@pytest.mark.parametrize("wrap", ["robots_get", "RobotsAdapter"])
def test_double_slash_path_is_checked_as_old_requests_versions_send_it(
    wrap: str, serve: Serve
) -> None:
    server = serve(Routes({"/robots.txt": Reply(body=b"User-agent: *\nDisallow: /a")}))

    with sync.RobotsChecker(user_agent=AGENT) as checker, requests.Session() as session:
        session.trust_env = False
        get = robots_get(checker, AGENT, session.get)
        if wrap == "RobotsAdapter":
            session.mount("http://", RobotsAdapter(checker, AGENT))
            get = session.get
        with pytest.raises(DisallowedError):
            get(f"{server.url}//a")

    assert server.targets == ["/robots.txt"]


@pytest.mark.parametrize(("max_redirects", "followed"), [(0, 0), (1, 1), (20, 3)])
def test_redirect_beyond_the_limit_is_returned(
    session: curl_cffi.Session[Any],
    checker: sync.RobotsChecker,
    serve: Serve,
    max_redirects: int,
    followed: int,
) -> None:
    answers = {f"/{number}": redirect(f"/{number + 1}") for number in range(3)}
    server = serve(Routes({**answers, "/3": Reply()}))

    get = robots_get(checker, AGENT, session.get, max_redirects=max_redirects)
    response = get(f"{server.url}/0")

    assert response.status_code == (200 if followed == 3 else 302)
    assert server.targets == [f"/{number}" for number in range(followed + 1)]


def test_negative_max_redirects_is_refused(checker: sync.RobotsChecker) -> None:
    """For curl_cffi, it means no limit, so a redirect loop never ended."""
    with pytest.raises(ValueError, match="max_redirects to be 0 or more, got -1"):
        robots_get(checker, AGENT, requests.get, max_redirects=-1)


@pytest.mark.parametrize(
    ("status", "location"),
    [(304, "/next"), (301, None), (301, "http://h{}.test/")],
    ids=["304", "no Location", "a host that some clients escape"],
)
def test_redirect_that_leads_nowhere_is_returned(
    checker: sync.RobotsChecker, status: int, location: str | None
) -> None:
    response = SimpleNamespace(status=status, headers={"location": location})
    get = Mock(return_value=response)

    assert robots_get(checker, AGENT, get)(ORIGIN) is response
    get.assert_called_once()


def test_url_is_sent_as_it_was_checked(checker: sync.RobotsChecker) -> None:
    sent = []

    def get(url: str, **options: object) -> SimpleNamespace:
        sent.append((url, options))
        location = "/c/%2E%2e/d d" if len(sent) == 1 else None
        return SimpleNamespace(status=301, headers={"location": location})

    robots_get(checker, AGENT, get)(
        "HTTP://name:word@B\u00fccher.Example:80/a/../\u00e9#f"
    )

    options = {"headers": {}, "allow_redirects": False}
    assert sent == [
        ("http://xn--bcher-kva.example/%C3%A9", options),
        ("http://xn--bcher-kva.example/d%20d", options),
    ]


@pytest.mark.parametrize("url", ["/page", "http://h{}.test/page"])
def test_url_without_a_clear_origin_raises(
    checker: sync.RobotsChecker, url: str
) -> None:
    """requests escapes braces in a host name, and so connects to a different host."""
    with pytest.raises(InvalidURLError):
        robots_get(checker, AGENT, requests.get)(url)


def test_checker_of_the_wrong_kind_for_the_client_is_refused(
    checker: sync.RobotsChecker,
) -> None:
    """The client would return a coroutine instead of a response, or vice versa."""
    asynchronous: Any = RobotsChecker(client=site_of())
    get_async: Any = curl_cffi.AsyncSession.get
    awaitable = type("Later", (), {"__await__": lambda self: iter((self,))})()

    for wrong in (requests.get, partial(requests.get, timeout=1)):
        with pytest.raises(
            TypeError, match=r"an async function for <robotsgate\..*get"
        ):
            robots_get(asynchronous, AGENT, wrong)
    for wrong in (get_async, partial(get_async, timeout=1)):
        with pytest.raises(
            TypeError, match=r"a blocking function for <robotsgate\.sync"
        ):
            robots_get(checker, AGENT, wrong)
    with pytest.raises(TypeError, match="expected blocking functions"):
        robots_get(checker, AGENT, lambda *_, **__: awaitable)(ORIGIN)
