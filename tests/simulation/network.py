"""An in-memory network with scripted answers; it reports each fetch to the judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import formatdate
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import anyio.lowlevel
import httpx

from robotsgate import Reason
from robotsgate.caching._outcome import FailureKind, Outcome

if TYPE_CHECKING:
    from robotsgate import Policy
    from robotsgate.testing import ManualClock

    from .simulation import Judge

PATHS = ("/public", "/private", "/robots.txt")

_NO_GROUP = (True, Reason.NO_GROUP)
_NO_RULE = (True, Reason.NO_MATCHING_RULE)
_ALLOWED = (True, Reason.ALLOWED_BY_RULE)
_DISALLOWED = (False, Reason.DISALLOWED_BY_RULE)

RULEBOOKS = {
    b"": (_NO_GROUP, _NO_GROUP),
    b"User-agent: *\nDisallow: /\n": (_DISALLOWED, _DISALLOWED),
    b"User-agent: *\nDisallow: /private\n": (_NO_RULE, _DISALLOWED),
    b"User-agent: *\nDisallow: /\nAllow: /public\n": (_ALLOWED, _DISALLOWED),
    b"user-agent: examplebot\ndisallow: /public\n": (_DISALLOWED, _NO_RULE),
}
"""robots.txt files with the decisions about the first two of `PATHS`."""


class Answer(NamedTuple):
    """How an origin answers until further notice.

    A header value such as "@60" is the HTTP date 60 seconds after the request.
    """

    status: int = 404
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    redirects: int = 0
    error: type[httpx.TransportError] | None = None


_GOOD = [Answer(200, body) for body in RULEBOOKS]
_MISSING = [Answer(status) for status in (404, 410, 401, 403)]
_NOT_FOUND = b"<html><title>Page Not Found</title>"
_FAILING = [
    *(Answer(status) for status in (429, 500, 503, 503, 600, 304, 407)),
    *(Answer(status, _NOT_FOUND) for status in (500, 503)),
    Answer(206, b"user-agent: *\ndisallow:\n"),
]
_DEAD = [
    Answer(error=error)
    for error in (httpx.ConnectError, httpx.ReadTimeout, httpx.RemoteProtocolError)
]
_ELSEWHERE = [
    Answer(302, headers=(("location", "http://10.0.0.1/robots.txt"),)),  # refused
    Answer(302, headers=(("location", "/robots.txt#again"),)),  # a loop
]
_KINDS = [_GOOD, _MISSING, _FAILING, _DEAD, _ELSEWHERE]
_WEIGHTS = [12, 3, 6, 8, 1]

_LIFETIMES = [
    None,
    *(("cache-control", value) for value in ("max-age=600", "no-store", "max-age=x")),
    *(("expires", value) for value in ("@7200", "@-7200")),
]
_WAITS = [None, *(("retry-after", value) for value in ("120", "18000", "@3600"))]


def random_answer(rng: Random) -> Answer:
    """An answer with headers and redirects: mostly good answers and outages."""
    kind = rng.choices(_KINDS, _WEIGHTS)[0]
    answer = rng.choice(kind)
    header = None
    if kind in (_GOOD, _MISSING, _FAILING):
        header = rng.choice(_WAITS if kind is _FAILING else _LIFETIMES)
    hops = rng.choice([0, 0, 0, 0, 1, 6]) if kind in (_GOOD, _DEAD) else 0
    headers = (header,) if header else answer.headers
    return answer._replace(headers=headers, redirects=hops)


def random_outage(rng: Random) -> Answer:
    """An answer that often means unreachable."""
    return rng.choice([*_DEAD, *_FAILING])


@dataclass(eq=False)
class Attempt:
    """A fetch of a robots.txt, including redirects; times are epoch seconds."""

    host: str
    answer: Answer
    began_at: float
    requests: int = 0
    is_over: bool = False
    headers: dict[str, str] = field(default_factory=dict)

    def outcome(self, policy: Policy) -> Outcome:
        """The outcome that the checker must see."""
        answer = self.answer
        location = answer.headers[0][1] if answer in _ELSEWHERE else ""
        if answer.redirects > policy.max_redirects or "#" in location:
            return Outcome(has_too_many_redirects=True, status=302)
        if location:
            return Outcome(failure=FailureKind.ADDRESS_REFUSED)
        if answer.error:
            return Outcome(failure=FailureKind.OTHER)
        return Outcome(status=answer.status, headers=self.headers, body=answer.body)


class SimulatedNetwork:
    """An httpx transport; each request moves the clock by `slowness` seconds."""

    def __init__(self, clock: ManualClock, judge: Judge) -> None:
        self.salt: object = 0
        self.slowness = 0.0
        self.answers: dict[str, Answer] = {}
        self._clock = clock
        self._judge = judge
        self._attempts: dict[str, Attempt] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response, or raise the network error."""
        attempt = self._attempt_of(request.url)
        attempt.requests += 1
        requested_at = self._clock.now()
        # The event loop decides the order of the tasks, so each draw has its own seed.
        seed = f"{self.salt}/{attempt.host}/{attempt.requests}"
        try:
            for _ in range(Random(seed).randrange(4)):  # noqa: S311 (reproducible)
                await anyio.lowlevel.checkpoint()
        except BaseException:
            attempt.is_over = True
            self._judge.complain(f"the fetch of {attempt.host} was cancelled")
            raise
        self._clock.set(self._clock.now() + self.slowness)
        return _response(attempt, requested_at)

    def _attempt_of(self, url: httpx.URL) -> Attempt:
        if url.params:  # after a redirect
            return self._attempts[url.host]
        before = self._attempts.get(url.host)
        if before is not None and not before.is_over:
            self._judge.complain(f"two fetches of {url.host} at once")
        answer = self.answers.get(url.host, Answer())
        attempt = Attempt(host=url.host, answer=answer, began_at=self._clock.now())
        self._attempts[url.host] = attempt
        self._judge.attempt_began(attempt)
        return attempt


def _response(attempt: Attempt, requested_at: float) -> httpx.Response:
    answer = attempt.answer
    if attempt.requests <= answer.redirects:
        location = f"/moved?number={attempt.requests}"
        return httpx.Response(301, headers={"location": location})
    if answer.error:
        raise answer.error("scripted")
    attempt.headers = {
        name: formatdate(requested_at + float(value[1:]), usegmt=True)
        if value.startswith("@")
        else value
        for name, value in answer.headers
    }
    return httpx.Response(answer.status, headers=attempt.headers, content=answer.body)
