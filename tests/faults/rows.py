"""The kinds of rows that the tables of faults are made of, and parts of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robotsgate import AccessResult, Reason
from tests.faults.fault import Effect, Fault
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage
    from tests.servers.loopback import Answer

SHORT_DEADLINE = 0.1
"""For what only the deadline ends, seconds."""

_MEBIBYTE = 2**20

# A fetch without a body to keep has little to remember; the buffers of sockets and
# what an import loads for the first time come to less than this.
_MEMORY_WITHOUT_A_BODY = 2 * _MEBIBYTE


def answering(answer: Answer, **options: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (those of Stage.serve)
    """One server, which answers everything in one way."""

    def arrange(stage: Stage) -> str:
        return stage.serve(answer, **options).url

    return arrange


def rules_decide(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """The file is had in spite of it."""
    return Fault(
        name=name,
        arrange=arrange,
        effect=Effect.RULES,
        access=AccessResult.SUCCESSFUL,
        reason=Reason.DISALLOWED_BY_RULE,
        **more,
    )


def no_rules(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """A file is had, and says nothing."""
    return Fault(
        name=name,
        arrange=arrange,
        effect=Effect.EVERYTHING,
        access=AccessResult.SUCCESSFUL,
        reason=Reason.NO_GROUP,
        **more,
    )


def unavailable(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """There is no file."""
    return Fault(
        name=name,
        arrange=arrange,
        effect=Effect.EVERYTHING,
        access=AccessResult.UNAVAILABLE,
        reason=Reason.UNAVAILABLE,
        **{"max_memory": _MEMORY_WITHOUT_A_BODY, **more},
    )


def unreachable(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """Nobody knows whether there is a file."""
    return Fault(
        name=name,
        arrange=arrange,
        effect=Effect.NOTHING,
        access=AccessResult.UNREACHABLE,
        reason=Reason.UNREACHABLE,
        **{"max_memory": _MEMORY_WITHOUT_A_BODY, **more},
    )


def timed_out(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """Nobody knows, and only the deadline ends the waiting."""
    return unreachable(
        name,
        arrange,
        **{"says": "no response within", "deadline": SHORT_DEADLINE, **more},
    )


def refused(name: str, arrange: Callable[[Stage], str], **more: Any) -> Fault:  # noqa: ANN401 (those of Fault)
    """The address guard did not let a connection be made."""
    return Fault(
        name=name,
        arrange=arrange,
        effect=Effect.NOTHING_AT_ALL,
        access=AccessResult.REFUSED,
        reason=Reason.ADDRESS_REFUSED,
        **{
            "says": "the address guard refused",
            "max_memory": _MEMORY_WITHOUT_A_BODY,
            **more,
        },
    )


def head(status: str, *lines: str) -> bytes:
    """A status line, header lines, and the empty line."""
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def flood(
    data: bytes, times: int, then: Callable[[Connection], None] = Connection.hang
) -> Callable[[Connection], None]:
    """Sends `data` so many times, as fast as they are taken."""

    def send(connection: Connection) -> None:
        for _ in range(times):
            connection.send(data)
        then(connection)

    return send
