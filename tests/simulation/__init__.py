"""A simulation of crawlers, networks, stores and clocks.

`scenario` makes a list of steps from a seed; `simulation` runs them on a real checker
over `network` and `store`, and judges each step. The tables of tests/caching prove the
rules that the judge applies.
"""
