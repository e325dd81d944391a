"""Server faults: the expected outcome of each, and the observed one."""

from __future__ import annotations

import enum
import tracemalloc
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.lowlevel
import anyio.to_thread

from robotsgate import AccessResult, Policy, Reason, RobotsChecker, Verdict
from robotsgate.fetching._direct import DirectFetcher
from tests.faults.certificates import trusting
from tests.faults.stage import Stage
from tests.servers.answers import Reply
from tests.systems import need_posix

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = b"User-agent: *\nDisallow: /private\n"
"""The robots.txt that faulty servers serve, if they serve one."""

# Long enough for anything that ends by itself, even on a busy machine.
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


@dataclass(frozen=True, slots=True)
class Fault:
    """What a server does wrong, or at least oddly.

    Attributes:
        name: what the server does, as Markdown; unique.
        arrange: starts the servers and returns the URL of the origin to check.
        effect: what may be fetched as a result.
        access: the expected result of the fetch.
        reason: why /private may or may not be fetched.
        error: text that the verdict's error must contain; `None`: there is no error.
        deadline: the fetch deadline, in seconds.
        policy: the policy, apart from its fetch deadline.
        store: returns the URL of the store to use; `None`: in memory.
        max_bytes: how many bytes may be read from the servers.
        max_memory: peak memory allowed during the fetch, in bytes.
        requested: the expected request targets, server by server; `None`: any.
        accepted: the expected number of connections per server; `None`: any.
    """

    name: str
    arrange: Callable[[Stage], str]
    _: KW_ONLY
    effect: Effect
    access: AccessResult
    reason: Reason
    error: str | None = None
    deadline: float = _DEADLINE_SECONDS
    policy: Policy = field(default_factory=Policy)
    store: Callable[[Stage], str] | None = None
    max_bytes: int = _MEBIBYTE
    max_memory: int = 512_000 + 4 * _MEBIBYTE
    requested: tuple[str, ...] | None = None
    accepted: tuple[int, ...] | None = None

    @property
    def ends_at_deadline(self) -> bool:
        """Whether only the deadline ends the fetch."""
        return self.error is not None and self.error.startswith("no response within")


class Group(NamedTuple):
    """Faults of one kind, in table order; the name identifies the table in the page."""

    name: str
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What happened when a fault was run.

    Attributes:
        effect: what may be fetched.
        verdict: the verdict for /private.
        seconds: how long the check took.
        bytes_taken: bytes that the servers sent above TLS, including those still in
            flight when the client disconnected.
        memory: peak memory allocated during the fetch, in bytes, including what the
            server threads allocate.
        requested: the targets of all requests, server by server.
        accepted: the number of connections per server.
        files_left: sockets (of either side) and files opened since the start and
            still open after the checker was closed.
    """

    effect: Effect
    verdict: Verdict
    seconds: float
    bytes_taken: int
    memory: int
    requested: tuple[str, ...]
    accepted: tuple[int, ...]
    files_left: int


async def observe(fault: Fault) -> Observation:
    """Check a URL of `fault`'s origin over real sockets.

    Measures memory, so run `warm_up` first, and only one at a time per process.
    """
    need_posix()
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
            # In a thread, because the event loop must be free to close sockets.
            await anyio.to_thread.run_sync(stage.is_left_alone)
        # The thread of an FTP fetch closes its sockets shortly after the fetch ends.
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
            requested=stage.requested,
            accepted=tuple(server.accepted for server in stage.servers),
            files_left=files_left,
        )


async def warm_up() -> None:
    """Import everything that a first fetch imports lazily."""
    with Stage() as stage:
        url = stage.serve(Reply(body=RULES)).url
        async with RobotsChecker(user_agent="Bot") as checker:
            await checker.check("ExampleBot", f"{url}/private")
            checker.peek("ExampleBot", "https://bücher.example/")  # loads IDNA's tables


def _open_files() -> int:
    """The number of open file descriptors, including sockets."""
    return len(list(Path("/dev/fd").iterdir()))
