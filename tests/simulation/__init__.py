"""A model-based simulation of crawlers, networks, stores and clocks.

`scenario` makes a list of steps from a seed, with `answers` and `policies`;
`simulation` runs them on a real checker, over `network` and `store`; after each step,
`judge` reports what was wrong; `replay` shortens a failing list of steps;
`sabotage` breaks the library to prove that the judge notices.
"""
