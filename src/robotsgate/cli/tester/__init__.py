"""The tester page: a small ASGI app (extra `tester`).

The page and its script are in `static/`; the server only returns JSON, which the script
inserts into the page as text.
"""
