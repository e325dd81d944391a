"""Builders for the common kinds of faults and for parts of responses."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from robotsgate import AccessResult, Reason
from tests.faults.fault import Effect, Fault
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage
    from tests.servers.loopback import Answer

SHORT_DEADLINE = 0.1
"""The deadline, in seconds, for fetches that would otherwise never end."""

_MEBIBYTE = 2**20

# A fetch that keeps no body needs little memory: socket buffers and first-time
# imports stay below this.
_MEMORY_WITHOUT_A_BODY = 2 * _MEBIBYTE


def answering(answer: Answer, **options: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (those of Stage.serve)
    """One server that gives the same answer to every request."""

    def arrange(stage: Stage) -> str:
        return stage.serve(answer, **options).url

    return arrange


def raw(*parts: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (those of Raw)
    """One server that answers with `Raw(*parts)`."""
    return answering(Raw(*parts))


def reply(**parts: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (those of Reply)
    """One server that answers with `Reply(**parts)`."""
    return answering(Reply(**parts))


rules_apply = partial(
    Fault,
    effect=Effect.RULES,
    access=AccessResult.SUCCESSFUL,
    reason=Reason.DISALLOWED_BY_RULE,
)
"""The file is fetched in spite of the fault, and its rules apply."""

no_rules = partial(
    Fault,
    effect=Effect.EVERYTHING,
    access=AccessResult.SUCCESSFUL,
    reason=Reason.NO_GROUP,
)
"""A file is fetched, but it contains no rules."""

unavailable = partial(
    Fault,
    effect=Effect.EVERYTHING,
    access=AccessResult.UNAVAILABLE,
    reason=Reason.UNAVAILABLE,
    max_memory=_MEMORY_WITHOUT_A_BODY,
)
"""The fetch shows that there is no file."""

unreachable = partial(
    Fault,
    effect=Effect.NOTHING,
    access=AccessResult.UNREACHABLE,
    reason=Reason.UNREACHABLE,
    max_memory=_MEMORY_WITHOUT_A_BODY,
)
"""The fetch does not show whether there is a file."""

garbled = partial(unreachable, error="RemoteProtocolError")
"""Unreachable, because this is not HTTP."""

timed_out = partial(unreachable, error="no response within", deadline=SHORT_DEADLINE)
"""Unreachable, because only the deadline ends the fetch."""

refused = partial(
    Fault,
    effect=Effect.NOTHING_AT_ALL,
    access=AccessResult.REFUSED,
    reason=Reason.ADDRESS_REFUSED,
    error="the address guard refused",
    max_memory=_MEMORY_WITHOUT_A_BODY,
)
"""The address guard prevents a connection."""


def head(status: str, *lines: str) -> bytes:
    """A status line, header lines and the empty line after them."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def flood(
    data: bytes, times: int, then: Callable[[Connection], None] = Connection.hang
) -> Callable[[Connection], None]:
    """Send `data` `times` times, as fast as the client reads it."""

    def send(connection: Connection) -> None:
        for _ in range(times):
            connection.send(data)
        then(connection)

    return send
