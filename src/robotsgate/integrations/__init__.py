"""Integrations that make other clients obey robots.txt.

Most need the extra of the same name. A module may use everything that its client uses,
but must not import another module's client, `cli` or `testing`.
"""
