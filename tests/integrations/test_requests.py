"""The requests wrap: what `test_behaviours.py` does not cover."""

from __future__ import annotations

import gc
import shutil
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
import requests

from robotsgate import DisallowedError, sync
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, RULES
from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.proxy import forward_proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.servers.loopback import Answer, Connection, LoopbackServer, Request

    Site = Callable[..., LoopbackServer]
    Open = Callable[
        ..., AbstractContextManager[tuple[requests.Session, sync.PolitenessGate]]
    ]

_TIMEOUT_SECONDS = 10.0

HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf")


@pytest.mark.parametrize("has_gate", [True, False])
def test_path_that_urllib3_changes_for_a_proxy_is_checked_as_well(
    serve: Callable[..., LoopbackServer], *, has_gate: bool
) -> None:
    """urllib3 changes the path of a redirect only if it uses a proxy."""
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
        gate_or_none = gate if has_gate else None
        adapter = RobotsAdapter(checker, AGENT, gate=gate_or_none)
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


@pytest.fixture
def opened() -> Open:
    """Opens a session and its gate, with no delay."""

    @contextmanager
    def opened(
        *, wrapped: object = None
    ) -> Iterator[tuple[requests.Session, sync.PolitenessGate]]:
        with (
            sync.RobotsChecker(user_agent=AGENT) as checker,
            sync.PolitenessGate(checker, AGENT, default_delay=0) as gate,
            requests.Session() as session,
        ):
            adapter = RobotsAdapter(checker, AGENT, wrapped=wrapped, gate=gate)
            session.mount("http://", adapter)
            yield session, gate

    return opened


ENDS: dict[str, Callable[[requests.Response], object]] = {
    "content": lambda response: response.content,
    "chunks": lambda response: list(response.iter_content(1)),
    "lines": lambda response: list(response.iter_lines()),
    "close": lambda response: response.close(),
    "with": lambda response: response.__exit__(),
    "read from urllib3": lambda response: shutil.copyfileobj(response.raw, BytesIO()),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    "page",
    [
        Reply(body=b"page"),
        Reply(headers={"Transfer-Encoding": "chunked"}, body=chunked(b"page")),
        Raw(b"HTTP/1.1 200 OK\r\n\r\npage"),
        Reply(),
    ],
    ids=["length", "chunked", "until the connection closes", "empty"],
)
def test_turn_lasts_until_the_body_is_read_or_closed(
    opened: Open, end: Callable[[requests.Response], object], page: Answer, site: Site
) -> None:
    server = site(page)

    with opened() as (session, gate):
        response = session.get(f"{server.url}/page", stream=True)
        assert gate.stats.under_way == 1

        end(response)

        assert gate.stats.under_way == 0
        assert session.get(f"{server.url}/other").content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


def test_turn_stays_open_while_the_body_is_only_partly_read(
    opened: Open, site: Site
) -> None:
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
def test_broken_body_ends_its_turn(
    opened: Open, site: Site, *, is_streamed: bool
) -> None:
    server = site(HALF)

    with opened() as (session, gate):
        with pytest.raises(requests.RequestException):
            _ = session.get(f"{server.url}/page", stream=is_streamed).content

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)


def test_fully_read_response_is_freed_at_once(opened: Open, site: Site) -> None:
    server = site(Reply(body=b"page"))

    with opened() as (session, _):
        response = session.get(f"{server.url}/page", stream=True)
        assert response.content == b"page"
        is_alive = weakref.ref(response)
        del response

        assert not is_alive()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_garbage_collected_response_ends_its_turn(opened: Open, site: Site) -> None:
    server = site(Reply(body=b"page"))

    with ThreadPoolExecutor() as threads, opened() as (session, gate):
        session.get(f"{server.url}/page", stream=True)
        gc.collect()
        future = threads.submit(session.get, f"{server.url}/other")

        assert future.result(_TIMEOUT_SECONDS).content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


@pytest.mark.parametrize("status", [404, 302])
def test_hook_that_raises_finds_the_body_read_and_leaves_no_turn_open(
    opened: Open, site: Site, status: int
) -> None:
    """requests calls hooks before it reads the body, so nothing ended the turn."""
    headers = {"Location": "/other"}
    server = site(Reply(status=status, headers=headers, body=b"gone"))

    def refuse(response: requests.Response, **_: object) -> None:
        assert response.raw.read() == b""
        raise requests.HTTPError(response=response)

    with opened() as (session, gate):
        with pytest.raises(requests.HTTPError) as error:
            session.get(f"{server.url}/page", hooks={"response": refuse})

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
        assert error.value.response.text == "gone"


@pytest.mark.parametrize("headers", ["Content-Length: 9", "Content-Encoding: gzip"])
def test_redirect_with_a_broken_body_is_followed(
    opened: Open, site: Site, headers: str
) -> None:
    head = f"HTTP/1.1 302 Found\r\nLocation: /other\r\n{headers}\r\n\r\n"
    server = site(Raw(f"{head}body".encode()))

    with opened() as (session, gate):
        assert session.get(f"{server.url}/page").content == b"page"
        assert (gate.stats.turns, gate.stats.under_way) == (2, 0)


def test_request_repeated_after_an_auth_challenge_has_its_own_turn(
    opened: Open, site: Site
) -> None:
    challenge = {"WWW-Authenticate": 'Digest realm="r", nonce="n", qop="auth"'}
    server = site(Reply(status=401, headers=challenge))

    with opened() as (session, gate):
        session.get(
            f"{server.url}/page", auth=requests.auth.HTTPDigestAuth("name", "word")
        )

        assert gate.stats.turns == 2
    assert server.targets == ["/robots.txt", "/page", "/page"]


def test_wrapped_adapter_retries_within_one_turn(opened: Open, site: Site) -> None:
    replies = iter([Reply(status=503), Reply(body=b"page")])

    def page(request: Request, connection: Connection) -> None:
        next(replies)(request, connection)

    server = site(page)
    retry = requests.packages.urllib3.util.Retry(3, status_forcelist=[503])

    with opened(wrapped=requests.adapters.HTTPAdapter(max_retries=retry)) as (
        session,
        gate,
    ):
        assert session.get(f"{server.url}/page").content == b"page"
        with pytest.raises(DisallowedError):
            session.get(f"{server.url}/private")

        assert (gate.stats.turns, gate.stats.incidents) == (1, 0)
    assert server.targets == ["/robots.txt", "/page", "/page"]


def test_body_not_from_urllib3_is_read_within_its_turn(
    opened: Open, site: Site
) -> None:
    """Nothing tells when such a body ends."""

    class Adapter(requests.adapters.HTTPAdapter):
        def send(self, *arguments: Any, **options: Any) -> requests.Response:  # noqa: ANN401
            response = super().send(*arguments, **options)
            response.raw.release_conn()
            response.raw = BytesIO(b"page")
            return response

    with opened(wrapped=Adapter()) as (session, gate):
        response = session.get(f"{site(Reply()).url}/page", stream=True)

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)
        assert [*response.iter_content(3)] == [b"pag", b"e"]
