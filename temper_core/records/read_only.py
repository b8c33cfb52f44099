"""Tables that every plugin is given, and none may change."""

from collections.abc import Mapping
from typing import Any, NoReturn


class ReadOnlyDict(dict[Any, Any]):
    """A table that cannot be changed in place. It is a ``dict``, so it can be written as JSON.

    Raises TypeError on an attempt, in the call of the plugin that tries it.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type["ReadOnlyDict"], tuple[dict[Any, Any]]]:
        """Copy and pickle by the constructor: a plain ``dict`` is filled item by item."""
        return type(self), (dict(self),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this table is read-only: copy it to change it")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


def read_only(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return *value* as a ReadOnlyDict, for a field of a record.

    A value that is no table is returned as it is, for the field's validator.
    """
    if isinstance(value, ReadOnlyDict) or not isinstance(value, Mapping):
        return value
    return ReadOnlyDict(value)
