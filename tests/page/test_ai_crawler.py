"""The example of a crawler that obeys what pages and files say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_example_shows_what_its_page_says() -> None:
    shown = subprocess.run(  # noqa: S603 (our own example)
        [sys.executable, "-W", "error", ROOT / "examples/ai_crawler.py"],
        timeout=60,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout

    page = (ROOT / "docs/how-to/crawl-for-a-model.md").read_text(encoding="utf-8")
    assert f"$ python examples/ai_crawler.py\n{shown}```" in page
