"""The tester page: static files and a small server.

The page and its script are in `static/`. Apart from those files, the server returns
only JSON, which the script inserts into the page as text.
"""
