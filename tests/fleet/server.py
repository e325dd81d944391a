"""An HTTP server for the sites of a fleet, which records all requests."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from robotsgate import SystemClock
from tests.fleet.page import number_of, robots_txt

if TYPE_CHECKING:
    from collections.abc import Callable

# How long a response takes, so that workers have something to wait for.
_RESPONSE_SECONDS = 0.01

_TIMEOUT_SECONDS = 60.0


class CountingServer:
    """Answers on every loopback address, in a thread, until its block ends.

    Attributes:
        port: the port of all sites.
    """

    def __init__(self) -> None:
        """Listen."""
        # Includes all addresses in 127.0.0.0/8, which cannot be listed one by one.
        self._listener = socket.create_server(("0.0.0.0", 0), backlog=4_096)  # noqa: S104
        self.port: int = self._listener.getsockname()[1]
        self._changed = threading.Condition(threading.RLock())
        self._gets: list[tuple[int, str]] = []
        self._agent_to_hold = ""
        self._count_to_hold = 0
        self._held: list[int] = []
        self._answers: set[asyncio.Task[None]] = set()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> Self:
        """Start answering."""
        self._thread.start()
        self._is_ready.wait(_TIMEOUT_SECONDS)
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop, and cut connections whose responses are still held back."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join(_TIMEOUT_SECONDS)

    @property
    def gets(self) -> list[tuple[int, str]]:
        """The site and the User-Agent of each request, in order of arrival."""
        with self._changed:
            return list(self._gets)

    @property
    def held(self) -> list[int]:
        """The sites whose responses are or were held back."""
        with self._changed:
            return list(self._held)

    def hold(self, agent: str, *, count: int) -> None:
        """Hold back the responses to the next `count` requests from `agent`."""
        with self._changed:
            self._agent_to_hold, self._count_to_hold = agent, count

    def wait_until(self, condition: Callable[[CountingServer], bool]) -> None:
        """Wait until a condition holds; it is checked after each request.

        Raises:
            TimeoutError: the condition never holds.
        """
        deadline = _TIMEOUT_SECONDS
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout=deadline):
                raise TimeoutError(
                    f"{len(self._gets)} requests, {len(self._held)} of them held"
                )

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_over = asyncio.Event()
        server = await asyncio.start_server(self._answer, sock=self._listener)
        self._is_ready.set()
        await self._is_over.wait()
        server.close()
        answers = list(self._answers)
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answers.add(task)
        try:
            # The client was killed or gave up, or the server is stopping.
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._answer_one(reader, writer)
        finally:
            self._answers.discard(task)
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        agent = head.partition("user-agent: ")[2].partition("\r\n")[0]
        site = number_of(writer.get_extra_info("sockname")[0])
        if self._must_hold(site, agent):
            await self._is_over.wait()
            return
        await SystemClock().wait(_RESPONSE_SECONDS)
        body = robots_txt(site)
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        await writer.drain()

    def _must_hold(self, site: int, agent: str) -> bool:
        with self._changed:
            self._gets.append((site, agent))
            must_hold = (
                agent == self._agent_to_hold and len(self._held) < self._count_to_hold
            )
            if must_hold:
                self._held.append(site)
            self._changed.notify_all()
        return must_hold
