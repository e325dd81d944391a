"""A model-based simulation of crawlers, networks, stores and clocks.

`scenario` makes a list of steps from a seed, with `answers` and `policies`;
`simulation` runs them on a real checker, over `network` and `store`;
`judge` says after each step what was wrong, by what may be believed (`belief`) and
by what really happened (`evidence`); `replay` cuts a failing list down;
`sabotage` breaks the library, to see that it is noticed.
"""
