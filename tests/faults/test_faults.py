"""Every server fault has the documented outcome, at a bounded cost."""

from __future__ import annotations

import anyio
import pytest

from tests.faults.fault import Fault, observe, warm_up
from tests.faults.matrix import GROUPS

FAULTS = [fault for group in GROUPS for fault in group.faults]

# How far an event loop may lag on a busy machine.
MAX_LAG_SECONDS = 10.0


@pytest.fixture(scope="module", autouse=True)
def _is_warm() -> None:
    anyio.run(warm_up)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_verdict_is_as_documented_when_the_server(fault: Fault) -> None:
    with anyio.fail_after(fault.deadline + 2 * MAX_LAG_SECONDS):
        observation = await observe(fault)

    verdict = observation.verdict
    assert (observation.effect, verdict.access, verdict.reason) == (
        fault.effect,
        fault.access,
        fault.reason,
    )
    assert (verdict.error is None) == (fault.error is None)
    assert (fault.error or "") in (verdict.error or "")
    lag = MAX_LAG_SECONDS if fault.ends_at_deadline else 0.0
    assert observation.seconds < fault.deadline + lag
    assert observation.bytes_taken <= fault.max_bytes
    assert observation.memory <= fault.max_memory
    assert observation.files_left <= 0
    assert fault.requested in {None, observation.requested}
    assert fault.accepted in {None, observation.accepted}


def test_fault_names_are_unique() -> None:
    names = [fault.name for fault in FAULTS]

    assert len(set(names)) == len(names)
