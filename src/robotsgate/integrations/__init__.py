"""Obeys robots.txt in other clients; all but httpx need the extra of their name.

A module may touch all that its client touches, but must not import the client of
another one, `cli` or `testing`.
"""
