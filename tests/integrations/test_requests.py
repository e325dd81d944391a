"""The requests wrap: what `test_behaviours.py` does not cover."""

from __future__ import annotations

import gc
import shutil
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from robotsgate import DisallowedError, TurnDeadlockError, sync
from robotsgate.integrations.requests import RobotsAdapter, RobotsSession
from tests.checking.builders import AGENT, RULES
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.proxy import forward_proxy
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.loopback import Answer, Connection, LoopbackServer, Request

    Serve = Site = Callable[..., LoopbackServer]

HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")


@pytest.fixture
def site(serve: Serve) -> Site:
    """Starts a site that serves `page` as /page."""

    def start(page: Answer) -> LoopbackServer:
        robots, other = Reply(body=RULES.encode()), Reply(body=b"page")
        return serve(Routes({"/robots.txt": robots, "/page": page, "/other": other}))

    return start


@pytest.fixture
def checker() -> Iterator[sync.RobotsChecker]:
    with sync.RobotsChecker(user_agent=AGENT) as checker:
        yield checker


@pytest.fixture
def gate(checker: sync.RobotsChecker) -> Iterator[sync.PolitenessGate]:
    with sync.PolitenessGate(checker, AGENT, default_delay=0) as gate:
        yield gate


@pytest.fixture
def session(
    checker: sync.RobotsChecker, gate: sync.PolitenessGate
) -> Iterator[requests.Session]:
    """A session whose requests wait for turns of `gate`."""
    with RobotsSession(checker, AGENT, gate=gate) as session:
        yield session


def test_session_checks_https_as_well(session: requests.Session) -> None:
    assert isinstance(session.get_adapter("https://h.example/"), RobotsAdapter)


def test_path_that_urllib3_changes_for_a_proxy_is_checked_as_well(
    site: Site, serve: Serve, session: requests.Session
) -> None:
    """urllib3 changes the path of a redirect only if it uses a proxy."""

    def away(request: Request, connection: Connection) -> None:
        location = f"http://{request.headers['host']}/..//private"
        redirect(location)(request, connection)

    server = site(away)
    session.proxies = {"http": serve(forward_proxy).url}

    with pytest.raises(DisallowedError):
        session.get(f"{server.url}/page")

    assert server.targets == ["/robots.txt", "/page"]


@cases("end", {
    "content": (lambda response: response.content,),
    "lines": (lambda response: list(response.iter_lines()),),
    "close": (lambda response: response.close(),),
    "read from urllib3": (
        lambda response: shutil.copyfileobj(response.raw, BytesIO()),
    ),
})  # fmt: skip
@cases("page", {
    "length": (Reply(body=b"page"),),
    "chunked": (
        Reply(headers={"Transfer-Encoding": "chunked"}, body=chunked(b"page")),
    ),
    "until the connection closes": (Raw(b"HTTP/1.1 200 OK\r\n\r\npage"),),
    "empty": (Reply(),),
})  # fmt: skip
def test_turn_lasts_until_the_body_is_read_or_closed(
    end: Callable[[requests.Response], object],
    page: Answer,
    site: Site,
    session: requests.Session,
    gate: sync.PolitenessGate,
) -> None:
    response = session.get(f"{site(page).url}/page", stream=True)
    assert gate.stats.under_way == 1

    end(response)

    assert (gate.stats.turns, gate.stats.under_way) == (1, 0)


@cases("raw", {
    "urllib3's": (HTTPResponse(BytesIO(b"page"), preload_content=False),),
    "another file": (BytesIO(b"page"),),
})  # fmt: skip
def test_turn_of_a_response_not_from_a_socket_ends_at_once(
    raw: object, site: Site, checker: sync.RobotsChecker, gate: sync.PolitenessGate
) -> None:
    """For example from a cache: urllib3 tells only when a body from a socket ends."""

    class Cache(HTTPAdapter):
        def send(
            self, request: requests.PreparedRequest, **_: object
        ) -> requests.Response:
            response = self.build_response(request, HTTPResponse(status=200))
            response.raw = raw
            return response

    with requests.Session() as session:
        session.mount(
            "http://", RobotsAdapter(checker, AGENT, wrapped=Cache(), gate=gate)
        )
        response = session.get(f"{site(Reply()).url}/page", stream=True)

    assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
    assert [*response.iter_content(3)] == [b"pag", b"e"]


def test_turn_stays_open_while_the_body_is_only_partly_read(
    site: Site, session: requests.Session, gate: sync.PolitenessGate
) -> None:
    server = site(Reply(body=b"one\ntwo"))

    response = session.get(f"{server.url}/page", stream=True)
    for _ in response.iter_content(1):
        break
    with pytest.raises(TurnDeadlockError):
        session.get(f"{server.url}/other")

    assert response.content == b"ne\ntwo"
    assert gate.stats.under_way == 0


@pytest.mark.parametrize("is_streamed", [True, False])
def test_broken_body_ends_its_turn(
    site: Site,
    session: requests.Session,
    gate: sync.PolitenessGate,
    *,
    is_streamed: bool,
) -> None:
    url = f"{site(HALF).url}/page"

    with pytest.raises(requests.RequestException):
        _ = session.get(url, stream=is_streamed).content

    assert (gate.stats.turns, gate.stats.under_way) == (1, 0)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_garbage_collected_response_ends_its_turn(
    site: Site, session: requests.Session, gate: sync.PolitenessGate
) -> None:
    server = site(Reply(body=b"page"))

    with ThreadPoolExecutor() as threads:
        session.get(f"{server.url}/page", stream=True)
        gc.collect()
        future = threads.submit(session.get, f"{server.url}/other")

        assert future.result(PATIENCE_SECONDS).content == b"page"
    assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


@pytest.mark.parametrize("status", [404, 302])
def test_hook_that_raises_finds_the_body_read_and_leaves_no_turn_open(
    site: Site, session: requests.Session, gate: sync.PolitenessGate, status: int
) -> None:
    """requests calls hooks before it reads the body, so nothing ended the turn."""
    server = site(Reply(status=status, headers={"Location": "/other"}, body=b"gone"))

    def refuse(response: requests.Response, **_: object) -> None:
        assert response.raw.read() == b""
        raise requests.HTTPError(response=response)

    with pytest.raises(requests.HTTPError) as error:
        session.get(f"{server.url}/page", hooks={"response": refuse})

    assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
    assert error.value.response.text == "gone"


@pytest.mark.parametrize("headers", ["Content-Length: 9", "Content-Encoding: gzip"])
def test_redirect_with_a_broken_body_is_followed(
    site: Site, session: requests.Session, gate: sync.PolitenessGate, headers: str
) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: /other\r\n{headers}\r\n\r\n"

    response = session.get(f"{site(Raw(f'{head}body'.encode())).url}/page")

    assert response.content == b"page"
    assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


def test_request_repeated_after_an_auth_challenge_has_its_own_turn(
    site: Site, session: requests.Session, gate: sync.PolitenessGate
) -> None:
    challenge = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}
    server = site(Reply(status=401, headers=challenge))

    session.get(f"{server.url}/page", auth=requests.auth.HTTPDigestAuth("name", "word"))

    assert gate.stats.turns == 2
    assert server.targets == ["/robots.txt", "/page", "/page"]
