"""The targets hold on their seeds and on mutated ones, without a fuzzer."""

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

_MUTANTS = 100


def mutant(target: Target, chance: Random) -> bytes:
    """A seed with some octets put in, left out or changed."""
    octets = bytearray(chance.choice(target.seeds))
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(octets) + 1)
        change = chance.randrange(4)
        if change == 0:
            octets[place:place] = chance.choice(target.words)
        elif change == 1:
            del octets[place : place + chance.randrange(1, 4)]
        elif change == 2:
            octets[place : place + 1] = bytes([chance.randrange(256)])
        else:
            octets[place:place] = chance.choice(target.seeds)[: chance.randrange(30)]
    return bytes(octets[: target.max_length])


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_holds_on_its_seeds_and_on_nothing(target: Target) -> None:
    for seed in (*target.seeds, b""):
        assert len(seed) <= target.max_length

        target.check(seed)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_holds_on_mutants(target: Target) -> None:
    chance = Random(1)  # noqa: S311 (reproducible, no secret)

    for _ in range(_MUTANTS):
        data = mutant(target, chance)
        try:
            target.check(data)
        except Exception as error:
            error.add_note(f"input: {data!r}")
            raise


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_target_holds_on_noise(target: Target) -> None:
    chance = Random(2)  # noqa: S311 (reproducible, no secret)

    for _ in range(_MUTANTS):
        target.check(chance.randbytes(chance.randrange(64)))


@pytest.fixture
def wrong_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """A target that takes no "x"."""

    def check(data: bytes) -> None:
        assert b"x" not in data

    target = Target(check=check, seeds=(), words=(), max_length=9)
    monkeypatch.setitem(TARGETS, "wrong", target)


@pytest.mark.usefixtures("wrong_target")
def test_finding_is_replayed_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad").write_bytes(b"abcxdef")
    (tmp_path / "good").write_bytes(b"abc")
    monkeypatch.setattr(sys, "argv", ["fuzzing", "wrong", "--replay", str(tmp_path)])

    assert main() == 1

    place, failure, data, summary = capsys.readouterr().out.splitlines()
    assert place == str(tmp_path / "bad")
    assert failure.startswith("AssertionError in check, line ")
    assert data == "    on b'x'"
    assert summary == "2 inputs, findings: 1"
