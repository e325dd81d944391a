"""Obeys robots.txt in other clients; most need the extra of their name.

A module may touch all that its client touches, but must not import the client of
another one, `cli` or `testing`.
"""
