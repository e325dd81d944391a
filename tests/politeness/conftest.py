"""A crawl that most politeness tests start from."""

from __future__ import annotations

import pytest

from .crawl import Crawl


@pytest.fixture
async def crawl() -> Crawl:
    """A crawl with its robots.txt in memory, whose host is ready."""
    return await Crawl().warm_up()
