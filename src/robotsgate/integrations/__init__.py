"""Obeys robots.txt in other clients; most need the extra of their name.

A module may use everything that its client uses, but must not import the client of
another module, `cli` or `testing`.
"""
