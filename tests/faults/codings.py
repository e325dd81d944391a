"""Content codings, correct, broken and malicious."""

from __future__ import annotations

import codecs
import gzip
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.faults.fault import RULES
from tests.faults.rows import head, no_rules, raw, reply, rules_apply, unreachable
from tests.servers.answers import Reply, endless
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_MEBIBYTE = 2**20
_GZIPPED = gzip.compress(RULES)
_ROT13 = codecs.encode(RULES.decode(), "rot13").encode()
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


def _with_wrong_checksum() -> bytes:
    return _GZIPPED[:-8] + bytes(4) + _GZIPPED[-4:]


CODINGS = (
    rules_apply("sends gzip", _coded("gzip", _GZIPPED)),
    rules_apply("sends gzip and calls it `X-GZIP`", _coded("X-GZIP", _GZIPPED)),
    rules_apply(
        "sends deflate with the header of zlib", _coded("deflate", zlib.compress(RULES))
    ),
    rules_apply(
        "sends deflate without the header of zlib",
        _coded("deflate", zlib.compress(RULES, wbits=_RAW_WINDOW)),
    ),
    rules_apply("announces `identity`", _coded("identity", RULES)),
    unreachable(
        "sends gzip within gzip",
        _coded("gzip, gzip", gzip.compress(_GZIPPED)),
        error="gzip, gzip",
    ),
    unreachable(
        "sends gzip within deflate, announced on two lines",
        raw(
            head("200 OK", "Content-Encoding: gzip", "Content-Encoding: deflate")
            + zlib.compress(_GZIPPED)
        ),
        error="gzip, deflate",
    ),
    unreachable("sends `br`", _coded("br", b"\x0b\x0f\x80" + RULES), error="'br'"),
    unreachable("sends `zstd`", _coded("zstd", b"\x28\xb5\x2f\xfd"), error="'zstd'"),
    rules_apply("calls a character set a coding", _coded("UTF-8", RULES)),
    unreachable("sends an unknown coding", _coded("rot13", _ROT13), error="'rot13'"),
    no_rules("announces an unknown coding, for an empty body", _coded("br", b"")),
    no_rules("announces gzip for an empty body", _coded("gzip", b"")),
    unreachable(
        "announces gzip and sends the plain rules",
        _coded("gzip", RULES),
        error="CodingError",
    ),
    unreachable(
        "announces deflate and sends the plain rules",
        _coded("deflate", RULES),
        error="CodingError",
    ),
    unreachable(
        "announces gzip and sends deflate",
        _coded("gzip", zlib.compress(RULES)),
        error="CodingError",
    ),
    rules_apply("sends gzip without announcing it", reply(body=_GZIPPED)),
    unreachable(
        "sends gzip within gzip without announcing it",
        reply(body=gzip.compress(_GZIPPED)),
        error="more than once",
    ),
    unreachable(
        "sends truncated gzip", _coded("gzip", _GZIPPED[:-12]), error="cut off"
    ),
    unreachable(
        "sends gzip without its last byte",
        _coded("gzip", _GZIPPED[:-1]),
        error="cut off",
    ),
    unreachable("sends one byte of gzip", _coded("gzip", b"\x1f"), error="cut off"),
    unreachable(
        "sends gzip with a wrong checksum",
        _coded("gzip", _with_wrong_checksum()),
        error="CodingError",
    ),
    unreachable(
        "sends gzip with a wrong length",
        _coded("gzip", _GZIPPED[:-4] + b"\xff" * 4),
        error="CodingError",
    ),
    rules_apply(
        "sends several gzip members",
        _coded("gzip", gzip.compress(RULES[:9]) + gzip.compress(RULES[9:])),
    ),
    unreachable(
        "sends gzip whose second member is broken",
        _coded("gzip", _GZIPPED + _GZIPPED[:15]),
        error="CodingError",
    ),
    rules_apply("sends gzip followed by garbage", _coded("gzip", _GZIPPED + RULES)),
    rules_apply(
        "sends deflate followed by endless garbage",
        raw(
            head("200 OK", "Content-Encoding: deflate") + zlib.compress(RULES),
            endless(bytes(16_384)),
        ),
    ),
    rules_apply(
        "sends 64 KiB of gzip that decompress to 64 MiB", _bomb("gzip", _GZIP_WINDOW)
    ),
    rules_apply(
        "sends 64 KiB of deflate that decompress to 64 MiB",
        _bomb("deflate", _RAW_WINDOW),
    ),
    unreachable(
        "sends empty gzip members forever",
        raw(
            head("200 OK", "Content-Encoding: gzip"), endless(gzip.compress(b"") * 800)
        ),
        error="gzip members",
    ),
    unreachable(
        "sends empty deflate blocks forever",
        raw(
            head("200 OK", "Content-Encoding: deflate"),
            endless(b"\0\0\0\xff\xff" * 3_000),
        ),
        error="almost nothing",
        max_bytes=4 * _MEBIBYTE,
    ),
    rules_apply(
        "sends gzip and keeps the connection open",
        raw(
            head("200 OK", "Content-Encoding: gzip", f"Content-Length: {len(_GZIPPED)}")
            + _GZIPPED,
            Connection.hang,
        ),
    ),
)
