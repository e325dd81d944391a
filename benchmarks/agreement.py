"""Counts on how many real questions we agree with Google's own matcher.

    python -m benchmarks.agreement --corpus DIR --verdicts FILE

FILE is gzipped JSON lines with the keys file, agent, url and google; DIR holds the
robots.txt files by name. `Dialect.GOOGLE` should agree on all of them.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import Counter
from pathlib import Path

from robotsgate import Dialect, InvalidProductTokenError, RobotsTxt


def main() -> None:
    """Ask everything in both dialects."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--corpus", type=Path, required=True)
    arguments.add_argument("--verdicts", type=Path, required=True)
    given = arguments.parse_args()
    files: dict[str, dict[Dialect, RobotsTxt]] = {}
    counts: Counter[str] = Counter()
    with gzip.open(given.verdicts, "rt", encoding="utf-8") as lines:
        for line in lines:
            question = json.loads(line)
            name = question["file"]
            if name not in files:
                body = (given.corpus / name).read_bytes()
                files[name] = {
                    dialect: RobotsTxt.parse(body, dialect=dialect, max_bytes=None)
                    for dialect in Dialect
                }
            counts["questions"] += 1
            for dialect, robots_txt in files[name].items():
                try:
                    answer = robots_txt.can_fetch(question["agent"], question["url"])
                except InvalidProductTokenError:
                    counts[f"{dialect.value}: no product token"] += 1
                    continue
                if answer is not question["google"]:
                    counts[f"{dialect.value}: differs from Google"] += 1
    for what, count in sorted(counts.items()):
        print(f"{what}: {count}")
    agreed = 1 - counts["google: differs from Google"] / counts["questions"]
    print(f"google: agrees {agreed:.4%}")


if __name__ == "__main__":
    main()
