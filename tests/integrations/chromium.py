"""The installed Chromium, for tests that drive it with Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

from tests.servers.answers import Reply

_PATH = shutil.which("chromium") or shutil.which("google-chrome")

NEEDS_CHROMIUM = pytest.mark.skipif(
    _PATH is None or importlib.util.find_spec("playwright") is None,
    reason="expected Playwright and a browser: pip install playwright,"
    " apt-get install chromium",
)
LAUNCH_OPTIONS = {
    "executable_path": _PATH,
    # Chromium refuses to run its sandbox as root.
    "chromium_sandbox": hasattr(os, "geteuid") and os.geteuid() != 0,
}


def page(text: str) -> Reply:
    """A page with an empty inline icon, so that browsers do not request one."""
    icon = "<link rel=icon href='data:,'>"
    return Reply(headers={"Content-Type": "text/html"}, body=f"{icon}{text}".encode())
