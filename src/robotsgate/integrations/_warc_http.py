"""Reads a WARC record's HTTP response, with the same decoder and limits as a fetch.

Some crawlers store decoded bodies with the original headers: Common Crawl did so until
August 2018, and its news crawl until May 2019. So a body is only decompressed if its
first bytes look compressed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator  # noqa: TC003 (NamedTuple)
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import h11

from robotsgate.fetching import Body, CodingError, as_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastwarc.warc import WarcRecord

_BLOCK = 65_536
_LONGEST_HEAD = 100 * 1024  # the same as for a fetch
_STATUS = re.compile(rb"HTTP/\S*[ \t]+([1-9][0-9]{2})(?![^ \t\r\n])")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")

_START = 64
"""How many bytes are enough to tell whether a body is compressed."""
_CHUNK = re.compile(rb"[0-9A-Fa-f]{1,16}[ \t]*(?:;[^\r\n]*)?\r?\n")
_LENGTH = re.compile(r"[0-9]{1,18}")
_GZIP = b"\x1f\x8b"

_HEAD_BEFORE_CHUNKS = b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"


class StoredResponse(NamedTuple):
    """An HTTP response stored in a WARC record.

    Attributes:
        status: 100 to 999.
        headers: pairs (name, value).
        pieces: the stored body, which can only be read while its record is current;
            raises `CodingError` at the end if the record is truncated.
    """

    status: int
    headers: list[tuple[str, str]]
    pieces: Iterator[bytes]


def stored_response(record: WarcRecord) -> StoredResponse | None:
    """The response in `record`; `None` if it is not HTTP or has incomplete headers.

    Raises:
        OSError: the record is damaged.
    """
    pieces = _pieces(record)
    head = b""
    end = None
    try:
        while end is None and len(head) <= _LONGEST_HEAD:
            head += next(pieces)
            end = _END_OF_HEAD.search(head)
    except (StopIteration, CodingError):
        return None
    status = _STATUS.match(head)
    if end is None or status is None:
        return None
    lines = [line.partition(b":") for line in head[: end.start()].splitlines()]
    headers = [(name.strip(), value.strip()) for name, colon, value in lines if colon]
    return StoredResponse(
        int(status[1]), as_pairs(headers), chain([head[end.end() :]], pieces)
    )


def whole_body(response: StoredResponse, status: int, *, max_bytes: int) -> bytes:
    """The decoded body of `response`, or as much of it as `status` requires.

    Raises:
        CodingError: the body is truncated or corrupt.
        OSError: the response's record is damaged.
    """
    if Body(status, (), max_bytes=max_bytes).is_over:
        return b""
    headers = {name.lower(): value.lower() for name, value in response.headers}
    is_chunked = "chunked" in headers.get("transfer-encoding", "")
    is_gzip = headers.get("content-encoding") in {"gzip", "x-gzip"}
    start, pieces = _beginning(response.pieces)
    if is_chunked and (not start or _CHUNK.match(start)):
        start, pieces = _beginning(_without_chunks(pieces))
    is_decoded = is_gzip and start != b"" and not start.startswith(_GZIP)
    body = Body(status, () if is_decoded else response.headers, max_bytes=max_bytes)
    for piece in pieces:
        body.feed(piece)
        if body.is_over:
            return bytes(body)
    body.finish()
    length = headers.get("content-length", "")
    is_length_of_body = not is_chunked and not is_decoded and _LENGTH.fullmatch(length)
    if is_length_of_body and body.raw_bytes < int(length):
        raise CodingError(f"expected {length} bytes, got {body.raw_bytes}")
    return bytes(body)


def _pieces(record: WarcRecord) -> Iterator[bytes]:
    bytes_left = record.content_length
    while piece := record.reader.read(_BLOCK):
        bytes_left -= len(piece)
        yield piece
    headers = record.headers
    if bytes_left or "WARC-Truncated" in headers or "WARC-Segment-Number" in headers:
        raise CodingError("the record is cut off")


def _beginning(pieces: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of `pieces`, and an iterator over all the pieces."""
    start = b""
    for piece in pieces:
        start += piece
        if len(start) >= _START:
            break
    return start, chain([start], pieces)


def _without_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "")]))
    connection.send(h11.EndOfMessage())
    try:
        for piece in chain([_HEAD_BEFORE_CHUNKS], filter(None, pieces)):
            connection.receive_data(piece)
            while (event := connection.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.EndOfMessage):
                    return
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
    except h11.RemoteProtocolError as error:
        raise CodingError(str(error)) from error
    raise CodingError("the last chunk is missing")
