"""Faults of HTTP itself: status lines, heads, lengths and chunks."""

from __future__ import annotations

from tests.faults.fault import RULES, Group
from tests.faults.rows import (
    answering,
    flood,
    head,
    no_rules,
    rules_apply,
    timed_out,
    unreachable,
)
from tests.servers.answers import Raw, chunked, endless
from tests.servers.loopback import Connection

_PIECE = 16_384
_MEBIBYTE = 2**20
_LENGTH = f"Content-Length: {len(RULES)}"
_ZEROS = "0" * 4_999
_CHUNKED = head("200 OK", "Transfer-Encoding: chunked")
_OPEN_CHUNKS = chunked(RULES).removesuffix(b"\r\n")
_BINARY = bytes(range(256)) * 64


def _with_extra_lines(*lines: str) -> Raw:
    """A valid response with additional header lines."""
    return Raw(head("200 OK", *lines, _LENGTH) + RULES, Connection.hang)


HEADS = Group(
    name="heads",
    faults=(
        unreachable(
            "sends the rules without a head, like HTTP/0.9",
            answering(Raw(RULES)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends an SSH banner, and closes",
            answering(Raw(b"SSH-2.0-OpenSSH_9.9\r\n")),
            error="RemoteProtocolError",
        ),
        timed_out(
            "sends an SSH banner, and waits for one",
            answering(Raw(b"SSH-2.0-OpenSSH_9.9\r\n", Connection.hang)),
        ),
        unreachable(
            "responds with a TLS alert",
            answering(Raw(b"\x15\x03\x03\x00\x02\x02\x28", Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends the HTTP/2 preface",
            answering(Raw(bytes.fromhex("000000040000000000"), Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends bytes that are not HTTP, forever",
            answering(Raw(b"", endless(_BINARY))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends zeros forever",
            answering(Raw(b"", endless(bytes(_PIECE)))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends empty lines forever",
            answering(Raw(b"", endless(b"\r\n" * _PIECE))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a status line of 10 MB",
            answering(Raw(b"HTTP/1.1 200 ", flood(b"O" * _PIECE, 640))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a status with two digits",
            answering(Raw(head("20 OK"), Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a status with four digits",
            answering(Raw(head("2000 OK"), Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends the status 999",
            answering(Raw(head("999 No", _LENGTH) + RULES, Connection.hang)),
        ),
        unreachable(
            "switches to another protocol",
            answering(Raw(head("101 Switching Protocols", "Upgrade: x"))),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends `103 Early Hints` ten times before its response",
            answering(
                Raw(
                    head("103 Early Hints", "Link: </style.css>; rel=preload") * 10
                    + head("200 OK", _LENGTH)
                    + RULES,
                    Connection.hang,
                )
            ),
        ),
        unreachable(
            "sends `103 Early Hints` forever",
            answering(Raw(b"", endless(head("103 Early Hints") * 64))),
            error="the response is too large",
        ),
        unreachable(
            "sends header lines forever",
            answering(Raw(b"HTTP/1.1 200 OK\r\n", endless(b"X-Header: x\r\n" * 999))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends one header line forever",
            answering(Raw(b"HTTP/1.1 200 OK\r\nX-Header: ", endless(b"x" * _PIECE))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends 20,000 short header lines",
            answering(
                _with_extra_lines(*(f"X-{number}: x" for number in range(20_000)))
            ),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends a header line of 40 KB",
            answering(_with_extra_lines("X-Header: " + "x" * 40_000)),
        ),
        unreachable(
            "sends a header line of 200 KB",
            answering(_with_extra_lines("X-Header: " + "x" * 200_000)),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends an `Age` and a `max-age` of 5,000 digits",
            answering(
                _with_extra_lines(
                    f"Age: {_ZEROS}9", f"Cache-Control: max-age={_ZEROS}9"
                )
            ),
        ),
        rules_apply(
            "sets 500 cookies",
            answering(
                _with_extra_lines(
                    *(f"Set-Cookie: name{n}={n:050}; Path=/" for n in range(500))
                )
            ),
        ),
        rules_apply(
            "sends 500 `Link` lines",
            answering(
                _with_extra_lines(*(f"Link: </{n:050}>; rel=x" for n in range(500)))
            ),
        ),
        unreachable(
            "sends a header line without a colon",
            answering(_with_extra_lines("X-Header")),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a zero byte in a header line",
            answering(_with_extra_lines("X-Header: a\0b")),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "folds a header line",
            answering(_with_extra_lines("X-Header: a\r\n  b")),
        ),
        rules_apply(
            "ends its lines with bare line feeds",
            answering(Raw(f"HTTP/1.1 200 OK\n{_LENGTH}\n\n".encode() + RULES)),
        ),
    ),
)

BODIES = Group(
    name="bodies",
    faults=(
        unreachable(
            "announces a longer body than it sends, and closes",
            answering(Raw(head("200 OK", "Content-Length: 9999") + RULES)),
            error="RemoteProtocolError",
        ),
        timed_out(
            "announces a longer body than it sends, and waits",
            answering(
                Raw(head("200 OK", "Content-Length: 9999") + RULES, Connection.hang)
            ),
        ),
        rules_apply(
            "announces a shorter body than it sends",
            answering(
                Raw(
                    head("200 OK", f"Content-Length: {len(RULES) - 3}") + RULES,
                    Connection.hang,
                )
            ),
        ),
        no_rules(
            "announces a length of 0, and sends rules",
            answering(
                Raw(head("200 OK", "Content-Length: 0") + RULES, Connection.hang)
            ),
        ),
        unreachable(
            "announces a negative length",
            answering(Raw(head("200 OK", "Content-Length: -1") + RULES)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "announces a length with 5,000 digits",
            answering(Raw(head("200 OK", "Content-Length: " + "9" * 5_000) + RULES)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "announces two lengths",
            answering(
                Raw(head("200 OK", "Content-Length: 9", "Content-Length: 8") + RULES)
            ),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "announces the same length twice",
            answering(_with_extra_lines(_LENGTH)),
        ),
        rules_apply(
            "announces a length, and sends chunks",
            answering(
                Raw(
                    head("200 OK", "Content-Length: 9", "Transfer-Encoding: chunked")
                    + chunked(RULES),
                    Connection.hang,
                )
            ),
        ),
        unreachable(
            "announces an unknown transfer coding",
            answering(Raw(head("200 OK", "Transfer-Encoding: gzip") + RULES)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends plain rules instead of chunks",
            answering(Raw(_CHUNKED + RULES.replace(b"\n", b"\r\n"), Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a chunk that is longer than its size",
            answering(Raw(_CHUNKED + b"9\r\n" + RULES, Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a chunk with a negative size",
            answering(Raw(_CHUNKED + b"-1\r\n" + RULES, Connection.hang)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends a chunk with a size of 2⁶⁴, and closes",
            answering(Raw(_CHUNKED + b"10000000000000000\r\n" + RULES)),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends an endless chunk size",
            answering(Raw(_CHUNKED, endless(b"1" * _PIECE))),
            error="RemoteProtocolError",
        ),
        unreachable(
            "sends an endless chunk extension",
            answering(Raw(_CHUNKED + b"9;x=", endless(b"x" * _PIECE))),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends chunks with short extensions",
            answering(
                Raw(
                    _CHUNKED
                    + b"%x;name=value\r\n%b\r\n0\r\n\r\n" % (len(RULES), RULES),
                    Connection.hang,
                )
            ),
        ),
        unreachable(
            "sends chunks of one byte, forever",
            answering(Raw(_CHUNKED + _OPEN_CHUNKS[:-3], endless(b"1\r\n#\r\n" * 999))),
            error="pieces",
            max_bytes=4 * _MEBIBYTE,
        ),
        unreachable(
            "sends chunks of ten bytes, forever",
            answering(Raw(_CHUNKED, endless(b"a\r\n#########\n\r\n" * 999))),
            error="pieces",
        ),
        unreachable(
            "closes before the last chunk",
            answering(Raw(_CHUNKED + _OPEN_CHUNKS[:-3])),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends 500 trailer lines",
            answering(
                Raw(
                    _CHUNKED + _OPEN_CHUNKS + b"X-Trailer: x\r\n" * 500 + b"\r\n",
                    Connection.hang,
                )
            ),
        ),
        unreachable(
            "sends 24,000 trailer lines",
            answering(
                Raw(_CHUNKED + _OPEN_CHUNKS + b"a:\r\n" * 24_000 + b"\r\n"),
            ),
            error="the response is too large",
        ),
        unreachable(
            "sends trailer lines forever",
            answering(Raw(_CHUNKED + _OPEN_CHUNKS, endless(b"X-Trailer: x\r\n" * 999))),
            error="RemoteProtocolError",
        ),
        rules_apply(
            "sends an endless body",
            answering(Raw(head("200 OK") + RULES, endless(b"#" * _PIECE))),
            max_bytes=4 * _MEBIBYTE,
        ),
        rules_apply(
            "announces a terabyte, and starts to send it",
            answering(
                Raw(
                    head("200 OK", f"Content-Length: {2**40}") + RULES,
                    endless(b"#" * _PIECE),
                )
            ),
            max_bytes=4 * _MEBIBYTE,
        ),
        no_rules(
            "sends a body after a 204",
            answering(Raw(head("204 No Content") + RULES, Connection.hang)),
        ),
    ),
)
