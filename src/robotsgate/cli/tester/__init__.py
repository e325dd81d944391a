"""The tester page: a small ASGI app (extra `tester`).

The page and its script stand in `static/`; the server only answers with JSON, and
the script puts all of it into the page as text.
"""
