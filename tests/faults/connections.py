"""Faults below HTTP: sockets, timing and TLS."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from robotsgate import Policy
from tests.faults import certificates
from tests.faults.fault import RULES
from tests.faults.rows import (
    SHORT_DEADLINE,
    answering,
    garbled,
    head,
    raw,
    rules_apply,
    timed_out,
    unreachable,
)
from tests.servers.answers import Late, Raw, Reply, Routes, dripping, endless, redirect
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage
    from tests.servers.loopback import Answer

_HALF = len(RULES) // 2
_WITH_LENGTH = head("200 OK", f"Content-Length: {len(RULES)}")

_HELLO_REQUESTS = b"\x16\x03\x03\x40\x00" + bytes(0x4000)  # clients ignore these
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"  # fatal: handshake failure


def _refusing(_: Stage) -> str:
    return f"http://127.0.0.1:{dead_port()}"


def _never_accepting(stage: Stage) -> str:
    return f"http://127.0.0.1:{stage.bind()}"


def _before_http(then: Callable[[Connection], None]) -> Callable[[Stage], str]:
    """An https server that does not perform the TLS handshake."""

    def arrange(stage: Stage) -> str:
        server = stage.serve(Raw(b"", then), reads_requests=False)
        return server.url.replace("http:", "https:")

    return arrange


def _answer_handshake(data: bytes) -> Callable[[Connection], None]:
    def answer(connection: Connection) -> None:
        connection.receive()
        connection.send(data)
        connection.hang()

    return answer


def _finish_after(seconds: float) -> Callable[[Connection], None]:
    """Send the second half of the rules after `seconds`."""

    def end(connection: Connection) -> None:
        threading.Event().wait(seconds)
        connection.send(RULES[_HALF:])
        connection.hang()

    return end


def _slow_redirects() -> Answer:
    hop = SHORT_DEADLINE / 3
    return Routes(
        {
            "/robots.txt": Late(hop, redirect("/1")),
            **{f"/{n}": Late(hop, redirect(f"/{n + 1}")) for n in range(1, 5)},
            "/5": Reply(body=RULES),
        }
    )


CONNECTIONS = (
    unreachable("refuses the connection", _refusing, error="ConnectError"),
    timed_out("never accepts the connection", _never_accepting),
    timed_out("accepts the connection, but never responds", raw(b"", Connection.hang)),
    unreachable("is silent for longer than `read_timeout`", raw(b"", Connection.hang),
        policy=Policy(read_timeout=SHORT_DEADLINE), error="ReadTimeout"),
    unreachable("accepts the connection and closes it immediately",
        answering(Raw(b""), reads_requests=False), error=""),
    garbled("closes instead of responding", raw(b"")),
    unreachable("resets instead of responding", raw(b"", Connection.reset),
        error="ReadError"),
    garbled("closes in the middle of the body", raw(_WITH_LENGTH + RULES[:_HALF])),
    unreachable("resets in the middle of the body",
        raw(_WITH_LENGTH + RULES[:_HALF], Connection.reset), error="ReadError"),
    timed_out("stops in the middle of the body",
        raw(_WITH_LENGTH + RULES[:_HALF], Connection.hang)),
    rules_apply("sends all of the body and keeps the connection open",
        raw(_WITH_LENGTH + RULES, Connection.hang)),
    rules_apply("responds before the request",
        answering(Raw(_WITH_LENGTH + RULES, Connection.hang), reads_requests=False)),
)  # fmt: skip

TIMES = (
    timed_out("sends its head one byte at a time, forever",
        raw(b"HTTP/1.1 200 OK\r\nX: ", dripping(b"x"))),
    timed_out("sends its body one byte at a time, forever",
        raw(head("200 OK") + RULES, dripping(b"#"))),
    timed_out("sends `100 Continue` again and again, slowly",
        raw(b"", dripping(head("100 Continue")))),
    timed_out("redirects five times, slowly", answering(_slow_redirects())),
    rules_apply("sends a slow body that ends before the deadline",
        raw(_WITH_LENGTH + RULES[:_HALF], _finish_after(0.3))),
)  # fmt: skip

HANDSHAKES = (
    rules_apply("has a valid certificate, for comparison",
        answering(Reply(body=RULES), ssl_context=certificates.valid())),
    unreachable("has a certificate that has expired",
        answering(Reply(body=RULES), ssl_context=certificates.expired()),
        error="certificate has expired"),
    unreachable("has the certificate of another host",
        answering(Reply(body=RULES), ssl_context=certificates.for_another_host()),
        error="certificate"),
    unreachable(
        "requires a client certificate",
        answering(
            Reply(body=RULES), ssl_context=certificates.requiring_client_certificate()
        ),
        error="",  # the alert may be lost when the connection closes
    ),
    timed_out("is silent during the TLS handshake", _before_http(Connection.hang)),
    unreachable("asks for a new handshake forever",
        _before_http(endless(_HELLO_REQUESTS)), error="the response is too large"),
    unreachable("sends a thousand session tickets after the handshake",
        answering(Reply(body=RULES), ssl_context=certificates.with_many_tickets()),
        error="the response is too large"),
    unreachable("is silent during the handshake for longer than `connect_timeout`",
        _before_http(Connection.hang), policy=Policy(connect_timeout=SHORT_DEADLINE),
        error="ConnectTimeout"),
    unreachable("closes in the middle of the handshake",
        _before_http(Connection.close), error="cut off"),
    unreachable("ends the handshake with an alert",
        _before_http(_answer_handshake(_ALERT)), error="alert"),
    unreachable("speaks plain HTTP instead of TLS",
        _before_http(_answer_handshake(head("400 Bad Request"))), error="SSL"),
    garbled("closes in the middle of the body, over TLS",
        answering(Raw(_WITH_LENGTH + RULES[:_HALF]),
        ssl_context=certificates.valid())),
    rules_apply("ends a body without a length, over TLS, without `close_notify`",
        answering(Raw(head("200 OK") + RULES), ssl_context=certificates.valid())),
)  # fmt: skip
