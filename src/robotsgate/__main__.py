"""The entry point of `robotsgate` and `python -m robotsgate`."""

from __future__ import annotations

import sys

_NEEDED = {"click", "rich"}


def main() -> None:
    """Run the program and exit, or print how to install the missing extra."""
    try:
        from robotsgate.cli._program import run  # noqa: PLC0415 (needs an extra)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in _NEEDED:
            raise
        sys.exit(
            "robotsgate: to use the command line, run pip install 'robotsgate[cli]'"
        )
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
