"""A host that records when each request arrived and when its response was sent."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Self

from robotsgate import SystemClock
from tests.fleet.polite_worker import ALONE
from tests.servers.loopback import LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.servers.loopback import Connection, Request

_MAX_RESPONSE_SECONDS = 0.03

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Visit:
    """One request.

    Attributes:
        agent: the User-Agent of the request.
        target: the target of the request.
        is_page: whether it was for a page, not for robots.txt.
        is_alone: whether the worker could not reach the ledger's server.
        began_at: when the request had arrived, in monotonic seconds.
        ended_at: when the response was sent, in monotonic seconds.
    """

    agent: str
    target: str
    is_page: bool
    is_alone: bool
    began_at: float
    ended_at: float


class PoliteHost:
    """Answers every request, in a thread, until its block ends.

    Attributes:
        origin: its origin.
        url: the URL of its "/page".
        visits: the finished visits.
        held_agent: the agent whose response waits for `release`; "" if none does yet.
    """

    def __init__(
        self,
        *,
        crawl_delay: float,
        pages: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
        agent_to_hold: str = "",
        target_to_hold: str = "",
    ) -> None:
        """Listen.

        Args:
            crawl_delay: the crawl-delay in its robots.txt, in seconds.
            pages: bodies by target, which may still change; other pages are empty.
            address: where to listen.
            agent_to_hold: an agent that gets no page before `release`.
            target_to_hold: a page that nobody gets before `release`.
        """
        self._rules = f"User-agent: *\nCrawl-delay: {crawl_delay}\nDisallow: /private\n"
        self._pages = {} if pages is None else pages
        self._server = LoopbackServer(self._answer, host=address)
        self._agent_to_hold = agent_to_hold
        self._target_to_hold = target_to_hold
        self._changed = threading.Condition()
        self._chance = Random(1)  # noqa: S311 (reproducible, no secret)
        self._released = threading.Event()
        self.held_agent = ""
        self.origin = self._server.url
        self.url = f"{self.origin}/page"
        self.visits: list[Visit] = []

    def __enter__(self) -> Self:
        """Start answering."""
        self._server.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop."""
        self.release()
        self._server.__exit__(*exc_info)

    @property
    def pages(self) -> list[Visit]:
        """The visits for pages."""
        return [visit for visit in self.visits if visit.is_page]

    @property
    def gaps(self) -> list[tuple[Visit, Visit, float]]:
        """Each visit, the next one, and the seconds between them."""
        visits = sorted(self.visits, key=lambda visit: visit.began_at)
        return [
            (visit, following, following.began_at - visit.ended_at)
            for visit, following in pairwise(visits)
        ]

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after each visit.

        Raises:
            TimeoutError: the condition never holds.
        """
        with self._changed:
            if not self._changed.wait_for(condition, timeout=_TIMEOUT_SECONDS):
                raise TimeoutError(f"{len(self.visits)} visits")

    def wait_until_it_holds(self) -> None:
        """Wait until the response to some agent is held back."""
        self.wait_until(lambda: bool(self.held_agent))

    def release(self) -> None:
        """Send the responses that are held back."""
        self._released.set()

    def _answer(self, request: Request, connection: Connection) -> None:
        began_at = SystemClock().monotonic()
        agent = request.headers["user-agent"]
        is_page = request.target != "/robots.txt"
        if request.target == self._target_to_hold or (
            agent == self._agent_to_hold and is_page
        ):
            with self._changed:
                self.held_agent = self.held_agent or agent
                self._changed.notify_all()
            self._released.wait()
        threading.Event().wait(self._chance.uniform(0, _MAX_RESPONSE_SECONDS))
        with self._changed:
            self.visits.append(
                Visit(
                    agent=agent,
                    target=request.target,
                    is_page=is_page,
                    is_alone=request.headers.get(ALONE) == "True",
                    began_at=began_at,
                    ended_at=SystemClock().monotonic(),
                )
            )
            self._changed.notify_all()
        page = self._pages.get(request.target, "")
        body = (page if is_page else self._rules).encode()
        connection.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
