"""Builds WARC files byte by byte."""

from __future__ import annotations

import gzip
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

RULES = b"User-agent: *\nDisallow: /private\n"
DAY = "2024-01-02T03:04:05Z"

_ids = count()


def http(
    body: bytes = RULES, *, head: bytes = b"", status: bytes = b"HTTP/1.1 200 OK"
) -> bytes:
    """A response; `head` contains its header lines, each with its line ending."""
    return status + b"\r\n" + head + b"\r\n" + body


def record(
    url: str,
    block: bytes | None = None,
    *,
    kind: str = "response",
    date: str = DAY,
    record_id: str | None = None,
    length: int | None = None,
    **headers: str,
) -> bytes:
    """One record; `headers` are WARC header lines, with "_" for "-"."""
    block = http() if block is None else block
    lines = {
        "WARC-Type": kind,
        "WARC-Record-ID": record_id or f"<urn:uuid:{next(_ids)}>",
        "WARC-Date": date,
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=response",
        **{name.replace("_", "-"): value for name, value in headers.items()},
        "Content-Length": str(len(block) if length is None else length),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return b"WARC/1.0\r\n" + head.encode() + b"\r\n" + block + b"\r\n\r\n"


def redirect(url: str, target: str, *, date: str = DAY, status: int = 301) -> bytes:
    head = f"Location: {target}\r\n".encode()
    return record(
        url, http(b"", head=head, status=b"HTTP/1.1 %d Moved" % status), date=date
    )


def plain(*records: bytes) -> bytes:
    return b"".join(records)


def zipped(*records: bytes) -> bytes:
    """Each record in its own gzip member, as the standard recommends."""
    return b"".join(map(member, records))


def zipped_together(*records: bytes) -> bytes:
    return member(b"".join(records))


def stored(*records: bytes) -> bytes:
    """Like `zipped`, but uncompressed inside the members."""
    return b"".join(gzip.compress(one, compresslevel=0, mtime=0) for one in records)


def in_zstd(*records: bytes) -> bytes:
    """Each record in its own frame, as one raw block (RFC 8878)."""
    return b"".join(
        b"\x28\xb5\x2f\xfd\xa0"
        + len(data).to_bytes(4, "little")
        + (len(data) << 3 | 1).to_bytes(3, "little")
        + data
        for data in records
    )


def member(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def chunked(body: bytes, *, size: int = 1_000) -> bytes:
    pieces: Iterable[bytes] = (
        body[start : start + size] for start in range(0, len(body), size)
    )
    chunks = [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces]
    return b"".join(chunks) + b"0\r\n\r\n"
