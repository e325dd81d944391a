"""A ledger in Redis or Valkey, shared by a fleet; needs the `redis` extra."""

from __future__ import annotations

import logging
import math
import secrets
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
from coredis.exceptions import NoScriptError, ResponseError

from robotsgate._clock import SystemClock
from robotsgate._flights import Flights
from robotsgate.caching._freshness import with_jitter
from robotsgate.caching._question import check_bound
from robotsgate.checking._reporting import Listener
from robotsgate.errors import StoreError
from robotsgate.politeness._events import (
    HostRecordReplaced,
    LedgerFailed,
    LedgerReturned,
)
from robotsgate.politeness._host_record import Pace, TurnEnd
from robotsgate.politeness._ledger import FleetMemory, Grant, LedgerStatus, Wait
from robotsgate.politeness._redis_scripts import (
    END,
    START,
    TICK,
    Script,
    StartReply,
    end_arguments,
    record_in,
    start_arguments,
)
from robotsgate.stores._redis_server import RedisServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from robotsgate._clock import Clock
    from robotsgate.politeness._events import LedgerEvent
    from robotsgate.politeness._host_record import HostRecord
    from robotsgate.stores._lasting_client import Client

_LOGGER = logging.getLogger("robotsgate.politeness")

# How long a call waits for the server before this process continues without it.
_ANSWER_SECONDS = 1.0

# Without its server, a process tries to reach it this many seconds after each failure.
# Waiting callers try again soon, because the fleet may be faster.
_PROBE_SECONDS = 1.0
_LONGEST_WAIT_ALONE = 5.0

# The end of a turn that never started, for a host without a name: the server drops the
# record within a millisecond.
_PROBE = (
    "",
    end_arguments(
        Pace(delay=0.0, max_at_once=1, max_delay=0.0, max_turn_seconds=1.0),
        is_robots_txt=False,
        now=0.0,
        began_at=math.inf,
        seconds=0.0,
        end=TurnEnd.UNUSED,
    ),
)

_MOST_PROCESSES = 2**53


_Answer = TypeVar("_Answer")


