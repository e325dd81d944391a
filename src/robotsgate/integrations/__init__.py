"""Integrations that obey robots.txt in other clients.

Most need the extra of the same name. A module may use everything that its client uses,
but must not import another module's client, `cli` or `testing`.
"""
