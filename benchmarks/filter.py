"""How fast `robotsgate filter` is, beside a loop over protego on the same file.

    pip install -e '.[bench,cli]'
    python -m benchmarks.filter --page docs/explanation/how-fast.md

Both are processes of their own, which fetch each robots.txt over loopback, and print
the same lines.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import httpx
from protego import Protego

from benchmarks.cold import loopback_origins
from benchmarks.page import Bar, Table, about, publish

if TYPE_CHECKING:
    from collections.abc import Sequence

_URLS, _ORIGINS = 1_000_000, 1_000
_AGENT = "ExampleBot"

_OURS, _THEIRS = "robotsgate filter", "loop over protego"
_PROGRAMS = {
    _OURS: "from robotsgate.cli._program import run;"
    f" run(['filter', '-q', '-a', {_AGENT!r}])",
    _THEIRS: "from benchmarks.filter import loop_over_protego; loop_over_protego()",
}
_TELL_PEAK = "; import sys; sys.stderr.write(open('/proc/self/status').read())"


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.filter")
    add = arguments.add_argument
    add("--urls", type=int, default=_URLS)
    add("--origins", type=int, default=_ORIGINS)
    add("--page", type=Path, metavar="FILE", help="write tables here")
    given = arguments.parse_args(words)
    with TemporaryDirectory() as folder, loopback_origins(given.origins) as origins:
        urls = Path(folder, "urls")
        _write_urls(urls, origins, given.urls)
        runs = {
            name: _run(program, urls, Path(folder, name))
            for name, program in _PROGRAMS.items()
        }
        same = {Path(folder, name).read_bytes() for name in _PROGRAMS}
    if len(same) != 1:
        raise RuntimeError("expected both to print the same lines")
    rates = {name: given.urls / seconds for name, (seconds, _, _) in runs.items()}
    table = Table(
        name="filter",
        columns=("by", "URLs a second", "of processor time", "memory, MiB"),
        rows=[
            (name, rates[name], given.urls / processor, mib)
            for name, (_, processor, mib) in runs.items()
        ],
        notes=(
            f"{given.urls:,} URLs of {given.origins:,} origins, shuffled.",
            "Wall-clock and processor time of the whole process, with all fetches.",
        ),
    )
    bars = [
        Bar(
            what="URLs that `robotsgate filter` reads in a second, thousands",
            value=rates[_OURS] / 1_000,
            bar=100,
            unit="",
            is_ceiling=False,
        ),
        Bar(
            what="memory of `robotsgate filter`",
            value=runs[_OURS][-1],
            bar=80,
            unit="MiB",
        ),
    ]
    run = about("robotsgate", "protego", "httpx", "click", "rich")
    publish([table, *bars], run, page=given.page, prefix="filter ")


def _write_urls(path: Path, origins: Sequence[str], count: int) -> None:
    chance = Random(16)
    with path.open("w", encoding="ascii") as file:
        for number in range(count):
            section, word = chance.randrange(60), chance.choice(("private", "public"))
            file.write(
                f"{chance.choice(origins)}/section-{section}/{word}/{number}.html\n"
            )


def _run(program: str, urls: Path, output: Path) -> tuple[float, float, float]:
    """Seconds, those of the processor, and MiB of a process from `urls` to `output`."""
    began, processor = perf_counter(), _processor_seconds_of_children()
    with urls.open("rb") as stdin, output.open("wb") as stdout:
        done = subprocess.run(
            [sys.executable, "-c", program + _TELL_PEAK],
            check=True,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
    seconds = perf_counter() - began
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", done.stderr)
    processor = _processor_seconds_of_children() - processor
    return seconds, processor, int(peak) / 1_024


def _processor_seconds_of_children() -> float:
    """What the processes that have ended took."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def loop_over_protego() -> None:
    """Print the URLs of stdin that may be fetched."""
    files: dict[str, Protego] = {}
    with httpx.Client(trust_env=False) as client:
        for line in sys.stdin:
            url = line.rstrip("\n")
            origin = url[: url.index("/", 8)]
            file = files.get(origin)
            if file is None:
                text = client.get(f"{origin}/robots.txt").text
                file = files[origin] = Protego.parse(text)
            if file.can_fetch(url, _AGENT):
                sys.stdout.write(line)


if __name__ == "__main__":
    main()
