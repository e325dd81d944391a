"""What reaches the wire: every ordinary URL, but none that robots.txt disallows in any
reading, however it is written."""

from __future__ import annotations

import asyncio

import pytest

from tests.integrations.url_forms import url_forms
from tests.integrations.wire import CLIENTS, Tally, tally, tally_scrapy

# All URL forms, or a sample.
STEPS = [pytest.param(1, marks=pytest.mark.slow, id="all"), pytest.param(19, id="some")]


def test_more_than_700_url_forms_are_tested() -> None:
    assert len(url_forms()) > 700


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("client", CLIENTS)
def test_wrapped_client_sends_only_what_all_readings_allow(
    client: str, step: int
) -> None:
    check(asyncio.run(tally(client, step=step)))


@pytest.mark.parametrize("step", STEPS)
def test_spider_sends_only_what_all_readings_allow(step: int) -> None:
    check(tally_scrapy(step=step))


def check(result: Tally) -> None:
    """Print the counts, and assert that there are no faults and no losses."""
    print(result.counts)  # noqa: T201 (for -s)
    assert result.faults == []
    assert result.lost == []
    assert min(result.counts.values()) > 0
