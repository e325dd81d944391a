"""What only the wrap of requests does; `test_behaviours.py` has the rest."""

from __future__ import annotations

import gc
import shutil
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
import requests
from requests.adapters import HTTPAdapter
from requests.auth import HTTPDigestAuth

from robotsgate import DisallowedError, sync
from robotsgate.integrations.requests import RobotsAdapter, RobotsDisallowedError
from tests.checking.builders import AGENT, RULES
from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.proxy import forward_proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.loopback import Answer, LoopbackServer

    Site = Callable[..., LoopbackServer]

_PATIENCE_SECONDS = 10.0

HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")


@pytest.mark.parametrize("has_gate", [True, False])
def test_path_that_urllib3_changes_for_a_proxy_is_asked_as_well(
    serve: Callable[..., LoopbackServer], *, has_gate: bool
) -> None:
    """Without a proxy, the path of a redirect stays; urllib3 cuts it for a proxy."""
    rules = Reply(body=b"User-agent: *\nDisallow: /private")
    routes = {"/robots.txt": rules, "/private": Reply()}
    server = serve(Routes(routes))
    routes["/away"] = redirect(f"{server.url}/..//private")
    proxy = serve(forward_proxy)
    with (
        sync.RobotsChecker(user_agent=AGENT) as checker,
        requests.Session() as session,
    ):
        gate = sync.PolitenessGate(checker, AGENT, default_delay=0)
        adapter = RobotsAdapter(checker, AGENT, gate=gate if has_gate else None)
        session.mount("http://", adapter)
        session.proxies = {"http": proxy.url}

        with pytest.raises(DisallowedError):
            session.get(f"{server.url}/away")

    assert server.targets == ["/robots.txt", "/away"]


# --- with a gate --------------------------------------------------------------------


@pytest.fixture
def site(serve: Callable[..., LoopbackServer]) -> Site:
    def start(page: Answer, **others: Answer) -> LoopbackServer:
        robots = Reply(body=RULES.encode())
        answers = {"/robots.txt": robots, "/page": page, "/other": Reply(body=b"page")}
        return serve(Routes(answers | {f"/{name}": others[name] for name in others}))

    return start


@contextmanager
def opened(
    *, wrapped: HTTPAdapter | None = None
) -> Iterator[tuple[requests.Session, sync.PolitenessGate]]:
    """A session, and its gate without a delay."""
    with (
        sync.RobotsChecker(user_agent=AGENT) as checker,
        sync.PolitenessGate(checker, AGENT, default_delay=0) as gate,
        requests.Session() as session,
    ):
        session.mount(
            "http://", RobotsAdapter(checker, AGENT, wrapped=wrapped, gate=gate)
        )
        yield session, gate


def read_raw(response: requests.Response) -> None:
    with response:
        shutil.copyfileobj(response.raw, BytesIO())


ENDS: dict[str, Callable[[requests.Response], object]] = {
    "content": lambda response: response.content,
    "chunks": lambda response: list(response.iter_content(1)),
    "lines": lambda response: list(response.iter_lines()),
    "close": lambda response: response.close(),
    "with": lambda response: response.__exit__(),
    "with, and read from urllib3": read_raw,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    "page",
    [
        Reply(body=b"page"),
        Reply(headers={"Transfer-Encoding": "chunked"}, body=chunked(b"page")),
        Reply(),
    ],
    ids=["length", "chunked", "empty"],
)
def test_turn_lasts_until_the_body_is_read_or_closed(
    end: Callable[[requests.Response], object], page: Answer, site: Site
) -> None:
    server = site(page)

    with opened() as (session, gate):
        response = session.get(f"{server.url}/page", stream=True)
        assert gate.stats.under_way == 1

        end(response)

        assert gate.stats.under_way == 0
        assert session.get(f"{server.url}/other").content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


def test_turn_goes_on_while_the_body_may_be_read_on(site: Site) -> None:
    server = site(Reply(body=b"one\ntwo"))

    with opened() as (session, gate):
        response = session.get(f"{server.url}/page", stream=True)
        for _ in response.iter_content(1):
            break
        assert gate.stats.under_way == 1
        with pytest.raises(RuntimeError, match="that would be a deadlock"):
            session.get(f"{server.url}/other")

        assert response.content == b"ne\ntwo"
        assert gate.stats.under_way == 0


@pytest.mark.parametrize("is_streamed", [True, False])
def test_body_that_breaks_ends_its_turn(site: Site, *, is_streamed: bool) -> None:
    server = site(HALF)

    with opened() as (session, gate):
        with pytest.raises(requests.RequestException):
            _ = session.get(f"{server.url}/page", stream=is_streamed).content

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)


