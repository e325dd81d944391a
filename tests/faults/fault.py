"""A fault of a server, what it should come to, and what it does come to."""

from __future__ import annotations

import enum
import tracemalloc
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import anyio.to_thread

from robotsgate import AccessResult, Policy, Reason, RobotsChecker, Verdict
from robotsgate.fetching._direct import DirectFetcher
from tests.faults.certificates import trusting
from tests.faults.stage import Stage
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = b"User-agent: *\nDisallow: /private\n"
"""What a server with a fault says, if it says anything."""

# Long enough for whatever ends by itself, on a machine that does much else.
_DEADLINE_SECONDS = 10.0

_MEBIBYTE = 2**20


class Effect(enum.Enum):
    """What may be fetched from an origin."""

    RULES = "what the rules allow"
    EVERYTHING = "everything"
    NOTHING = "nothing"
    NOTHING_AT_ALL = "nothing, not even `/robots.txt`"


_EFFECTS = {
    # /robots.txt, /public, /private
    (True, True, False): Effect.RULES,
    (True, True, True): Effect.EVERYTHING,
    (True, False, False): Effect.NOTHING,
    (False, False, False): Effect.NOTHING_AT_ALL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What a server does wrong, or at least oddly.

    Attributes:
        name: what the server does; unique, Markdown.
        arrange: starts the servers; gives the URL of the origin that is asked.
        effect: what may be fetched then.
        access: what the fetch comes to.
        reason: why /private may be fetched, or may not.
        says: what must stand in the error of the verdict; `None`: there is none.
        deadline: of the fetch, seconds.
        policy: what else is not as usual.
        store: gives the URL of the store to use; `None`: the checker's own.
        max_bytes: how much of what the server sends may be taken.
        max_memory: how much may be allocated at once during the fetch, bytes.
        asked: the targets of the requests that must come, server by server;
            `None`: any.
        accepted: how many connections must come, server by server; `None`: any.
    """

    name: str
    arrange: Callable[[Stage], str]
    effect: Effect
    access: AccessResult
    reason: Reason
    says: str | None = None
    deadline: float = _DEADLINE_SECONDS
    policy: Policy = field(default_factory=Policy)
    store: Callable[[Stage], str] | None = None
    max_bytes: int = _MEBIBYTE
    max_memory: int = 512_000 + 4 * _MEBIBYTE
    asked: tuple[str, ...] | None = None
    accepted: tuple[int, ...] | None = None

    @property
    def ends_at_deadline(self) -> bool:
        """Whether nothing but the deadline ends it."""
        return self.says is not None and self.says.startswith("no response within")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Faults of one kind.

    Attributes:
        name: by which the page finds it.
        faults: in the order of the table.
    """

    name: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a fault came to.

    Attributes:
        effect: what may be fetched.
        verdict: on /private.
        seconds: from the question to the answer.
        bytes_taken: of HTTP that the servers sent, those included that were still
            under way when the client left.
        memory: the most that was allocated at once by the fetch, bytes; what the
            threads of the servers need for themselves is in it.
        asked: the targets of all requests, server by server.
        accepted: connections that came, server by server.
        files_left: sockets, of either side, and files that are open when the checker
            is closed and were not before.
    """

    effect: Effect
    verdict: Verdict
    seconds: float
    bytes_taken: int
    memory: int
    asked: tuple[str, ...]
    accepted: tuple[int, ...]
    files_left: int


async def observe(fault: Fault) -> Observation:
    """Ask a checker about the origin of `fault`, over real sockets.

    Measures memory, so only one may run at a time in a process, and after `warm_up`.
    """
    with Stage() as stage:
        url = fault.arrange(stage)
        client = None
        if stage.has_tls or url.startswith("https:"):
            client = DirectFetcher(ssl_context=trusting())
        policy = replace(fault.policy, fetch_deadline=fault.deadline)
        store = None if fault.store is None else fault.store(stage)
        open_before = _open_files()
        async with RobotsChecker(
            user_agent="Bot", client=client, store=store, policy=policy
        ) as checker:
            tracemalloc.start()
            try:
                began_at = perf_counter()
                verdict = await checker.check("ExampleBot", f"{url}/private")
                seconds = perf_counter() - began_at
                _, memory = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            allowed = [
                await checker.can_fetch("ExampleBot", f"{url}/{path}")
                for path in ("robots.txt", "public", "private")
            ]
            # In a thread, because it is the event loop that closes sockets.
            await anyio.to_thread.run_sync(stage.is_left_alone)
        # A thread that fetches over FTP closes its sockets soon after the end.
        with anyio.move_on_after(_DEADLINE_SECONDS):
            while _open_files() > open_before:
                await anyio.lowlevel.checkpoint()
        files_left = _open_files() - open_before
        return Observation(
            effect=_EFFECTS[allowed[0], allowed[1], allowed[2]],
            verdict=verdict,
            seconds=seconds,
            bytes_taken=stage.sent,
            memory=memory,
            asked=stage.asked,
            accepted=tuple(server.accepted for server in stage.servers),
            files_left=files_left,
        )


async def warm_up() -> None:
    """Let everything be imported that a fetch imports at its first time."""
    with Stage() as stage:
        url = stage.serve(Reply(body=RULES)).url
        async with RobotsChecker(user_agent="Bot") as checker:
            await checker.check("ExampleBot", f"{url}/private")


def _open_files() -> int:
    """How many file descriptors this process holds, sockets among them."""
    return len(list(Path("/dev/fd").iterdir()))
