"""What reaches the wire: nothing that robots.txt forbids in any reading, however it is
written, and every ordinary URL."""

from __future__ import annotations

import asyncio

import pytest

from tests.integrations.url_forms import url_forms
from tests.integrations.wire import CLIENTS, Tally, tally, tally_of_scrapy

# Each form, or a sample of them.
STEPS = [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(19, id="some")]


def test_forms_are_many() -> None:
    assert len(url_forms()) > 700


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("client", CLIENTS)
def test_wrapped_client_sends_what_all_readings_allow(client: str, step: int) -> None:
    check(asyncio.run(tally(client, step=step)))


@pytest.mark.parametrize("step", STEPS)
def test_spider_sends_what_all_readings_allow(step: int) -> None:
    check(tally_of_scrapy(step=step))


def check(result: Tally) -> None:
    """Print the figures; expect neither faults nor losses."""
    print(result.counts)  # noqa: T201 (with -s: the figures of a run)
    assert result.faults == []
    assert result.lost == []
    assert min(result.counts.values()) > 0
