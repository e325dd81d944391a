"""How Sphinx builds the documentation: offline, and with every reference resolved."""

from __future__ import annotations

import importlib.metadata

project = "robotsgate"
author = "the robotsgate contributors"
project_copyright = author
release = importlib.metadata.version("robotsgate")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
# `name` in a docstring is code, as it is in Markdown.
default_role = "code"
# Links to headings, as code hosts name them.
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"robotsgate {release}"
python_maximum_signature_line_length = 88
# Users import `Rule` from robotsgate; that it lives deeper is not their business.
python_use_unqualified_type_names = True

# It replaces the urllib3 of requests, so it is in a venv of its own.
autodoc_mock_imports = ["niquests"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

nitpicky = True
# Names of other projects, whose inventories would have to be downloaded.
nitpick_ignore_regex = [
    (r"py:.*", rf"{package}\..*")
    for package in (
        "aiohttp",
        "anyio",
        "asyncio",
        "collections",
        "contextlib",
        "crawlee",
        "dataclasses",
        "datetime",
        "enum",
        "httpcore",
        "httpx",
        "niquests",
        "opentelemetry",
        "os",
        "pathlib",
        "requests",
        "scrapy",
        "ssl",
        "types",
        "typing",
    )
]
nitpick_ignore_regex += [
    # The API page lists the classes of `sync` without an index entry, because they
    # have the names of the asynchronous ones, and it lists no type variables.
    (r"py:class", r"sync\..*"),
    (r"py:class", r".*\b_Response(_co)?"),
]
