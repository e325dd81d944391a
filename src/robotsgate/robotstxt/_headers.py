"""Reads response headers from any HTTP client. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from email.message import Message
else:
    Message = Mapping  # the class of urllib's headers takes 15 ms to import

HeadersLike = Mapping[str, str] | Iterable[tuple[str, str]] | Message
"""Headers from httpx, aiohttp, requests or urllib, a dict, or (name, value) pairs."""


def header_values(headers: HeadersLike, name: str) -> list[str]:
    """The values of the header `name`; see `headers_named`."""
    return [value for _, value in headers_named(headers, (name,))]


def headers_named(
    headers: HeadersLike, names: Collection[str]
) -> list[tuple[str, str]]:
    """(lower-case name, value) of each header whose name is in `names`, in order.

    `names` must be lower-case. Raises the same errors as `pairs_of`.
    """
    return [
        (key, value)
        for name, value in pairs_of(headers)
        if (key := name.lower()) in names
    ]


def pairs_of(headers: HeadersLike) -> Iterator[tuple[str, str]]:
    given: Any = headers
    # httpx's `items` joins repeated headers.
    items = getattr(given, "multi_items", getattr(given, "items", None))
    for pair in given if items is None else items():
        match pair:
            # `str(name)` would match the same, but takes 2 µs.
            case (name, value) if isinstance(name, str) and isinstance(value, str):
                yield name, value
            case _:
                raise TypeError(
                    f"expected headers to be a mapping or pairs of str, got {pair!r}"
                )
