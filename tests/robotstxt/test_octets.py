"""The normalized spelling of paths and patterns (RFC 9309 §2.2.2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from robotsgate.robotstxt._octets import (
    as_octets,
    normalised_patterns,
    normalised_targets,
    readable,
)
from tests.robotstxt.reference import spelling

_ESCAPES = st.lists(
    st.sampled_from(["%", "4", "1", "a", "F", "%41", "%2f", "\xe9", "/", " ", "~", "$"])
).map("".join)


def test_each_escape_has_one_spelling() -> None:
    for octet in range(256):
        is_unreserved = chr(octet).isascii() and (
            chr(octet).isalnum() or chr(octet) in "-._~"
        )
        spelt = chr(octet) if is_unreserved else f"%{octet:02X}"

        for escape in (f"%{octet:02X}", f"%{octet:02x}"):
            assert normalised_targets(f"/{escape}") == (f"/{spelt}",)


@given(
    st.one_of(
        _ESCAPES, st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"))
    )
)
def test_normalizing_agrees_with_the_reference(octets: str) -> None:
    assert normalised_patterns(octets) == spelling(octets.encode("latin-1"))


@given(st.text())
def test_text_converted_to_octets_reads_back_unchanged(text: str) -> None:
    octets = as_octets(text)

    assert all(ord(character) < 256 for character in octets)
    assert octets.encode("latin-1") == text.encode("utf-8", "surrogatepass")
    assert readable(octets) == text


def test_invalid_utf8_reads_as_replacement_characters() -> None:
    assert readable("/\xff\xe9") == "/��"
