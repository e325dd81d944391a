"""No simulation leads to a complaint, and every sabotage does."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Reason

from .__main__ import main
from .sabotage import SABOTAGES
from .scenario import scenario
from .simulation import STEPS, failure_of, run_on

if TYPE_CHECKING:
    from .sabotage import Sabotage

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
    "event StoreFailed",
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


@pytest.mark.parametrize(("sabotage", "complaint"), SABOTAGES.values(), ids=SABOTAGES)
def test_sabotage_leads_to_its_complaint(
    sabotage: Sabotage, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(complaint in str(failure_of(seed, "asyncio")) for seed in range(20))


def test_command_prints_the_same_few_steps_for_a_failing_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    SABOTAGES["outage forgets the copy"][0](monkeypatch)
    command = ["--seeds", "20"]

    outputs = []
    for _ in range(2):
        assert main(command) == 1
        outputs.append(capsys.readouterr().out)

    assert outputs[0] == outputs[1]
    assert "again: python -m tests.simulation --start" in outputs[0]
    # An answer, an outage and a lookup suffice; the list has few other steps.
    assert outputs[0].count("\n") < 40