def test_response_that_was_read_is_freed_at_once(site: Site) -> None:
    server = site(Reply(body=b"page"))

    with opened() as (session, _):
        response = session.get(f"{server.url}/page", stream=True)
        assert response.content == b"page"
        is_alive = weakref.ref(response)
        del response

        assert not is_alive()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_response_that_is_lost_ends_its_turn(site: Site) -> None:
    server = site(Reply(body=b"page"))

    with ThreadPoolExecutor() as threads, opened() as (session, gate):
        session.get(f"{server.url}/page", stream=True)
        gc.collect()
        visit = threads.submit(session.get, f"{server.url}/other")

        assert visit.result(_PATIENCE_SECONDS).content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


def test_response_may_be_read_in_another_thread(site: Site) -> None:
    server = site(Reply(body=b"page"))

    with opened() as (session, gate):
        response = session.get(f"{server.url}/page", stream=True)
        reading = threading.Thread(target=response.close)
        reading.start()
        reading.join()

        assert gate.stats.under_way == 0


@pytest.mark.parametrize("status", [404, 302])
def test_hook_that_raises_leaves_no_turn(site: Site, status: int) -> None:
    """Requests calls hooks before it reads the body, so nobody did."""
    headers = {"Location": "/other"}
    server = site(Reply(status=status, headers=headers, body=b"gone"))

    def refuse(response: requests.Response, **_: object) -> None:
        raise requests.HTTPError(response=response)

    with opened() as (session, gate):
        with pytest.raises(requests.HTTPError) as error:
            session.get(f"{server.url}/page", hooks={"response": refuse})

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
        assert error.value.response.text == "gone"


@pytest.mark.parametrize("headers", ["Content-Length: 9", "Content-Encoding: gzip"])
def test_redirect_whose_body_is_broken_is_followed(site: Site, headers: str) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: /other\r\n{headers}\r\n\r\n"
    server = site(Raw(f"{head}body".encode()))

    with opened() as (session, gate):
        assert session.get(f"{server.url}/page").content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


@pytest.mark.parametrize("is_streamed", [True, False])
def test_each_hop_of_a_redirect_has_a_turn(site: Site, *, is_streamed: bool) -> None:
    other = site(Reply(body=b"page"))
    far = other.url.replace("127.0.0.1", "localhost")
    server = site(redirect("/away"), away=redirect(f"{far}/page"))

    with opened() as (session, gate):
        response = session.get(f"{server.url}/page", stream=is_streamed)

        assert (gate.stats.turns, gate.stats.under_way) == (3, int(is_streamed))
        assert gate.status(far).under_way == int(is_streamed)
        assert response.text == "page"
    assert server.targets == ["/robots.txt", "/page", "/away"]
    assert other.targets == ["/robots.txt", "/page"]


def test_answer_to_a_challenge_has_a_turn_of_its_own(site: Site) -> None:
    challenge = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}
    server = site(Reply(status=401, headers=challenge))

    with opened() as (session, gate):
        session.get(f"{server.url}/page", auth=HTTPDigestAuth("name", "word"))

        assert gate.stats.turns == 2
    assert server.targets == ["/robots.txt", "/page", "/page"]


def test_host_that_asks_for_less_is_left_alone(site: Site) -> None:
    server = site(Reply(status=503, headers={"Retry-After": "99"}))

    with opened() as (session, gate):
        before = gate.ready_at(server.url)
        session.get(f"{server.url}/page")

        assert gate.ready_at(server.url) > before + 90
        assert gate.stats.incidents == 1


def test_request_that_fails_ends_its_turn_as_an_incident(site: Site) -> None:
    server = site(Raw(b"rubbish\r\n\r\n"))

    with opened() as (session, gate):
        with pytest.raises(requests.ConnectionError):
            session.get(f"{server.url}/page")

        assert (gate.stats.incidents, gate.stats.under_way) == (1, 0)


def test_disallowed_page_and_robots_txt_have_no_turn(site: Site) -> None:
    server = site(Reply())

    with opened() as (session, gate):
        with pytest.raises(RobotsDisallowedError) as refusal:
            session.get(f"{server.url}/private")
        session.get(f"{server.url}/robots.txt")

        assert gate.stats.turns == 0
    assert refusal.value.request.url == f"{server.url}/private"
    assert server.targets == ["/robots.txt"] * 2


def test_response_without_a_body_ends_its_turn(site: Site) -> None:
    class Adapter(HTTPAdapter):
        def send(self, *_: object, **__: object) -> requests.Response:
            response = requests.Response()
            response.status_code = 200
            return response

    with opened(wrapped=Adapter()) as (session, gate):
        session.get(f"{site(Reply()).url}/page", stream=True)

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
