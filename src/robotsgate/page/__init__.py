"""Reads page directives from META robots tags, X-Robots-Tag and TDMRep.

Pure: no network, no clock; the time is an argument.

>>> from robotsgate.page import PageDirectives
>>> page = b'<head><meta name="robots" content="noindex, max-snippet:20"></head>'
>>> PageDirectives.from_html(page, "ExampleBot").may_index(now=0)
False
"""

from robotsgate.page._directive import Directive
from robotsgate.page._page_directives import PageDirectives

__all__ = ["Directive", "PageDirectives"]
