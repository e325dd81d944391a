"""Integrations that make HTTP clients and crawlers obey robots.txt.

Most need the extra of the same name. A module may use anything that its client uses,
but must not import another module's client, `cli` or `testing`.
"""
