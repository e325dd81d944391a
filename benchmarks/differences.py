"""Counts where each dialect differs from Google's own code, on real files.

    python -m benchmarks.differences --corpus DIR --verdicts FILE [--write PAGE]

DIR contains robots.txt files; FILE contains gzipped JSON lines with the keys file,
agent, url and google, which is the answer of Google's own code.
Prints each lookup for which `Dialect.GOOGLE` differs, and exits with 1 if there are
any. `--write` updates the counts in docs/explanation/differences-from-google.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.page import replace_parts
from robotsgate import Dialect, InvalidProductTokenError, RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Tally(NamedTuple):
    """The results for a corpus; `google_differs` lists lookups, the rest are counts."""

    files: int
    lookups: int
    google_differs: Sequence[str]
    rfc9309_differs: int
    refused: int

    def summary(self) -> str:
        """The counts as Markdown sentences."""
        return (
            f"The corpus has {self.lookups:,} lookups in {self.files:,} files.\n"
            f"`Dialect.GOOGLE` differs from Google on {len(self.google_differs):,} of"
            " them.\n"
            f"`Dialect.RFC9309` differs on {self.rfc9309_differs:,}, and raises an"
            f" error for {self.refused:,}.\n"
        )


def tally(corpus: Path, verdicts: Iterable[str]) -> Tally:
    """Look up everything in both dialects; the lines are grouped by file."""
    files = lookups = rfc9309_differs = refused = 0
    google_differs = []
    for name, group in groupby(map(json.loads, verdicts), itemgetter("file")):
        body = (corpus / name).read_bytes()
        google, rfc9309 = (
            RobotsTxt.parse(body, dialect=dialect, max_bytes=None)
            for dialect in (Dialect.GOOGLE, Dialect.RFC9309)
        )
        files += 1
        for verdict in group:
            agent, url, expected = verdict["agent"], verdict["url"], verdict["google"]
            lookups += 1
            if google.can_fetch(agent, url) is not expected:
                google_differs.append(f"{name}: {agent!r} {url!r}")
            try:
                rfc9309_differs += rfc9309.can_fetch(agent, url) is not expected
            except InvalidProductTokenError:
                refused += 1
    return Tally(files, lookups, google_differs, rfc9309_differs, refused)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if `Dialect.GOOGLE` differs."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.differences",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--verdicts", type=Path, required=True)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args(arguments)
    with gzip.open(options.verdicts, "rt", encoding="utf-8") as verdicts:
        result = tally(options.corpus, verdicts)
    print(result.summary())
    for lookup in result.google_differs:
        print(f"differs from Google: {lookup}")
    if options.write:
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(
            replace_parts(page, {"counts": result.summary()}), encoding="utf-8"
        )
    return 1 if result.google_differs else 0


if __name__ == "__main__":
    sys.exit(main())
