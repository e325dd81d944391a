"""The installed Chromium, for tests that drive it with Playwright."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Held, Reply

if TYPE_CHECKING:
    from tests.servers.loopback import Answer, Connection, Request

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


def script(text: str) -> Reply:
    return Reply(headers={"Content-Type": "text/javascript"}, body=text.encode())


def speculation(path: str, answer: Answer) -> dict[str, Answer]:
    """Answers for a page, /speculation, that makes Chromium fetch `path` in advance.

    The page navigates to `path` once Chromium has requested it.
    """
    rules = json.dumps({"prerender": [{"urls": [path], "eagerness": "immediate"}]})
    text = f"<script type=speculationrules>{rules}</script>"
    navigate = Held(script(f"location = '{path}'"))

    def answer_in_advance(request: Request, connection: Connection) -> None:
        navigate.release()
        answer(request, connection)

    return {
        "/speculation": page(f"{text}<script async src=/navigate.js></script>"),
        "/navigate.js": navigate,
        path: answer_in_advance,
    }
