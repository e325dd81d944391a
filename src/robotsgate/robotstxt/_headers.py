"""Reads the headers of a response, as any HTTP client gives them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

HeadersLike = Mapping[str, str] | Iterable[tuple[str, str]]
"""Headers of a response: those of httpx, aiohttp or requests, a dict, or pairs."""


def header_values(headers: HeadersLike, name: str) -> list[str]:
    """The values of the header `name`; as `headers_named`."""
    return [value for _, value in headers_named(headers, (name,))]


def headers_named(
    headers: HeadersLike, names: Collection[str]
) -> list[tuple[str, str]]:
    """(lower-case name, value) of the headers with one of `names`, in their order.

    Give `names` in lower case.

    Raises:
        TypeError: `headers` does not hold pairs of text.
    """
    pairs: Iterable[object] = headers
    if isinstance(headers, Mapping):
        # The items of httpx join headers of one name.
        pairs = getattr(headers, "multi_items", headers.items)()
    named = []
    for pair in pairs:
        match pair:
            case (str(key), str(value)):
                if (name := key.lower()) in names:
                    named.append((name, value))
            case _:
                raise TypeError(
                    f"expected headers as a mapping or pairs of text, got {pair!r}"
                )
    return named
