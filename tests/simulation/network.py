"""An in-memory network with scripted answers; it reports each fetch to the judge."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING

import anyio.lowlevel
import httpx

from .answers import ANSWERS, End
from .randomness import rng_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from robotsgate.testing import ManualClock

    from .answers import Answer
    from .judge import Judge

_NOT_FOUND = next(answer for answer in ANSWERS if answer.name == "404")

_UNWANTED = ("authorization", "cookie", "if-modified-since", "if-none-match", "range")


@dataclass(eq=False)
class Attempt:
    """A fetch of a robots.txt, including redirects; times are epoch seconds."""

    host: str
    answer: Answer
    began_at: float
    requested_at: float
    requests: int = 0
    is_over: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class SimulatedNetwork:
    """An httpx transport; each request moves the clock by `slowness` seconds."""

    def __init__(self, clock: ManualClock, judge: Judge) -> None:
        self.gets = 0
        self.redirected = 0
        self.salt: object = 0
        self.slowness = 0.0
        self._clock = clock
        self._judge = judge
        self._answers: dict[str, Answer] = {}
        self.attempts: dict[str, Attempt] = {}

    def answer_with(self, host: str, answer: Answer) -> None:
        """Set the answer of `host`; attempts in progress keep theirs."""
        self._answers[host] = answer

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, or raise the network error."""
        self.gets += 1
        self._check_headers(request)
        attempt = self._attempt_of(request)
        attempt.requests += 1
        attempt.requested_at = self._clock.now()
        await self._take_time(attempt)
        return self._response(attempt)

    async def body_of(self, attempt: Attempt) -> AsyncIterator[bytes]:
        """The body of the last response, in pieces."""
        body = attempt.answer.body
        half = len(body) // 2
        await self._wait(attempt, "first half")
        yield body[:half]
        await self._wait(attempt, "second half")
        if attempt.answer.end is End.BODY_BREAKS:
            raise httpx.ReadError("the connection was lost")
        yield body[half:]

    def _check_headers(self, request: httpx.Request) -> None:
        unwanted = [name for name in _UNWANTED if name in request.headers]
        if unwanted or request.method != "GET":
            self._judge.complain(f"a {request.method} request with {unwanted}")

    def _attempt_of(self, request: httpx.Request) -> Attempt:
        host = request.url.params.get("of")
        if host is not None:
            self.redirected += 1
            return self.attempts[host]
        host = request.url.host
        before = self.attempts.get(host)
        if before is not None and not before.is_over:
            self._judge.complain(f"two fetches of {host} at once")
        answer = self._answers.get(host, _NOT_FOUND)
        now = self._clock.now()
        attempt = Attempt(host=host, answer=answer, began_at=now, requested_at=now)
        self.attempts[host] = attempt
        self._judge.attempt_began(attempt)
        return attempt

    async def _take_time(self, attempt: Attempt) -> None:
        await self._wait(attempt, "request")
        if self.slowness:
            self._clock.set(self._clock.now() + self.slowness)
            self._judge.time_passed()

    async def _wait(self, attempt: Attempt, what: str) -> None:
        rng = rng_for(self.salt, attempt.host, attempt.requests, what)
        try:
            for _ in range(rng.randrange(4)):
                await anyio.lowlevel.checkpoint()
        except BaseException:
            attempt.is_over = True
            self._judge.attempt_cancelled(attempt)
            raise

    def _response(self, attempt: Attempt) -> httpx.Response:
        answer, end = attempt.answer, attempt.answer.end
        if attempt.requests <= answer.redirects:
            return httpx.Response(
                (301, 302, 307, 308)[attempt.requests % 4],
                headers={"location": self._next_location(attempt)},
            )
        if end in _ERRORS:
            raise _error_for(end)
        if end in _LOCATIONS:
            return httpx.Response(302, headers=_LOCATIONS[end])
        attempt.headers = {
            name: self._value(value, attempt) for name, value in answer.headers
        }
        coding = {"content-encoding": answer.coding} if answer.coding else {}
        return httpx.Response(
            answer.status or 200,
            headers=attempt.headers | coding,
            stream=_Body(self, attempt),
        )

    def _next_location(self, attempt: Attempt) -> str:
        answer, host = attempt.answer, attempt.host
        url = "https://one.test/robots.txt" if answer.is_elsewhere else "/moved"
        return f"{url}?of={host}&number={attempt.requests}"

    def _value(self, value: str, attempt: Attempt) -> str:
        if not value.startswith("@"):
            return value
        return formatdate(attempt.requested_at + float(value[1:]), usegmt=True)


class _Body(httpx.AsyncByteStream):
    def __init__(self, network: SimulatedNetwork, attempt: Attempt) -> None:
        self._network = network
        self._attempt = attempt

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._network.body_of(self._attempt)


_LOCATIONS: dict[End | None, dict[str, str]] = {
    End.LOOP: {"location": "robots.txt#again", "set-cookie": "been=here; Path=/"},
    End.NOWHERE: {},
    End.SCHEME: {"location": "ftp://one.test/robots.txt"},
    End.PRIVATE: {"location": "http://10.0.0.1/robots.txt"},
}
_ERRORS: dict[End | None, Exception] = {
    End.CONNECT: httpx.ConnectError("connection refused"),
    End.NAME: httpx.ConnectError("no address"),
    End.READ_TIMEOUT: httpx.ReadTimeout("no data"),
    End.PROTOCOL: httpx.RemoteProtocolError("no HTTP"),
    End.POOL: httpx.PoolTimeout("no free connection"),
}


def _error_for(end: End | None) -> Exception:
    """Return a new exception, because a raised one keeps its traceback."""
    kind = _ERRORS[end]
    error = type(kind)(str(kind))
    if end is End.NAME:
        error.__cause__ = socket.gaierror(socket.EAI_NONAME, "unknown name")
    return error
