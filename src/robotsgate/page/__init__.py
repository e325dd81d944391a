"""Reads page directives from META robots tags, X-Robots-Tag and TDMRep.

Pure: no network, no clock; the time is an argument.

>>> from robotsgate.page import PageDirectives
>>> page = b'<head><meta name="robots" content="noindex, max-snippet:20"></head>'
>>> PageDirectives.from_html(page, "ExampleBot").may_index(now=0)
False
"""

from robotsgate.page._directives import Directive, PageDirectives

__all__ = ["Directive", "PageDirectives"]
