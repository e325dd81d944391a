"""The command line: `robotsgate check` and its neighbours (extra `cli`).

A command reads its options, asks the checker or the parser, and prints; it decides
nothing about robots.txt.
"""

from robotsgate.cli._program import run

__all__ = ["run"]
