"""Sorts many lines by origin on disk, then puts the results back into input order.

    lines in order ──► piles of lines, each for some of the origins
                            │ processed by the caller, pile by pile
                            ▼
    results in order ◄── piles of results

Each pile preserves the order of its lines, so recording which pile each line went to is
enough to know which pile holds the next result.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Self

from robotsgate.cli._shell import BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

# The size of the lines on disk; the results take about as much again. Short lines count
# as longer than they are, because each line takes a byte of memory.
_MOST_BYTES = 256 * 2**20
_LEAST_BYTES_OF_A_LINE = 32

# With 640,000 origins, each pile holds 10,000 of them. Each pile is an open file.
_PILES = 64

_RESULTS_AT_ONCE = 1_000


class Window:
    """Lines on disk, sorted by origin.

    Attributes:
        is_full: whether the window has reached its limit.
    """

    def __init__(self, origin_of: Callable[[bytes], Hashable], *, folder: str) -> None:
        """Start empty.

        Args:
            origin_of: returns a line's origin, or any other key.
            folder: the folder for temporary files.
        """
        self._origin_of = origin_of
        self._folder = folder
        self._files = ExitStack()
        self._piles = [self._new_pile() for _ in range(_PILES)]
        self._result_piles: list[IO[bytes]] = []
        self._dealt = bytearray()  # which pile each line went to
        self._bytes = 0

    def __enter__(self) -> Self:
        """Return the window itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the window's files."""
        self._files.close()

    @property
    def is_full(self) -> bool:
        return self._bytes >= _MOST_BYTES

    def add(self, lines: Iterable[bytes]) -> None:
        """Distribute `lines` among the piles, skipping blank lines."""
        for line in filter(None, map(bytes.strip, lines)):
            number = hash(self._origin_of(line)) % _PILES
            self._piles[number].write(line + b"\n")
            self._dealt.append(number)
            self._bytes += max(len(line), _LEAST_BYTES_OF_A_LINE)

    def blocks(self) -> Iterator[tuple[list[bytes], Callable[[list[bytes]], None]]]:
        """All lines in batches, pile by pile.

        Yields:
            A batch of lines, and a function to call with their results. A pile's
            results must be in the same order as its lines.
        """
        for pile in self._piles:
            results = self._new_pile()
            self._result_piles.append(results)

            def take(some: list[bytes], pile: IO[bytes] = results) -> None:
                pile.writelines([result + b"\n" for result in some])

            with pile:
                pile.seek(0)
                while lines := pile.readlines(BLOCK_BYTES):
                    yield lines, take

    def results(self) -> Iterator[list[bytes]]:
        """The results in input order, in batches."""
        for pile in self._result_piles:
            pile.seek(0)
        numbers = iter(self._dealt)
        piles = self._result_piles
        while some := [
            next(piles[number])[:-1] for number in islice(numbers, _RESULTS_AT_ONCE)
        ]:
            yield some

    def _new_pile(self) -> IO[bytes]:
        file = TemporaryFile(dir=self._folder, buffering=BLOCK_BYTES)  # noqa: SIM115
        return self._files.enter_context(file)
