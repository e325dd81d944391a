"""The checker: lookups, origins in memory and renewals.

These modules access the network, files and servers only through `fetching` and
`stores`, and must not import `politeness` or any package above it.
"""
