"""Hostile texts, exceptions and answers of plugins, one line each.

A line added here is tried at every hook and at every method of an instrument.
"""

import sys
import threading
import time
from collections.abc import Mapping

from temper_core import DocumentError, InputError, Invariant, MachineError, PluginError

OUTSIDE = []
"""Where the code of a hostile value ran in a thread that is not its plugin's."""


def _note():
    name = threading.current_thread().name
    if not name.startswith("plugin-"):
        OUTSIDE.append(name)


def sleeps(*_):
    _note()
    while True:  # not one long sleep: the thread ends when it is interrupted
        time.sleep(0.01)


def exits(*_):
    _note()
    raise SystemExit("hostile")


def fails(*_):
    _note()
    raise ZeroDivisionError


def recurses(it, *_):
    _note()
    return recurses(it)


def str_of_itself(it):
    return str(it)


def str_again_and_again(it):
    try:
        return str(it)
    except RecursionError:
        return str(it)


def always(value):
    def answer(*_):
        _note()
        return value

    return answer


def text(content="odd", **methods):
    """Return *content* as an instance of a subclass of str with these methods."""
    return type("OddText", (str,), methods)(content)


def number(content=1, **methods):
    return type("OddNumber", (type(content),), methods)(content)


def error(base=Exception, arguments=("odd",), **methods):
    """Return an exception of a subclass of *base* with these methods."""
    made = type("OddError", (base,), methods)
    return base.__new__(made, *arguments)


TEXTS = {
    "hash sleeps": lambda: text(__hash__=sleeps),
    "hash exits": lambda: text(__hash__=exits),
    "hash and eq lie": lambda: text(__hash__=always(1), __eq__=always(True)),
    "comparison exits": lambda: text(__lt__=exits, __gt__=exits, __eq__=exits, __hash__=exits),
    "format lies": lambda: text(__format__=always('x"} 666')),
    "str and repr exit": lambda: text(__str__=exits, __repr__=exits),
    "length sleeps": lambda: text(__len__=sleeps, __getitem__=sleeps, __iter__=sleeps),
    "methods sleep": lambda: text(strip=sleeps, split=sleeps, encode=sleeps, lower=sleeps),
    "methods lie": lambda: text(lower=always("set-cookie"), isprintable=always(True)),
    "class lies": lambda: text(__class__=property(always(Invariant))),
    "attributes exit": lambda: text(__getattribute__=exits),
    "recurses": lambda: text(__hash__=recurses, __eq__=recurses, __format__=recurses),
}


def _loop():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def _chain():
    last = ValueError("last")
    for _ in range(10_000):
        last.__context__, last = None, ValueError("next").with_traceback(None)
        last.__cause__ = ValueError("earlier")
    return last


class _LyingName(type):
    __name__ = property(exits)


def _named_by_its_metaclass():
    return _LyingName("OddError", (Exception,), {"__str__": always("odd")})()


ERRORS = {
    "text fails": lambda: error(__str__=fails),
    "text exits": lambda: error(__str__=exits),
    "text sleeps": lambda: error(__str__=sleeps),
    "text recurses": lambda: error(__str__=str_of_itself),
    "text recurses again and again": lambda: error(__str__=str_again_and_again),
    "text is no text": lambda: error(__str__=always(7)),
    "text is odd": lambda: error(__str__=lambda _: text(split=sleeps, __getitem__=exits)),
    "text is huge": lambda: ValueError("x" * 10_000_000),
    "text has lines and controls": lambda: ValueError("a\n\x1b[2J\x9b\u2028b" * 1000),
    "class lies": lambda: error(__class__=property(always(InputError))),
    "class sleeps": lambda: error(__class__=property(sleeps)),
    "attributes exit": lambda: error(__getattribute__=exits),
    "comparison exits": lambda: error(__eq__=exits, __hash__=exits, __bool__=exits),
    "arguments exit": lambda: error(args=property(exits), __traceback__=property(exits)),
    "causes are a loop": _loop,
    "causes are many": _chain,
    "cause is odd": lambda: error(__cause__=property(sleeps), __context__=property(exits)),
    "name is the metaclass's": _named_by_its_metaclass,
    "name is huge": type("x" * 100_000, (Exception,), {}),
    "exit": lambda: SystemExit(text(__str__=exits)),
    "interrupt": KeyboardInterrupt,
    "end of a generator": GeneratorExit,
    "group": lambda: BaseExceptionGroup("odd", [SystemExit(), error(__str__=exits)]),
    "of ours, text sleeps": lambda: error(InputError, __str__=sleeps),
    "of ours, text exits": lambda: error(MachineError, __str__=exits),
    "of ours, without its fields": lambda: PluginError.__new__(PluginError),
    "of ours, odd problems": lambda: error(DocumentError, problems=property(exits)),
}


def nested():
    """Return a list with 1000 to the power of 20 items."""
    inner = ["odd"] * 1000
    for _ in range(20):
        inner = [inner] * 1000
    return inner


def _of_itself():
    odd = []
    odd.append(odd)
    return odd


class _OddMapping(Mapping):
    def __getitem__(self, key):
        return text(__format__=exits)

    def __iter__(self):
        while True:
            yield text(f"odd{time.monotonic_ns()}", __hash__=exits)

    def __len__(self):
        return 1


VALUES = {
    "a list of itself": _of_itself,
    "an endless mapping": _OddMapping,
    "an odd list": lambda: type("Odd", (list,), {"__iter__": sleeps, "__len__": sleeps})([1]),
    "an odd dict": lambda: type("Odd", (dict,), {"items": exits, "keys": exits})(a=1),
    "an object": object,
    "a huge integer": lambda: 10**100_000,
    "an odd integer": lambda: number(__index__=exits, __format__=exits, bit_length=sleeps),
    "an odd float": lambda: number(1.5, __float__=exits, __repr__=exits, __eq__=exits),
}


def deeply(*_):
    return deeply()


def lowers_the_limit():
    sys.setrecursionlimit(threading.active_count() + 60)
    return []


def raises_the_limit():
    sys.setrecursionlimit(1_000_000)
    return []


def shrinks_stacks():
    threading.stack_size(32 * 1024)
    return []


ANSWERS = {
    "recurses": deeply,
    "lowers the recursion limit": lowers_the_limit,
    "raises the recursion limit": raises_the_limit,
    "shrinks the stacks of threads": shrinks_stacks,
    "an iterator that exits": lambda: (exits() for _ in "a"),
    "a list that lies": lambda: type("Odd", (list,), {"__iter__": sleeps})([1]),
    "a class that lies": type("Odd", (), {"__class__": property(always(list))}),
    "an item that lies": lambda: [type("Odd", (), {"__class__": property(always(Invariant))})()],
    "a repr that exits": lambda: [type("Odd", (), {"__repr__": exits})()],
    "a repr that sleeps": type("Odd", (), {"__repr__": sleeps}),
}
