"""Faults of HTTP itself: status lines, heads, lengths and chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.fault import RULES
from tests.faults.rows import (
    flood,
    garbled,
    head,
    no_rules,
    raw,
    rules_apply,
    timed_out,
    unreachable,
)
from tests.servers.answers import chunked, endless
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_PIECE = 16_384
_MEBIBYTE = 2**20
_LENGTH = f"Content-Length: {len(RULES)}"
_ZEROS = "0" * 4_999
_CHUNKED = head("200 OK", "Transfer-Encoding: chunked")
_OPEN_CHUNKS = chunked(RULES).removesuffix(b"\r\n")
_BINARY = bytes(range(256)) * 64


def _with_extra_lines(*lines: str) -> Callable[[Stage], str]:
    """A valid response with additional header lines."""
    return raw(head("200 OK", *lines, _LENGTH) + RULES, Connection.hang)


HEADS = (
    garbled("sends the rules without a head, like HTTP/0.9", raw(RULES)),
    timed_out("sends an SSH banner, and waits for one",
        raw(b"SSH-2.0-OpenSSH_9.9\r\n", Connection.hang)),
    garbled("responds with a TLS alert",
        raw(b"\x15\x03\x03\x00\x02\x02\x28", Connection.hang)),
    garbled("sends bytes that are not HTTP, forever", raw(b"", endless(_BINARY))),
    garbled("sends a status line of 10 MB",
        raw(b"HTTP/1.1 200 ", flood(b"O" * _PIECE, 640))),
    garbled("switches to another protocol",
        raw(head("101 Switching Protocols", "Upgrade: x"))),
    rules_apply("sends `103 Early Hints` ten times before its response",
        raw(head("103 Early Hints",
        "Link: </style.css>; rel=preload") * 10 + head("200 OK", _LENGTH) + RULES,
        Connection.hang)),
    unreachable("sends `103 Early Hints` forever",
        raw(b"", endless(head("103 Early Hints") * 64)),
        error="the response is too large"),
    garbled("sends header lines forever",
        raw(b"HTTP/1.1 200 OK\r\n", endless(b"X-Header: x\r\n" * 999))),
    garbled("sends one header line forever",
        raw(b"HTTP/1.1 200 OK\r\nX-Header: ", endless(b"x" * _PIECE))),
    garbled("sends 20,000 short header lines",
        _with_extra_lines(*(f"X-{number}: x" for number in range(20_000)))),
    rules_apply("sends a header line of 40 KB",
        _with_extra_lines("X-Header: " + "x" * 40_000)),
    garbled("sends a header line of 200 KB",
        _with_extra_lines("X-Header: " + "x" * 200_000)),
    rules_apply("sends an `Age` and a `max-age` of 5,000 digits",
        _with_extra_lines(f"Age: {_ZEROS}9", f"Cache-Control: max-age={_ZEROS}9")),
    rules_apply(
        "sets 500 cookies",
        _with_extra_lines(
            *(f"Set-Cookie: name{n}={n:050}; Path=/" for n in range(500))
        ),
    ),
    rules_apply("folds a header line", _with_extra_lines("X-Header: a\r\n  b")),
    rules_apply("ends its lines with bare line feeds",
        raw(f"HTTP/1.1 200 OK\n{_LENGTH}\n\n".encode() + RULES)),
)  # fmt: skip

BODIES = (
    garbled("announces a longer body than it sends, and closes",
        raw(head("200 OK", "Content-Length: 9999") + RULES)),
    timed_out("announces a longer body than it sends, and waits",
        raw(head("200 OK", "Content-Length: 9999") + RULES, Connection.hang)),
    rules_apply("announces a shorter body than it sends",
        raw(head("200 OK", f"Content-Length: {len(RULES) - 3}") + RULES,
        Connection.hang)),
    no_rules("announces a length of 0, and sends rules",
        raw(head("200 OK", "Content-Length: 0") + RULES, Connection.hang)),
    garbled("sends an endless chunk size", raw(_CHUNKED, endless(b"1" * _PIECE))),
    unreachable("sends chunks of one byte, forever",
        raw(_CHUNKED + _OPEN_CHUNKS[:-3], endless(b"1\r\n#\r\n" * 999)),
        error="pieces", max_bytes=4 * _MEBIBYTE),
    unreachable("sends chunks of ten bytes, forever",
        raw(_CHUNKED, endless(b"a\r\n#########\n\r\n" * 999)), error="pieces"),
    garbled("closes before the last chunk", raw(_CHUNKED + _OPEN_CHUNKS[:-3])),
    rules_apply("sends 500 trailer lines",
        raw(_CHUNKED + _OPEN_CHUNKS + b"X-Trailer: x\r\n" * 500 + b"\r\n",
        Connection.hang)),
    unreachable("sends 24,000 trailer lines",
        raw(_CHUNKED + _OPEN_CHUNKS + b"a:\r\n" * 24_000 + b"\r\n"),
        error="the response is too large"),
    garbled("sends trailer lines forever",
        raw(_CHUNKED + _OPEN_CHUNKS, endless(b"X-Trailer: x\r\n" * 999))),
    rules_apply("sends an endless body",
        raw(head("200 OK") + RULES, endless(b"#" * _PIECE)), max_bytes=4 * _MEBIBYTE),
)  # fmt: skip
