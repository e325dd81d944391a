"""The words that made-up robots.txt files and URLs are put together from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

__all__ = ["PLATFORMS", "WORDS", "slug", "word"]

_WORDS = """
    about account admin ads ajax api app archive article assets author basket blog
    book brand browse calendar campaign cart catalog category cdn cgi-bin checkout
    client comment common compare component config contact content core css customer
    dashboard data date default detail dev discount docs download edit email embed
    en error event export faq feed file filter forum gallery game go goto group help
    history home host image images img inc includes index info install item javascript
    job js language layout lib library like link list live local login logout mail
    map media member menu message mobile modules month music my new news newsletter
    node offer order page partner password payment pdf photo player plugins poll
    popup post preview price print private process product products profile promo
    public query rating redirect region register report request review rss sale
    schedule scripts search secure send server service session settings share shop
    sitemap skin sort source special sport staff static stats status store story
    style submit subscribe support survey system tag team temp template test theme
    ticket tmp tools topic track travel trial update upload user users utm video view
    vote weather web widget wiki wishlist wp-admin wp-content xml year zip
"""
WORDS = tuple(_WORDS.split())

_JOOMLA = """
    administrator bin cache cli components includes installation language layouts
    libraries logs modules plugins tmp
"""
_DRUPAL_FILES = "css$ css? js$ js? gif jpg png svg"
_DRUPAL_PAGES = """
    admin/ comment/reply/ filter/tips node/add/ search/ user/register user/password
"""

PLATFORMS: dict[int, tuple[str, ...]] = {
    2: ("Disallow: /wp-admin/", "Allow: /wp-admin/admin-ajax.php"),
    14: tuple(f"Disallow: /{folder}/" for folder in _JOOMLA.split()),
    34: (
        *(f"Allow: /core/*.{ending}" for ending in _DRUPAL_FILES.split()),
        *(f"Allow: /profiles/*.{ending}" for ending in _DRUPAL_FILES.split()),
        "Disallow: /core/",
        "Disallow: /profiles/",
        "Disallow: /README.md",
        "Disallow: /web.config",
        *(f"Disallow: /{page}" for page in _DRUPAL_PAGES.split()),
        *(f"Disallow: /index.php/{page}" for page in _DRUPAL_PAGES.split()),
    ),
}
"""What the installers of common platforms write, by the number of rules."""


def word(chance: Random) -> str:
    """One word."""
    return chance.choice(WORDS)


def slug(chance: Random) -> str:
    """Words as they stand in the path of an article or a product."""
    return "-".join(chance.choices(WORDS, k=chance.randint(1, 4)))
