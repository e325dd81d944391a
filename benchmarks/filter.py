"""Compares `robotsgate filter` with a loop over protego on the same file.

    pip install -e '.[cli]' --group bench
    python -m benchmarks.filter --page docs/explanation/numbers.md

Both run in separate processes, fetch each robots.txt over loopback, and print the same
lines.
"""

from __future__ import annotations

import argparse
import re
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
_PRINT_PEAK = "; import sys; sys.stderr.write(open('/proc/self/status').read())"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.filter")
    add = parser.add_argument
    add("--urls", type=int, default=_URLS)
    add("--origins", type=int, default=_ORIGINS)
    add("--page", type=Path, metavar="FILE", help="write tables here")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder, loopback_origins(options.origins) as origins:
        urls = Path(folder, "urls")
        _write_urls(urls, origins, options.urls)
        runs = {
            name: _run(program, urls, Path(folder, name))
            for name, program in _PROGRAMS.items()
        }
        same = {Path(folder, name).read_bytes() for name in _PROGRAMS}
    if len(same) != 1:
        raise RuntimeError("expected both to print the same lines")
    rates = {name: options.urls / seconds for name, (seconds, _) in runs.items()}
    run = about("robotsgate", "protego", "httpx", "click", "rich")
    table = Table(
        name="filter",
        columns=("by", "URLs a second", "memory, MiB"),
        rows=[(name, rates[name], mib) for name, (_, mib) in runs.items()],
        notes=(
            f"{options.urls:,} URLs of {options.origins:,} origins, shuffled.",
            "Wall-clock time of the whole process, with all fetches.",
            f"{run['date']}, {run['Python']}; {run['packages']}.",
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
    publish([table, *bars], run, page=options.page, prefix="filter ")


def _write_urls(path: Path, origins: Sequence[str], count: int) -> None:
    rng = Random(16)
    with path.open("w", encoding="ascii") as file:
        for number in range(count):
            section, word = rng.randrange(60), rng.choice(("private", "public"))
            file.write(
                f"{rng.choice(origins)}/section-{section}/{word}/{number}.html\n"
            )


def _run(program: str, urls: Path, output: Path) -> tuple[float, float]:
    """Filter `urls` to `output`; return seconds and peak MiB."""
    began = perf_counter()
    with urls.open("rb") as stdin, output.open("wb") as stdout:
        process = subprocess.run(
            [sys.executable, "-c", program + _PRINT_PEAK],
            check=True,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )
    seconds = perf_counter() - began
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", process.stderr)
    return seconds, int(peak) / 1_024


def loop_over_protego() -> None:
    """Print the URLs from stdin that may be fetched."""
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
