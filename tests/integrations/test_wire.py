"""What reaches the wire: every ordinary URL, but none that robots.txt disallows in any
reading, however it is written."""

from __future__ import annotations

import asyncio

import pytest

from tests.integrations.url_forms import url_forms
from tests.integrations.wire import CLIENTS, tally, tally_scrapy
from tests.systems import need_own_loop


@pytest.mark.parametrize(
    "step", [pytest.param(1, marks=pytest.mark.slow, id="all"), 19], ids=str
)
@pytest.mark.parametrize("client", [*CLIENTS, "scrapy"])
def test_client_sends_only_what_all_readings_allow(client: str, step: int) -> None:
    need_own_loop()  # uvloop does not resolve names with the function that is patched
    if client == "scrapy":
        result = tally_scrapy(step=step)
    else:
        result = asyncio.run(tally(client, step=step))

    assert (result.faults, result.lost) == ([], [])
    assert min(result.counts.values()) > 0
    assert len(url_forms()) > 700
