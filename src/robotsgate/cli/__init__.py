"""The command line: `robotsgate check` and the other commands (extra `cli`).

A command reads its options, asks the checker or the parser, and prints. It must never
decide anything about robots.txt. Its modules may touch files, the terminal and the
network, but must not import `integrations` or `testing`.
"""

from robotsgate.cli._program import run

__all__ = ["run"]
