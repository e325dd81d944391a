"""A small soak test."""

from __future__ import annotations

import sys

import pytest

soak = pytest.importorskip("tests.soak", reason="Windows has no module resource")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_small_soak_meets_all_requirements(loop: str) -> None:
    small = soak.Soak(
        origins=36, lookups=600, concurrency=50, rounds=2, read_timeout=1.0, loop=loop
    )

    missed = {
        what: value
        for what, (value, most) in soak.run_soak(small).items()
        if value > most
    }

    assert not missed
