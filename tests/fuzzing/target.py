"""What can be fuzzed, and how a few octets become the arguments of a target."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

SEPARATOR = b"\xfe"
"""Between two fields of an input: an octet that UTF-8 never has."""

# Far above what anything here may take, instrumented and on a loaded machine.
_MOST_SECONDS = 2.0
_ATTEMPTS = 3

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One thing to fuzz."""

    check: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]
    max_length: int


def fields(data: bytes, count: int) -> list[bytes]:
    """`data` cut into `count` fields; those that it lacks are empty.

    Only the last one can hold a `SEPARATOR`.
    """
    found = data.split(SEPARATOR, count - 1)
    return found + [b""] * (count - len(found))


def joined(*parts: bytes) -> bytes:
    """The input that `fields` cuts into `parts`."""
    return SEPARATOR.join(parts)


def as_text(octets: bytes) -> str:
    """Any text, those with lone surrogates included."""
    return octets.decode("utf-8", "surrogateescape")


def as_header(octets: bytes) -> str:
    """The value of a header as httpx reads it."""
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return octets.decode("latin-1")


def in_time(what: str, result: Callable[[], _Result]) -> _Result:
    """What `result` gives; fails if it takes too long.

    It must be too slow each time: a machine may stand still for a moment.
    """
    for _ in range(_ATTEMPTS):
        begin = time.perf_counter()
        found = result()
        seconds = time.perf_counter() - begin
        if seconds < _MOST_SECONDS:
            return found
    raise AssertionError(f"{what} took {seconds:.1f} s")
