"""Content codings, correct, broken and malicious."""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.faults.fault import RULES
from tests.faults.rows import head, raw, reply, rules_apply, unreachable
from tests.servers.answers import Reply, endless
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_MEBIBYTE = 2**20
_GZIPPED = gzip.compress(RULES)
_RAW_WINDOW, _GZIP_WINDOW = -15, 31


def _coded(coding: str, body: bytes, **headers: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (header lines)
    return reply(headers={"Content-Encoding": coding, **headers}, body=body)


def _bomb(coding: str, window: int) -> Callable[[Stage], str]:
    def arrange(stage: Stage) -> str:
        answer = Reply(headers={"Content-Encoding": coding}, body=_bomb_bytes(window))
        return stage.serve(answer).url

    return arrange


@cache
def _bomb_bytes(window: int) -> bytes:
    """The rules and 64 MiB of padding, compressed to about 64 KiB."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, window)
    pieces = [deflate.compress(RULES)]
    pieces += [deflate.compress(b"#" * _MEBIBYTE) for _ in range(64)]
    return b"".join([*pieces, deflate.flush()])


CODINGS = (
    rules_apply("sends gzip", _coded("gzip", _GZIPPED)),
    rules_apply("sends deflate without the header of zlib",
        _coded("deflate", zlib.compress(RULES, wbits=_RAW_WINDOW))),
    unreachable("sends gzip within gzip",
        _coded("gzip, gzip", gzip.compress(_GZIPPED)), error="gzip, gzip"),
    unreachable("sends gzip within deflate, announced on two lines", raw(head("200 OK",
        "Content-Encoding: gzip",
        "Content-Encoding: deflate") + zlib.compress(_GZIPPED)),
        error="gzip, deflate"),
    unreachable("sends `br`", _coded("br", b"\x0b\x0f\x80" + RULES), error="'br'"),
    unreachable("announces gzip and sends the plain rules", _coded("gzip", RULES),
        error="CodingError"),
    rules_apply("sends gzip without announcing it", reply(body=_GZIPPED)),
    unreachable("sends gzip within gzip without announcing it",
        reply(body=gzip.compress(_GZIPPED)), error="more than once"),
    unreachable("sends truncated gzip", _coded("gzip", _GZIPPED[:-12]),
        error="cut off"),
    rules_apply("sends deflate followed by endless garbage",
        raw(head("200 OK", "Content-Encoding: deflate") + zlib.compress(RULES),
        endless(bytes(16_384)))),
    rules_apply("sends 64 KiB of gzip that decompress to 64 MiB",
        _bomb("gzip", _GZIP_WINDOW)),
    unreachable("sends empty gzip members forever",
        raw(head("200 OK", "Content-Encoding: gzip"),
        endless(gzip.compress(b"") * 800)), error="gzip members"),
    unreachable("sends empty deflate blocks forever",
        raw(head("200 OK", "Content-Encoding: deflate"),
        endless(b"\0\0\0\xff\xff" * 3_000)), error="almost nothing",
        max_bytes=4 * _MEBIBYTE),
    rules_apply("sends gzip and keeps the connection open", raw(head("200 OK",
        "Content-Encoding: gzip", f"Content-Length: {len(_GZIPPED)}") + _GZIPPED,
        Connection.hang)),
)  # fmt: skip
