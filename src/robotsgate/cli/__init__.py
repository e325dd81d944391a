"""The command line: `robotsgate check` and the other commands (extra `cli`).

A command parses its options, calls the checker or the parser, and prints the result. It
must never interpret robots.txt itself.
"""
