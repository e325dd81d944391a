"""Configures Sphinx, which checks every reference.

Only the tester page needs the network.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx import addnodes
from sphinx.pycode import ModuleAnalyzer

import robotsgate
from robotsgate import _public

# Sphinx looks for the source of a class in its `__module__`.
_public.set_module = lambda _name: lambda value: value

from robotsgate import events, robotparser, robotstxt, sync  # noqa: E402 (see above)

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx
    from sphinx.ext.autodoc import Options

sys.path.append(str(Path(__file__).parent))

project = "robotsgate"
author = "the robotsgate contributors"
project_copyright = author
release = robotsgate.__version__
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_click",
    "tester_page",
]
# `name` in a docstring is code, as it is in Markdown.
default_role = "code"
# Give headings the same anchors as code hosts do.
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"robotsgate {release}"
python_maximum_signature_line_length = 88
# Users import `Rule` from robotsgate, whichever module defines it.
python_use_unqualified_type_names = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# With the option `class-doc-from: both`, a directive also shows the constructor.
autoclass_content = "class"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False

nitpicky = True
# Names from other projects, whose inventories would have to be downloaded.
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
    # Unqualified names, as the source imports them.
    (r"py:(class|exc)", "BaseAdapter|Client|Crawler|Page|PathLike|timedelta"),
    (r"py:exc", "NotConfigured"),
    # The API lists no type variables.
    (r"py:class", r".*\b_Response(_co)?"),
]


def setup(app: Sphinx) -> None:
    """Change how Sphinx shows types and constructors."""
    # Before and after napoleon, which writes the attributes.
    app.connect("autodoc-process-docstring", add_types_of_attributes, priority=400)
    app.connect("autodoc-process-docstring", put_heading_above_constructor)
    app.connect("autodoc-process-docstring", show_type_after_name, priority=600)
    app.connect("autodoc-process-signature", hide_constructor)
    app.connect("doctree-read", link_public_names)


def add_types_of_attributes(
    _app: Sphinx, kind: str, _name: str, value: type, *_: object
) -> None:
    """Let napoleon see the types of attributes declared in `__init__`."""
    if kind not in {"class", "exception"}:
        return
    for base in value.__mro__:
        if base.__module__.startswith("robotsgate."):
            module = ModuleAnalyzer.for_module(base.__module__)
            module.analyze()
            for (owner, attribute), type_ in module.annotations.items():
                if owner == base.__qualname__:
                    value.__annotations__.setdefault(attribute, type_)


def put_heading_above_constructor(
    _app: Sphinx, kind: str, _name: str, value: type, _options: object, lines: list[str]
) -> None:
    """Separate the docstring of `__init__` from that of the class, shown above it."""
    docstring = value.__init__.__doc__ if kind == "class" else None
    if docstring and lines and lines[0] == docstring.partition("\n")[0]:
        lines[:0] = [".. rubric:: Constructor", ""]


def show_type_after_name(
    _app: Sphinx,
    _kind: str,
    _name: str,
    _value: object,
    _options: object,
    lines: list[str],
) -> None:
    """Move the type of each attribute from below its description to its name."""
    for number, line in enumerate(lines):
        if line.startswith(".. attribute::"):
            below_name = number + 1
        elif line.startswith("   :type: "):
            lines.insert(below_name, lines.pop(number))


def hide_constructor(
    _app: Sphinx, kind: str, _name: str, _value: object, options: Options, *_: object
) -> tuple[str, str] | None:
    """Hide the arguments of a class, unless its directive asks for them."""
    return ("", "") if kind == "class" and options.class_doc_from != "both" else None


def link_public_names(_app: Sphinx, page: nodes.document) -> None:
    """Make links point to what users import, not to a private module."""
    for link in page.findall(addnodes.pending_xref):
        if link["refdomain"] == "py":
            path = re.sub(r"\._\w+(?=\.)", "", link["reftarget"])
            module, _, name = path.rpartition(".")
            where = module or link.get("py:module") or ""
            is_twin = any(  # these modules have classes of the same names
                twin.__name__ in where and name in twin.__all__
                for twin in (robotparser, sync)
            )
            if name in events.__all__:
                path = f"robotsgate.events.{name}"
            elif name in robotsgate.__all__ and not is_twin:
                path = f"robotsgate.{name}"
            elif name in robotstxt.__all__ and not is_twin:
                path = f"robotsgate.robotstxt.{name}"
            link["reftarget"] = path
