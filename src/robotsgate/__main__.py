"""The entry point of `robotsgate` and `python -m robotsgate`."""

from __future__ import annotations

import sys

from robotsgate.errors import needs_extra


def main() -> None:
    """Run the program and exit, or print how to install the missing extra."""
    try:
        with needs_extra("cli"):
            import click  # noqa: F401, PLC0415
            import rich.console  # noqa: F401, PLC0415
    except ImportError as error:
        sys.exit(f"robotsgate: {error}")
    from robotsgate.cli._program import run  # noqa: PLC0415 (needs the extra)

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
