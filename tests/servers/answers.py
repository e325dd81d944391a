"""Answers for a `LoopbackServer`: valid ones, and building blocks for broken ones."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.servers.loopback import Answer, Request

_DRIP_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A well-formed response; call it to send it, which leaves the connection open.

    Attributes:
        status: 100 to 999.
        headers: sent after Content-Length, which they can replace.
        body: the body as sent over the wire.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def octets(self) -> bytes:
        """The whole response."""
        phrase = ""
        if self.status in {status.value for status in HTTPStatus}:
            phrase = HTTPStatus(self.status).phrase
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        if "Transfer-Encoding" in self.headers:
            del headers["Content-Length"]
        lines = [f"HTTP/1.1 {self.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body

    def __call__(self, _request: Request, connection: Connection) -> None:
        connection.send(self.octets)


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that need not be HTTP, and what happens to the connection after them.

    Attributes:
        octets: the bytes to send first; may be empty.
        then: called with the connection afterwards.
    """

    octets: bytes
    then: Callable[[Connection], None] = Connection.close

    def __call__(self, _request: Request, connection: Connection) -> None:
        connection.send(self.octets)
        self.then(connection)


class Routes:
    """Answers depending on the request's target; 404 for unknown targets."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = answers

    def __call__(self, request: Request, connection: Connection) -> None:
        answer = self._answers.get(request.target, Reply(status=404))
        answer(request, connection)


class Crowd:
    """An answer that is held back until enough requests are waiting for it.

    Attributes:
        peak: the maximum number of requests that were waiting at once.
    """

    def __init__(self, count: int, answer: Answer) -> None:
        self._count = count
        self._answer = answer
        self._waiting = 0
        self._changed = threading.Condition()
        self.peak = 0

    def __call__(self, request: Request, connection: Connection) -> None:
        with self._changed:
            self._waiting += 1
            self.peak = max(self.peak, self._waiting)
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self.peak >= self._count, timeout=PATIENCE_SECONDS
            )
            # Not after the answer, when the client may send its next request.
            self._waiting -= 1
        self._answer(request, connection)


class Held:
    """An answer that is held back until `release` is called."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._released = threading.Event()

    def __call__(self, request: Request, connection: Connection) -> None:
        self._released.wait(PATIENCE_SECONDS)
        self._answer(request, connection)

    def release(self) -> None:
        """Answer all requests, including later ones."""
        self._released.set()


class Late:
    """An answer that is sent late."""

    def __init__(self, seconds: float, answer: Answer) -> None:
        self._seconds = seconds
        self._answer = answer

    def __call__(self, request: Request, connection: Connection) -> None:
        threading.Event().wait(self._seconds)
        self._answer(request, connection)


def endless(octets: bytes) -> Callable[[Connection], None]:
    """Sends `octets` repeatedly, as fast as the client reads."""
    return lambda connection: connection.send_for_ever(octets)


def dripping(octets: bytes) -> Callable[[Connection], None]:
    """Sends `octets` repeatedly and slowly."""

    def drip(connection: Connection) -> None:
        while True:
            connection.send(octets)
            threading.Event().wait(_DRIP_SECONDS)

    return drip


def redirect(location: str, *, status: int = 302) -> Reply:
    """A redirect to `location`."""
    return Reply(status=status, headers={"Location": location})


def chunked(*pieces: bytes) -> bytes:
    """`pieces` in chunked coding, including the last chunk."""
    coded = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join([*coded, b"0\r\n\r\n"])
