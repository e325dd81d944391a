"""Every target passes on its seeds and on mutated ones, without a fuzzer."""

from __future__ import annotations

import sys
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.fuzzing.__main__ import main
from tests.fuzzing.target import Target
from tests.fuzzing.targets import TARGETS

if TYPE_CHECKING:
    from pathlib import Path

_INPUTS = 100


def mutant(target: Target, rng: Random) -> bytes:
    """A seed with some bytes inserted, removed or changed."""
    result = bytearray(rng.choice(target.seeds))
    for _ in range(rng.randrange(1, 6)):
        position = rng.randrange(len(result) + 1)
        change = rng.randrange(4)
        if change == 0:
            result[position:position] = rng.choice(target.words)
        elif change == 1:
            del result[position : position + rng.randrange(1, 4)]
        elif change == 2:
            result[position : position + 1] = bytes([rng.randrange(256)])
        else:
            result[position:position] = rng.choice(target.seeds)[: rng.randrange(30)]
    return bytes(result[: target.max_length])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_passes_on_its_seeds_and_on_empty_input(target: Target) -> None:
    for seed in (*target.seeds, b""):
        assert len(seed) <= target.max_length

        target.check(seed)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_passes_on_mutated_seeds(target: Target) -> None:
    rng = Random(1)  # noqa: S311 (reproducible, not secret)

    for _ in range(_INPUTS):
        data = mutant(target, rng)
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"input: {data!r}")
            raise


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_passes_on_random_bytes(target: Target) -> None:
    rng = Random(2)  # noqa: S311 (reproducible, not secret)

    for _ in range(_INPUTS):
        target.check(rng.randbytes(rng.randrange(64)))


@pytest.fixture
def failing_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that fails on "x"."""

    def check(data: bytes) -> None:
        assert b"x" not in data

    target = Target(check=check, seeds=(), words=(), max_length=9)
    monkeypatch.setitem(TARGETS, "failing", target)


@pytest.mark.usefixtures("failing_target")
def test_replay_prints_a_small_input_for_each_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_bytes(b"abcxdef")
    (tmp_path / "good").write_bytes(b"abc")
    monkeypatch.setattr(sys, "argv", ["fuzzing", "failing", "--replay", str(tmp_path)])

    assert main() == 1

    file, failure, data, summary = capsys.readouterr().out.splitlines()
    assert file == str(tmp_path / "bad")
    assert failure.startswith("AssertionError in check, line ")
    assert data == "    on b'x'"
    assert summary == "2 inputs, findings: 1"
