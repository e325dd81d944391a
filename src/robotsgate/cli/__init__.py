"""The command line: `robotsgate check` and the other commands (extra `cli`).

A command reads its options, asks the checker or the parser, and prints. It must never
decide anything about robots.txt.
"""

from robotsgate.cli._program import run

__all__ = ["run"]
