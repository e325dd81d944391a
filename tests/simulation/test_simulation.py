"""No simulation leads to a complaint; `tests/mutants.py` breaks the library."""

from __future__ import annotations

from collections import Counter

import pytest

from robotsgate import AccessResult, Reason

from .scenario import scenario
from .simulation import STEPS, failure_of, run_on

BOTH_LOOPS = pytest.mark.parametrize("backend", ["asyncio", "trio"])

# Everything that must happen at least once in the slow test.
EVENTS = [
    *(f"access {access.value}" for access in AccessResult),
    *(f"True: {reason.value}" for reason in Reason if reason.value.startswith("no_")),
    *(
        f"{allowed}: {reason.value}"
        for allowed, reason in (
            (True, Reason.ALLOWED_BY_RULE),
            (True, Reason.UNAVAILABLE),
            (True, Reason.UNREACHABLE_TOO_LONG),
            (True, Reason.OVERRIDDEN),
            (False, Reason.DISALLOWED_BY_RULE),
            (False, Reason.UNREACHABLE),
            (False, Reason.UNREACHABLE_TOO_LONG),
            (False, Reason.RESTRICTED),
            (False, Reason.ADDRESS_REFUSED),
        )
    ),
    "cancelled call",
    "stale copy",
]


@BOTH_LOOPS
@pytest.mark.parametrize("seed", range(6))
def test_few_seeds_pass(seed: int, backend: str) -> None:
    assert failure_of(seed, backend) is None


@pytest.mark.slow
@BOTH_LOOPS
def test_many_seeds_pass_and_cover_every_event(backend: str) -> None:
    total: Counter[str] = Counter()
    for seed in range(100, 160):
        total += run_on(backend, scenario(seed, STEPS))

    assert [event for event in EVENTS if not total[event]] == []
