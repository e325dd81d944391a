"""Measures what a check, an origin and an import cost, against protego and httpx.

    pip install -e '.[test,bench]'
    python -m benchmarks.bounds [--corpus DIR]

The corpus is a folder of robots.txt files, one for each site; without one, files
are made up: sizes, groups, wildcards and agents in about the shares that real files
have. Ratios are of one run, interleaved, with the best of several repeats.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from protego import Protego

from robotsgate import RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Callable

REPEATS = 5
AGENT = "ExampleBot"
WORDS = [
    "admin",
    "cart",
    "login",
    "search",
    "private",
    "tmp",
    "user",
    "feed",
    "tag",
    "page",
    "api",
    "img",
    "news",
    "shop",
]
PATHS = [f"/{first}/{second}.html" for first in WORDS for second in WORDS]


def made_up_corpus(chance: random.Random, files: int) -> list[bytes]:
    """Files whose numbers of rules spread as those of real ones: median 12, 1 % 500."""
    return [made_up_file(chance) for _ in range(files)]


def made_up_file(chance: random.Random) -> bytes:
    """One file: a group for all, sometimes a few for others, and a sitemap."""
    lines = ["User-agent: *"]
    for _ in range(min(int(chance.lognormvariate(2.5, 1.4)), 5_000)):
        path = "/" + "/".join(chance.choices(WORDS, k=chance.randint(1, 3)))
        kind = "Allow" if chance.random() < 0.15 else "Disallow"
        wildcard = (
            chance.choice(["*", "/*.pdf$", "*?"]) if chance.random() < 0.18 else ""
        )
        lines.append(f"{kind}: {path}{chance.randint(1, 999)}{wildcard}")
    for number in range(chance.choice([0, 0, 0, 1, 3, 20])):
        lines += [f"User-agent: Bot{chr(97 + number)}", "Disallow: /"]
    lines.append("Sitemap: https://example.com/sitemap.xml")
    return "\n".join(lines).encode()


def best(*contenders: Callable[[], object]) -> list[float]:
    """Seconds that each takes, the best of several turns, one after the other."""
    times = [float("inf")] * len(contenders)
    for _ in range(REPEATS):
        for number, contender in enumerate(contenders):
            began = perf_counter()
            contender()
            times[number] = min(times[number], perf_counter() - began)
    return times


async def nothing() -> bool:
    """What awaiting costs by itself."""
    return True


async def measure_checks(bodies: list[bytes], chance: random.Random) -> None:
    """Questions about known origins, in no order, one agent."""
    site = FakeSite()
    parsed = []
    for number, body in enumerate(bodies):
        site.serve(f"https://site{number}.example", body)
        parsed.append(Protego.parse(body.decode("utf-8", "replace")))
    questions = [
        (number, f"https://site{number}.example{chance.choice(PATHS)}")
        for number in range(len(bodies))
        for _ in range(10)
    ]
    chance.shuffle(questions)
    checker = RobotsChecker(client=site, max_origins=len(bodies))
    for _, url in questions:
        await checker.can_fetch(AGENT, url)

    ours = theirs = empty = float("inf")
    for _ in range(REPEATS):
        began = perf_counter()
        for _, url in questions:
            await checker.can_fetch(AGENT, url)
        ours = min(ours, perf_counter() - began)
        began = perf_counter()
        for number, url in questions:
            parsed[number].can_fetch(url, AGENT)
        theirs = min(theirs, perf_counter() - began)
        began = perf_counter()
        for _ in questions:
            await nothing()
        empty = min(empty, perf_counter() - began)
    each = 1e6 / len(questions)
    print(
        f"can_fetch, known origins shuffled: {ours * each:.2f} µs; protego on parsed"
        f" files {theirs * each:.2f} µs ({theirs / ours:.2f}x); an empty coroutine"
        f" {empty * each:.2f} µs ({ours / empty:.1f}x)"
    )


def measure_parsing(bodies: list[bytes]) -> None:
    """Parse, compile and answer once, against a parse alone."""
    texts = [body.decode("utf-8", "replace") for body in bodies]
    ours, theirs = best(
        lambda: [RobotsTxt.parse(body).can_fetch(AGENT, "/page") for body in bodies],
        lambda: [Protego.parse(text) for text in texts],
    )
    each = 1e6 / len(bodies)
    print(
        f"parse and first match: {ours * each:.0f} µs; protego's parse"
        f" {theirs * each:.0f} µs ({theirs / ours:.2f}x)"
    )


async def measure_memory(bodies: list[bytes]) -> None:
    """Live origins that one agent was asked about, with the store behind them."""
    site = FakeSite()
    for number, body in enumerate(bodies):
        site.serve(f"https://site{number}.example", body)
    checker = RobotsChecker(client=site, max_origins=len(bodies))
    urls = [f"https://site{number}.example/page" for number in range(len(bodies))]
    await checker.can_fetch(AGENT, urls[0])

    gc.collect()
    tracemalloc.start()
    for url in urls:
        await checker.can_fetch(AGENT, url)
    site.requests.clear()
    for _ in range(10):  # the loop drops the time-outs of fetches that have ended
        await asyncio.sleep(0)
    gc.collect()
    ours = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    texts = [body.decode("utf-8", "replace") for body in bodies]
    gc.collect()
    tracemalloc.start()
    parsed = [Protego.parse(text) for text in texts]
    gc.collect()
    theirs = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    print(
        f"a live origin: {ours / len(bodies):.0f} bytes; protego's object"
        f" {theirs / len(parsed):.0f} bytes ({theirs / ours:.2f}x)"
    )


def measure_import() -> None:
    """Fresh interpreters, one after the other."""
    ours, theirs = best(
        lambda: subprocess.run([sys.executable, "-c", "import robotsgate"], check=True),
        lambda: subprocess.run([sys.executable, "-c", "import httpx"], check=True),
    )
    print(
        f"import robotsgate: {ours * 1e3:.0f} ms; import httpx {theirs * 1e3:.0f} ms"
        f" ({ours / theirs:.2f}x), interpreter included"
    )


def main() -> None:
    """Measure all of it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--corpus", type=Path, help="a folder of robots.txt files")
    arguments.add_argument("--files", type=int, default=2_000, help="how many of them")
    given = arguments.parse_args()
    chance = random.Random(9309)
    if given.corpus is None:
        bodies = made_up_corpus(chance, given.files)
    else:
        paths = sorted(path for path in given.corpus.iterdir() if path.is_file())
        chance.shuffle(paths)
        bodies = [path.read_bytes() for path in paths[: given.files]]
    measure_import()
    measure_parsing(bodies)
    asyncio.run(measure_memory(bodies))
    asyncio.run(measure_checks(bodies, chance))


if __name__ == "__main__":
    main()
