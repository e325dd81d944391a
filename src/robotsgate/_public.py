"""The modules from which users import classes and functions. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


def set_module(name: str) -> Callable[[_T], _T]:
    """A decorator that makes a public module the `__module__` of a class or function.

    Tracebacks, `repr` and pickles then show the public name. `inspect.getsource` no
    longer finds the source of such a class, only that of a function. Annotations that
    are strings are evaluated in the public module, so modules with dataclasses whose
    fields are of other types do without `from __future__ import annotations`. This is
    the outermost decorator, because `dataclass` also uses `__module__`.
    """

    def decorate(value: _T) -> _T:
        if isinstance(value, type):
            # Assigning would bypass this descriptor for enums and protocols, and Python
            # 3.13 would keep the line number, with which `getsource` finds other lines.
            vars(type)["__module__"].__set__(value, name)
        else:
            value.__module__ = name
        return value

    return decorate
