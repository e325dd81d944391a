"""Content codings and the tricks that are played with them."""

from __future__ import annotations

import gzip
import zlib
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.faults.fault import RULES, Group
from tests.faults.rows import answering, head, no_rules, rules_decide, unreachable
from tests.servers.answers import Raw, Reply, endless
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.stage import Stage

_MEBIBYTE = 2**20
_GZIPPED = gzip.compress(RULES)
_RAW_WINDOW, _GZIP_WINDOW = -15, 31


def _coded(coding: str, body: bytes, **headers: Any) -> Callable[[Stage], str]:  # noqa: ANN401 (header lines)
    return answering(Reply(headers={"Content-Encoding": coding, **headers}, body=body))


def _bomb(coding: str, window: int) -> Callable[[Stage], str]:
    def arrange(stage: Stage) -> str:
        answer = Reply(headers={"Content-Encoding": coding}, body=_swelling(window))
        return stage.serve(answer).url

    return arrange


@cache
def _swelling(window: int) -> bytes:
    """The rules and 64 MiB, as about 64 KiB."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, window)
    pieces = [deflate.compress(RULES)]
    pieces += [deflate.compress(b"#" * _MEBIBYTE) for _ in range(64)]
    return b"".join([*pieces, deflate.flush()])


def _with_wrong_sum() -> bytes:
    return _GZIPPED[:-8] + bytes(4) + _GZIPPED[-4:]


CODINGS = Group(
    name="codings",
    faults=(
        rules_decide("sends gzip", _coded("gzip", _GZIPPED)),
        rules_decide("sends gzip and calls it `X-GZIP`", _coded("X-GZIP", _GZIPPED)),
        rules_decide(
            "sends deflate with the header of zlib",
            _coded("deflate", zlib.compress(RULES)),
        ),
        rules_decide(
            "sends deflate without the header of zlib",
            _coded("deflate", zlib.compress(RULES, wbits=_RAW_WINDOW)),
        ),
        rules_decide("announces `identity`", _coded("identity", RULES)),
        unreachable(
            "sends gzip within gzip",
            _coded("gzip, gzip", gzip.compress(_GZIPPED)),
            says="gzip, gzip",
        ),
        unreachable(
            "sends gzip within deflate, announced on two lines",
            answering(
                Raw(
                    head(
                        "200 OK", "Content-Encoding: gzip", "Content-Encoding: deflate"
                    )
                    + zlib.compress(_GZIPPED)
                )
            ),
            says="gzip, deflate",
        ),
        unreachable("sends `br`", _coded("br", b"\x0b\x0f\x80" + RULES), says="'br'"),
        unreachable("sends `zstd`", _coded("zstd", b"\x28\xb5\x2f\xfd"), says="'zstd'"),
        unreachable("sends an unknown coding", _coded("rot13", RULES), says="'rot13'"),
        no_rules("announces an unknown coding, for an empty body", _coded("br", b"")),
        no_rules("announces gzip for an empty body", _coded("gzip", b"")),
        unreachable(
            "announces gzip and sends the plain rules",
            _coded("gzip", RULES),
            says="CodingError",
        ),
        unreachable(
            "announces deflate and sends the plain rules",
            _coded("deflate", RULES),
            says="CodingError",
        ),
        unreachable(
            "announces gzip and sends deflate",
            _coded("gzip", zlib.compress(RULES)),
            says="CodingError",
        ),
        no_rules("sends gzip without announcing it", answering(Reply(body=_GZIPPED))),
        unreachable(
            "sends truncated gzip",
            _coded("gzip", _GZIPPED[:-12]),
            says="cut off",
        ),
        unreachable(
            "sends gzip without its last byte",
            _coded("gzip", _GZIPPED[:-1]),
            says="cut off",
        ),
        unreachable("sends one byte of gzip", _coded("gzip", b"\x1f"), says="cut off"),
        unreachable(
            "sends gzip with a wrong checksum",
            _coded("gzip", _with_wrong_sum()),
            says="CodingError",
        ),
        unreachable(
            "sends gzip with a wrong length",
            _coded("gzip", _GZIPPED[:-4] + b"\xff" * 4),
            says="CodingError",
        ),
        rules_decide(
            "sends several gzip members",
            _coded("gzip", gzip.compress(RULES[:9]) + gzip.compress(RULES[9:])),
        ),
        unreachable(
            "sends gzip whose second member is broken",
            _coded("gzip", _GZIPPED + _GZIPPED[:15]),
            says="CodingError",
        ),
        rules_decide(
            "sends gzip followed by garbage", _coded("gzip", _GZIPPED + RULES)
        ),
        rules_decide(
            "sends deflate followed by endless garbage",
            answering(
                Raw(
                    head("200 OK", "Content-Encoding: deflate") + zlib.compress(RULES),
                    endless(bytes(16_384)),
                )
            ),
        ),
        rules_decide(
            "sends 64 KiB of gzip that decompress to 64 MiB",
            _bomb("gzip", _GZIP_WINDOW),
        ),
        rules_decide(
            "sends 64 KiB of deflate that decompress to 64 MiB",
            _bomb("deflate", _RAW_WINDOW),
        ),
        unreachable(
            "sends empty gzip members forever",
            answering(
                Raw(
                    head("200 OK", "Content-Encoding: gzip"),
                    endless(gzip.compress(b"") * 800),
                )
            ),
            says="almost nothing",
            max_bytes=4 * _MEBIBYTE,
        ),
        rules_decide(
            "sends gzip and keeps the connection open",
            answering(
                Raw(
                    head(
                        "200 OK",
                        "Content-Encoding: gzip",
                        f"Content-Length: {len(_GZIPPED)}",
                    )
                    + _GZIPPED,
                    Connection.hang,
                )
            ),
        ),
    ),
)
