"""Turns values into JSON types. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any


class JSONValue:
    """A dataclass with slots that can become a dict of JSON types."""

    __slots__: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The value as JSON types: enums by value, tuples as lists."""
        return {name: as_json(getattr(self, name)) for name in self.__slots__}


def as_json(value: object) -> object:
    """`value` as JSON types; unchanged if its type is not listed here."""
    match value:
        case JSONValue():
            return value.as_dict()
        case enum.Enum():
            return value.value
        case tuple():
            return [as_json(one) for one in value]
        case Mapping():
            return {as_json(key): as_json(one) for key, one in value.items()}
        case Exception():
            return f"{type(value).__name__}: {value}"
        case _:
            return value
