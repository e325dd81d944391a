"""A real cluster of Valkey servers on free loopback ports."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from tests.servers.valkey import running_valkey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.valkey import Valkey

HOST = "127.0.0.1"

_SLOTS = 16_384

# Nodes discover each other within two or three seconds.
_PAUSE_SECONDS = 0.02
_MAX_PAUSES = 1_500

# A node that does not respond for this long is replaced.
_NODE_TIMEOUT_MS = 500


@contextmanager
def running_cluster(*, count: int = 3) -> Iterator[list[Valkey]]:
    """The `count` nodes of a cluster that runs until the end of the block.

    Raises:
        RuntimeError: the cluster did not start; says why.
    """
    with ExitStack() as running:
        nodes = [
            running.enter_context(
                running_valkey(
                    cluster_enabled="yes",
                    cluster_node_timeout=_NODE_TIMEOUT_MS,
                )
            )
            for _ in range(count)
        ]
        first = nodes[0]
        for number, node in enumerate(nodes):
            slots = (_SLOTS * number // count, _SLOTS * (number + 1) // count)
            node.ask("CLUSTER", "ADDSLOTSRANGE", slots[0], slots[1] - 1)
        for node in nodes[1:]:
            _, bus_port = _list(node.ask("CONFIG", "GET", "cluster-port"))
            first.ask("CLUSTER", "MEET", HOST, node.port, bus_port)
        names = [str(node.ask("CLUSTER", "MYID")) for node in nodes]
        _wait_for(lambda: all(_is_complete(node, names) for node in nodes), nodes)
        yield nodes


def _is_complete(node: Valkey, names: list[str]) -> bool:
    """Whether `node` knows all other nodes and all slots."""
    known = str(node.ask("CLUSTER", "NODES"))
    is_ok = "cluster_state:ok" in str(node.ask("CLUSTER", "INFO"))
    return is_ok and all(name in known for name in names) and "handshake" not in known


def _wait_for(condition: Callable[[], bool], nodes: list[Valkey]) -> None:
    for _ in range(_MAX_PAUSES):
        if condition():
            return
        threading.Event().wait(_PAUSE_SECONDS)
    outputs = [str(node.ask("CLUSTER", "NODES")) for node in nodes]
    raise RuntimeError("the cluster did not form:\n" + "\n".join(outputs))


def _list(reply: object) -> list[object]:
    assert isinstance(reply, list)
    return reply
