"""Answers for a `LoopbackServer`: well-formed ones, and the parts of broken ones."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.servers.loopback import Answer, Request

__all__ = [
    "Crowd",
    "Held",
    "Late",
    "Raw",
    "Reply",
    "Routes",
    "chunked",
    "dripping",
    "endless",
    "redirect",
]

_DRIP_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A well-formed response; call it to send it.

    Attributes:
        status: 100 to 999.
        headers: sent after Content-Length, which is not repeated if it is here.
        body: as it goes over the wire.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def octets(self) -> bytes:
        """The whole response."""
        phrase = ""
        if self.status in {known.value for known in HTTPStatus}:
            phrase = HTTPStatus(self.status).phrase
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        if "Transfer-Encoding" in self.headers:
            del headers["Content-Length"]
        lines = [f"HTTP/1.1 {self.status} {phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body

    def __call__(self, _request: Request, connection: Connection) -> None:
        """Send it; the connection stays open."""
        connection.send(self.octets)


@dataclass(frozen=True, slots=True)
class Raw:
    """Octets that need not be HTTP, and how the connection goes on after them.

    Attributes:
        octets: sent first; may be empty.
        then: what is done afterwards, with the connection.
    """

    octets: bytes
    then: Callable[[Connection], None] = Connection.close

    def __call__(self, _request: Request, connection: Connection) -> None:
        """Send it and do what comes then."""
        connection.send(self.octets)
        self.then(connection)


class Routes:
    """Answers by the target of the request; 404 for what is not there."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        """Look up in `answers`, which may still change."""
        self._answers = answers

    def __call__(self, request: Request, connection: Connection) -> None:
        """Answer."""
        answer = self._answers.get(request.target, Reply(status=404))
        answer(request, connection)


class Crowd:
    """An answer that is held back until enough requests wait for it.

    Attributes:
        peak: how many requests waited at once at most.
    """

    def __init__(self, count: int, answer: Answer) -> None:
        """Give `answer` once `count` requests have been here at the same time."""
        self._count = count
        self._answer = answer
        self._waiting = 0
        self._changed = threading.Condition()
        self.peak = 0

    def __call__(self, request: Request, connection: Connection) -> None:
        """Wait for the others, then answer."""
        with self._changed:
            self._waiting += 1
            self.peak = max(self.peak, self._waiting)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.peak >= self._count, timeout=2)
            # Before the answer: after it, the client may send the next request.
            self._waiting -= 1
        self._answer(request, connection)


class Held:
    """An answer that is held back until `release` is called."""

    def __init__(self, answer: Answer) -> None:
        """Give `answer` in the end."""
        self._answer = answer
        self._may_go = threading.Event()

    def __call__(self, request: Request, connection: Connection) -> None:
        """Wait, then answer."""
        self._may_go.wait(timeout=5)
        self._answer(request, connection)

    def release(self) -> None:
        """Let all requests be answered, those to come as well."""
        self._may_go.set()


class Late:
    """An answer that takes its time."""

    def __init__(self, seconds: float, answer: Answer) -> None:
        """Give `answer` after `seconds`."""
        self._seconds = seconds
        self._answer = answer

    def __call__(self, request: Request, connection: Connection) -> None:
        """Wait, then answer."""
        threading.Event().wait(self._seconds)
        self._answer(request, connection)


def endless(octets: bytes) -> Callable[[Connection], None]:
    """Sends `octets` again and again, as fast as they are taken."""
    return lambda connection: connection.send_for_ever(octets)


def dripping(octets: bytes) -> Callable[[Connection], None]:
    """Sends `octets` again and again, slowly."""

    def drip(connection: Connection) -> None:
        while True:
            connection.send(octets)
            threading.Event().wait(_DRIP_SECONDS)

    return drip


def redirect(location: str, *, status: int = 302) -> Reply:
    """A redirect to `location`."""
    return Reply(status=status, headers={"Location": location})


def chunked(*pieces: bytes) -> bytes:
    """The chunked coding of `pieces`, with its end."""
    coded = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join([*coded, b"0\r\n\r\n"])
