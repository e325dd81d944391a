"""The windows of `robotsgate filter`: order, loads and pipes that stay open."""

from __future__ import annotations

import io
import os
from collections import OrderedDict
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate.cli import _line_filter
from robotsgate.cli._line_filter import LineFilter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.anyio

_MOST_ORIGINS = 10


class _CountingAnswerer:
    """An answerer that keeps few origins in memory and counts how many it loads."""

    def __init__(self) -> None:
        self.memory: OrderedDict[bytes, None] = OrderedDict()
        self.loads = 0

    @property
    def reloads(self) -> int:
        return max(0, self.loads - _MOST_ORIGINS)

    def origin_of(self, line: bytes) -> bytes:
        return line.partition(b"/")[0]

    async def answer(self, lines: Iterable[bytes]) -> list[bytes]:
        stripped = [line.strip() for line in lines if line.strip()]
        for line in stripped:
            origin = self.origin_of(line)
            if origin not in self.memory:
                self.loads += 1
            self.memory[origin] = None
            self.memory.move_to_end(origin)
            if len(self.memory) > _MOST_ORIGINS:
                self.memory.popitem(last=False)
        return stripped


def _lines(count: int, origins: int) -> list[bytes]:
    # As if shuffled: the factor and the number of origins are coprime.
    return [b"%d/%060d" % (n * 7_919 % origins, n) for n in range(count)]


async def test_window_saves_loads_and_keeps_the_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = _lines(60_000, origins=200)
    stdin = b" \n\r\n".join(lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    answerer, results, positions = _CountingAnswerer(), list[bytes](), list[int]()

    def take(batch: list[bytes], position: int) -> None:
        results.extend(batch)
        positions.append(position)

    await LineFilter(answerer, take, folder=f"{tmp_path}").run()

    assert results == lines
    assert answerer.loads < 30_000  # 60,000 without a window
    assert positions == sorted(positions)
    assert positions[-1] == len(stdin)
    assert os.listdir(tmp_path) == []  # noqa: PTH208 (a Path would block the loop)


async def _filtered(
    monkeypatch: pytest.MonkeyPatch, lines: list[bytes], folder: Path
) -> list[bytes]:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines))))
    results: list[bytes] = []
    work = LineFilter(
        _CountingAnswerer(), lambda batch, _: results.extend(batch), folder=f"{folder}"
    )
    await work.run()
    return results


async def test_lines_whose_origins_fit_in_memory_need_no_window(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = _lines(30_000, origins=_MOST_ORIGINS)

    assert await _filtered(monkeypatch, lines, tmp_path / "missing") == lines


async def test_full_window_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("robotsgate.cli._window._MOST_BYTES", 1_000_000)
    lines = _lines(60_000, origins=200)

    assert await _filtered(monkeypatch, lines, tmp_path) == lines


async def test_window_does_not_wait_for_the_end_of_a_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_line_filter, "_PATIENCE_SECONDS", 0.2)
    lines = _lines(30_000, origins=200)
    reading, writing = os.pipe()
    results: list[bytes] = []
    done_event = anyio.Event()

    def take(batch: list[bytes], _: int) -> None:
        results.extend(batch)
        if len(results) == len(lines):
            done_event.set()

    def write() -> None:
        with open(writing, "wb", closefd=False) as pipe:
            pipe.write(b"\n".join(lines) + b"\n")

    with open(reading) as stdin:  # noqa: PTH123, ASYNC230 (a file descriptor)
        monkeypatch.setattr("sys.stdin", stdin)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                work = LineFilter(_CountingAnswerer(), take, folder=f"{tmp_path}")
                tasks.start_soon(work.run)
                await anyio.to_thread.run_sync(write)
                await done_event.wait()
                os.close(writing)

    assert results == lines
