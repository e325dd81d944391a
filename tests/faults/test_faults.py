"""Each fault of a server comes to what the tables promise, at a bounded price."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from tests.faults.fault import Fault, Group, observe, warm_up
from tests.faults.matrix import GROUPS
from tests.faults.page import promised, rows_of

PAGE = Path(__file__).parents[2] / "docs/explanation/what-can-go-wrong.md"
FAULTS = [fault for group in GROUPS for fault in group.faults]

# How late an event loop may be on a machine that does much else.
PATIENCE_SECONDS = 10.0


@pytest.fixture(scope="module", autouse=True)
def _is_warm() -> None:
    anyio.run(warm_up)


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_verdict_is_as_promised_when_the_server(fault: Fault) -> None:
    with anyio.fail_after(fault.deadline + 2 * PATIENCE_SECONDS):
        seen = await observe(fault)

    verdict = seen.verdict
    assert (seen.effect, verdict.access, verdict.reason) == (
        fault.effect,
        fault.access,
        fault.reason,
    )
    assert (verdict.error is None) == (fault.says is None)
    assert (fault.says or "") in (verdict.error or "")
    late = PATIENCE_SECONDS if fault.ends_at_deadline else 0.0
    assert seen.seconds < fault.deadline + late
    assert seen.bytes_taken <= fault.max_bytes
    assert seen.memory <= fault.max_memory
    assert seen.files_left <= 0
    assert fault.asked in {None, seen.asked}
    assert fault.accepted in {None, seen.accepted}


def test_each_fault_has_a_name_of_its_own() -> None:
    names = [fault.name for fault in FAULTS]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_page_says_what_the_table_of_faults_says(group: Group) -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert list(rows_of(page, group)) == [promised(fault) for fault in group.faults]
