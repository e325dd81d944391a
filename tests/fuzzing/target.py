"""Fuzzing targets, and how bytes become their arguments."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

SEPARATOR = b"\xfe"
"""Separates the fields of an input: a byte that never occurs in UTF-8."""

# Far more processor time than anything here takes, even instrumented.
_MAX_SECONDS = 2.0

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A check to fuzz, with its seeds and dictionary."""

    check: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    max_length: int


def fields(data: bytes, count: int) -> list[bytes]:
    """Split `data` into `count` fields; missing ones are empty.

    Only the last one can contain a `SEPARATOR`.
    """
    parts = data.split(SEPARATOR, count - 1)
    return parts + [b""] * (count - len(parts))


def joined(*parts: bytes) -> bytes:
    """The input that `fields` splits into `parts`."""
    return SEPARATOR.join(parts)


def as_text(data: bytes) -> str:
    """Decode to any text, including lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def as_header(data: bytes) -> str:
    """Decode a header value as httpx does."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def in_time(what: str, result: Callable[[], _Result]) -> _Result:
    """Return what `result` returns; fail if it takes too much processor time."""
    began_at = time.thread_time()
    value = result()
    seconds = time.thread_time() - began_at
    assert seconds < _MAX_SECONDS, f"{what} took {seconds:.1f} s"
    return value
