"""Measures all faults and writes their tables to a page.

    python -m tests.faults
    python -m tests.faults --page docs/explanation/what-can-go-wrong.md

Without a page, prints the tables.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import anyio

from benchmarks.page import replace_parts
from tests.faults.fault import observe, warm_up
from tests.faults.matrix import GROUPS
from tests.faults.page import table


def main() -> None:
    """Run the command."""
    arguments = argparse.ArgumentParser(
        prog="python -m tests.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    arguments.add_argument("--page", type=Path, metavar="PAGE")
    page: Path | None = arguments.parse_args().page
    tables = anyio.run(_measure)
    if page is None:
        sys.stdout.write("\n\n".join(tables.values()) + "\n")
        return
    marked = {f"faults {name}": text for name, text in tables.items()}
    new = replace_parts(page.read_text(encoding="utf-8"), marked)
    page.write_text(new, encoding="utf-8")


async def _measure() -> dict[str, str]:
    """The tables by group name."""
    await warm_up()
    return {
        group.name: table(group, [await observe(fault) for fault in group.faults])
        for group in GROUPS
    }


if __name__ == "__main__":
    main()
