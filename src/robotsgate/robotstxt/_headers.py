"""Reads the headers of a response, as any HTTP client gives them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

HeadersLike = Mapping[str, str] | Iterable[tuple[str, str]]
"""Headers of a response: those of httpx, aiohttp or requests, a dict, or pairs."""


def header_values(headers: HeadersLike, name: str) -> list[str]:
    """The values of the header `name`; as `headers_named`."""
    return [value for _, value in headers_named(headers, (name,))]


def headers_named(
    headers: HeadersLike, names: Collection[str]
) -> list[tuple[str, str]]:
    """(lower-case name, value) of the headers with one of `names`, in their order.

    Give `names` in lower case. Raises as `pairs_of`.
    """
    return [
        (key, value)
        for name, value in pairs_of(headers)
        if (key := name.lower()) in names
    ]


def pairs_of(headers: HeadersLike) -> Iterator[tuple[str, str]]:
    """(name, value) of each header, in their order.

    Raises:
        TypeError: `headers` does not hold pairs of text.
    """
    pairs: Iterable[object] = headers
    if isinstance(headers, Mapping):
        # The items of httpx join headers of one name.
        pairs = getattr(headers, "multi_items", headers.items)()
    for pair in pairs:
        match pair:
            case (str(name), str(value)):
                yield name, value
            case _:
                raise TypeError(
                    f"expected headers to be a mapping or pairs of str, got {pair!r}"
                )