class RedisLedger:
    """A ledger for a fleet, whose processes together are as polite as a single process.

    Works with Redis 6 or later and with Valkey, whether standalone, with Sentinel or as
    a cluster. Each start or end of a turn runs a script that uses one key and computes
    the time from that key's remaining lifetime. The server deletes the key when it no
    longer matters. Processes waiting for a host get their turns in order of arrival. If
    a process dies, its turn stays open until `max_turn_seconds` after its start.

    If the server does not respond within a second, this process continues with what it
    knows about the hosts, and multiplies their delays by `workers`. Turns then do not
    wait for the server; one task keeps trying to reach it.

    Use it as an async context manager around the gates.
    """

    def __init__(
        self,
        url: str | Callable[[], Client],
        *,
        workers: int,
        prefix: str = "robotsgate:turn:",
        max_hosts: int = 100_000,
        ssl_context: ssl.SSLContext | None = None,
        clock: Clock = SystemClock(),
        on_event: Callable[[LedgerEvent], object] | None = None,
    ) -> None:
        """Create a ledger without connecting.

        Args:
            url: as for `RedisStore`.
            workers: the maximum number of processes that share the server, ≥ 1; a
                process that cannot reach the server multiplies its delays by this
                number.
            prefix: the prefix of each host's key.
            max_hosts: how many hosts this process remembers, as for `LocalLedger`.
            ssl_context: as for `RedisStore`.
            clock: the gates' clock.
            on_event: called with each `LedgerEvent`; it must not block. Exceptions that
                it raises are logged.

        Raises:
            StoreError: `url` is not valid for `RedisStore`.
            TypeError: `workers` or `max_hosts` is not an int, or `on_event` is not
                callable or is a coroutine function.
            ValueError: `workers` or `max_hosts` is below 1.
        """
        check_bound("workers", workers)
        self._server = RedisServer(url, ssl_context)
        self._memory = FleetMemory(workers=workers, max_hosts=max_hosts, clock=clock)
        self._listener = Listener(on_event, logger=_LOGGER)
        self._prefix = prefix
        self._clock = clock
        self._process = secrets.randbelow(_MOST_PROCESSES)
        self._alone_since = math.inf
        self._probes: Flights[bool] = Flights("ledger")
        # The ends of shared turns that have not been sent to the server yet.
        self._unsent: deque[tuple[str, list[str]]] = deque()

    async def __aenter__(self) -> Self:
        """Open the ledger; it connects on first use, so the server may be down."""
        self._server.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """See `Ledger.start`.

        Raises:
            RuntimeError: the ledger is not being used as a context manager.
        """
        if not self._server.is_open:
            raise RuntimeError("expected the ledger to be used inside async with")
        seconds, is_remembered = self._memory.least_wait(
            host, pace, is_robots_txt=is_robots_txt
        )
        if seconds > 0:
            return Wait(seconds + TICK, 0)
        reply = await self._start_in_fleet(
            host, pace, is_robots_txt=is_robots_txt, is_remembered=is_remembered
        )
        if reply is None:
            answer = await self._memory.start(host, pace, is_robots_txt=is_robots_txt)
            if isinstance(answer, Wait) and answer.seconds > _LONGEST_WAIT_ALONE:
                return Wait(_LONGEST_WAIT_ALONE, answer.overdue)
            return answer
        self._memory.learn(host, reply.now, reply.record)
        if not reply.is_granted:
            return Wait(reply.seconds, reply.overdue)
        began_at = self._memory.begin(host, pace, is_robots_txt=is_robots_txt)
        return Grant(host, pace, began_at, is_robots_txt, reply.overdue, reply.now)

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """See `Ledger.end`."""
        await self._memory.end(grant, end, retry_after=retry_after)
        # For the fleet, a turn that started without the server counts as later than any
        # incident.
        began_at = math.inf if grant.shared_began_at is None else grant.shared_began_at
        arguments = end_arguments(
            grant.pace,
            is_robots_txt=grant.is_robots_txt,
            now=self._clock.now(),
            began_at=began_at,
            seconds=self._clock.monotonic() - grant.began_at,
            end=end,
            retry_after=retry_after,
            jitter=with_jitter(1.0, grant.host),
        )

        async def send(client: Client) -> tuple[float, HostRecord]:
            (text,) = await self._run(client, END, grant.host, arguments)
            return record_in(text)

        answer = await self._answer(send)
        if answer is not None:
            self._memory.learn(grant.host, *answer)
        elif grant.shared_began_at is not None:
            self._unsent.append((grant.host, arguments))

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """See `Ledger.peek`."""
        return self._memory.peek(host, pace)

    async def aclose(self) -> None:
        """See `Ledger.aclose`."""
        try:
            await self._probes.aclose()
        finally:
            await self._server.aclose()

    async def _start_in_fleet(
        self, host: str, pace: Pace, *, is_robots_txt: bool, is_remembered: bool
    ) -> StartReply | None:
        """Start a request in the fleet; `None` if the server does not respond.

        A start that succeeds after the caller has given up is undone.
        """
        now = self._clock.now()
        arguments = start_arguments(
            pace,
            is_robots_txt=is_robots_txt,
            now=now,
            process=self._process,
            is_remembered=is_remembered,
        )
        is_wanted = True

        async def start(client: Client) -> StartReply:
            reply = StartReply.of(await self._run(client, START, host, arguments))
            if (
                reply.is_granted and not is_wanted
            ):  # the caller has given up in the meantime
                undo = end_arguments(
                    pace,
                    is_robots_txt=is_robots_txt,
                    now=now,
                    began_at=reply.now,
                    seconds=0.0,
                    end=TurnEnd.UNUSED,
                )
                await self._run(client, END, host, undo)
            return reply

        try:
            return await self._answer(start)
        finally:
            is_wanted = False

    async def _answer(
        self, work: Callable[[Client], Awaitable[_Answer]]
    ) -> _Answer | None:
        """Call `work` with a client; `None` if the server does not respond."""
        if self._memory.is_alone:
            return None
        error: Exception = TimeoutError(f"no response within {_ANSWER_SECONDS:g} s")
        try:
            with anyio.move_on_after(_ANSWER_SECONDS):
                return await self._server.result_of(work)
        except StoreError as raised:
            error = raised
        self._go_on_alone(error)
        return None

    def _go_on_alone(self, error: Exception) -> None:
        if self._memory.is_alone:
            return
        self._memory.is_alone = True
        self._alone_since = self._clock.monotonic()
        _LOGGER.warning("ledger continues without its server: %s", error)
        self._listener.tell(LedgerFailed(error=error))
        with suppress(RuntimeError):  # the ledger is closed
            self._probes.begin("probe", self._look_for_server)

    async def _look_for_server(self) -> bool:
        """Keep trying to rejoin the fleet."""
        while self._memory.is_alone:
            try:
                await self._server.result_of(self._rejoin)
            except StoreError:
                await self._clock.wait(_PROBE_SECONDS)
        return True

    async def _rejoin(self, client: Client) -> None:
        """Report the turns that ended during the outage, and rejoin the fleet."""
        await self._run(client, END, *_PROBE)
        while self._unsent:
            # The server has just run the script, so an error concerns only this host.
            with suppress(ResponseError):
                await self._run(client, END, *self._unsent[0])
            self._unsent.popleft()
        self._memory.is_alone = False
        seconds = self._clock.monotonic() - self._alone_since
        _LOGGER.info("ledger reached its server again after %.1f s", seconds)
        self._listener.tell(LedgerReturned(elapsed_seconds=seconds))

    async def _run(
        self, client: Client, script: Script, host: str, arguments: list[str]
    ) -> Any:  # noqa: ANN401 (the reply of a server)
        keys = [f"{self._prefix}{{{host}}}"]
        try:
            answer: Any = await client.evalsha(script.sha1, keys, arguments)
        except NoScriptError:
            answer = await client.eval(script.text, keys, arguments)
        *reply, is_replaced = answer
        if is_replaced:
            _LOGGER.warning("replaced an unreadable record for %s", host)
            self._listener.tell(HostRecordReplaced(host=host))
        return reply
