"""A Valkey server, its replica, and a sentinel that can promote the replica."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.servers.valkey import running_valkey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers.valkey import Valkey

HOST = "127.0.0.1"
NAME = "crawl"

# A primary that does not respond for this long is replaced.
_DOWN_AFTER_MS = 500

# The sentinel looks for replicas every ten seconds.
_PAUSE_SECONDS = 0.05
_MAX_PAUSES = 600


@contextmanager
def running_sentinel() -> Iterator[tuple[Valkey, Valkey, Valkey]]:
    """A primary, its replica and their sentinel, until the end of the block.

    Raises:
        RuntimeError: they did not start; says why.
    """
    with (
        running_valkey(repl_diskless_sync_delay=0) as primary,
        running_valkey(replicaof=[HOST, primary.port]) as replica,
        running_valkey(sentinel=[]) as sentinel,
    ):
        _wait_for("master_link_status:up", replica, "INFO", "replication")
        sentinel.ask("SENTINEL", "MONITOR", NAME, HOST, primary.port, 1)
        for option in ("down-after-milliseconds", "failover-timeout"):
            sentinel.ask("SENTINEL", "SET", NAME, option, _DOWN_AFTER_MS)
        _wait_for(str(replica.port), sentinel, "SENTINEL", "REPLICAS", NAME)
        yield primary, replica, sentinel


def _wait_for(text: str, server: Valkey, *words: object) -> None:
    for _ in range(_MAX_PAUSES):
        if text in str(server.ask(*words)):
            return
        threading.Event().wait(_PAUSE_SECONDS)
    raise RuntimeError(f"the reply to {words} never contains {text!r}")
