"""Answers questions: the checker, what it holds in memory, and what it fetches.

Its modules touch the network, files and servers only through `fetching` and `stores`,
and must not import `politeness` or what is above it.
"""
