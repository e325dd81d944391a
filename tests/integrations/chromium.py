"""The Chromium of this machine, for tests that steer it by Playwright."""

from __future__ import annotations

import importlib.util
import os
import shutil

import pytest

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
