"""Reads lines from stdin while fetches go on, in bounded memory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from io import BufferedReader

BLOCK_BYTES = 65_536

LONGEST_LINE = 2**20
"""A line of more bytes is not a URL, nor a record with one."""


async def blocks_of_lines() -> AsyncIterator[tuple[list[bytes], int]]:
    """The lines of stdin without their ends, some at a time.

    Yields:
        Lines, and how many bytes of stdin were read so far. A line of more than
        `LONGEST_LINE` bytes may be cut, but stays longer than that.
    """
    source = cast("BufferedReader", sys.stdin.buffer)
    rest, bytes_read, can_wait = b"", 0, True
    while True:
        if can_wait:
            try:
                await anyio.wait_readable(source.fileno())
            except OSError:  # a file, which needs no wait
                can_wait = False
        block = source.read1(BLOCK_BYTES)
        bytes_read += len(block)
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[: LONGEST_LINE + 1]
        if not block:
            if rest:
                yield [rest], bytes_read
            return
        if lines:
            yield lines, bytes_read
