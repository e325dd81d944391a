"""What only the wrap of requests does; `test_behaviours.py` has the rest."""

from __future__ import annotations

import pytest

from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, checker_of, site_of


def test_asynchronous_checker_is_refused() -> None:
    """Its coroutines are true, so every page was fetched."""
    with pytest.raises(TypeError, match=r"of robotsgate\.sync, got <robotsgate\."):
        RobotsAdapter(checker_of(site_of()), AGENT)  # type: ignore[arg-type]
