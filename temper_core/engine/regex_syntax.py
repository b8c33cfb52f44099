"""Check a regular expression by the syntax of the engine's compiler, Rust's ``regex``.

Python's syntax differs: it has look-around and back-references, which Rust refuses, and lacks
nested classes and ``(?<name>…)``, which Rust accepts. The check is stricter than Rust: it refuses
verbose mode, ``(?-u)`` and rare Unicode properties, although some of them work.
"""

import re
from collections.abc import Mapping

from attrs import define

LARGEST_REPEAT = 2**32 - 1
LARGEST_COST = 100_000
"""Rust refuses programs above 10 MiB. 100,000 repeated letters are just below that."""
DEEPEST = 250
LEVELS_PER_BRACKET = 3
WIDE_COST = 500
NARROW_COST = 10
ANY_CASE_COST = 4
LOOK_AROUND = ("?=", "?!", "?<=", "?<!")
FLAGS = "imsURux"
ASSERTIONS = "AzbB<>"
WIDE_CLASSES = "dDsSwW"
CONTROLS: Mapping[str, str] = {
    "a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
HEX_DIGITS: Mapping[str, int] = {"x": 2, "u": 4, "U": 8}
POSIX_CLASS = re.compile(
    r"\[:\^?(alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit):\]"
)
PLAIN = re.compile(r"[0-9A-Za-z_/-]+")
COUNT = re.compile(r"\{ *([0-9]+) *(?:(,) *([0-9]*) *)?\}")
HEXADECIMAL = re.compile(r"\{([0-9A-Fa-f]{1,8})\}")
BOUNDARY = re.compile(r"\{(start|end|start-half|end-half)\}")
PROPERTY = re.compile(
    r"\{\^?(C[cfnos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?|Any|ASCII"
    r"|Alphabetic|Lowercase|Uppercase|White_Space|Greek|Latin|Cyrillic|Han)\}|[CLMNPSZ]"
)


class _Fault(ValueError):  # noqa: N818 - never leaves this module
    """Why the expression does not compile."""


@define
class _Frame:
    """An open group: its cost and depth, and those of its last item."""

    cost: int = 0
    depth: int = 0
    last_cost: int = 0
    last_depth: int = 0
    has_item: bool = False


def regex_fault(pattern: str) -> str | None:
    """Return why the engine cannot compile *pattern*. None if it can."""
    try:
        _Scanner(pattern).scan()
    except _Fault as fault:
        return str(fault)
    return None


class _Scanner:
    """Reads an expression once, from left to right, with a stack of open groups."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.frames = [_Frame()]
        self.names: set[str] = set()
        self.letter_cost = 1

    def scan(self) -> None:
        """Read the whole pattern. Raise _Fault at the first fault."""
        while self.position < len(self.pattern):
            # The plan's own expressions are mostly long names, and have a million letters together.
            if letters := PLAIN.match(self.pattern, self.position):
                self.position = letters.end()
                self._letters(len(letters[0]))
            else:
                self._step(self._take())
        if len(self.frames) > 1:
            raise _Fault("a group is not closed")
        self._limit(self.frames[0])

    def _step(self, letter: str) -> None:
        if letter == "(":
            self._open()
        elif letter == ")":
            self._close()
        elif letter == "|":
            self.frames[-1].has_item = False
        elif letter in "*+?{":
            self._repeat(letter)
        elif letter == "[":
            cost, depth = self._class()
            self._item(cost, depth)
        elif letter == "\\":
            self._item(self._escape()[1], 1)
        else:
            self._item(NARROW_COST if letter == "." else self.letter_cost, 1)

    def _item(self, cost: int, depth: int) -> None:
        frame = self.frames[-1]
        frame.cost += cost
        frame.depth = max(frame.depth, depth)
        frame.last_cost, frame.last_depth, frame.has_item = cost, depth, True
        self._limit(frame)

    def _letters(self, count: int) -> None:
        self.frames[-1].cost += (count - 1) * self.letter_cost
        self._item(self.letter_cost, 1)

    def _limit(self, frame: _Frame) -> None:
        if frame.cost > LARGEST_COST:
            raise _Fault("it is too large when its repetitions are written out")
        if frame.depth + LEVELS_PER_BRACKET > DEEPEST:
            raise _Fault("it nests too deeply")

    def _open(self) -> None:
        rest = self.pattern[self.position : self.position + 3]
        if rest.startswith(LOOK_AROUND):
            raise _Fault("look-around is not supported")
        if rest.startswith(("?P<", "?<")):
            self.position += rest.index("<") + 1
            self._name()
        elif rest.startswith("?") and not self._flags():
            self.frames[-1].has_item = False
            return
        self.frames.append(_Frame())
        if len(self.frames) > DEEPEST:
            raise _Fault("it nests too deeply")

    def _close(self) -> None:
        if len(self.frames) == 1:
            raise _Fault("a group is closed that was not opened")
        frame = self.frames.pop()
        self._item(frame.cost + 1, frame.depth + LEVELS_PER_BRACKET)

    def _name(self) -> None:
        end = self.pattern.find(">", self.position)
        name = self.pattern[self.position : max(end, self.position)]
        first, rest = name[:1], name[1:]
        good = (first.isalpha() or first == "_") and all(
            letter.isalnum() or letter in "_.[]" for letter in rest
        )
        if not good:
            raise _Fault(f"a group cannot be named {name[:40]!r}")
        if name in self.names:
            raise _Fault(f"two groups are named {name[:40]!r}")
        self.names.add(name)
        self.position = end + 1

    def _flags(self) -> bool:
        """Read ``?flags:`` or ``?flags)``. Return whether a group opens."""
        flags_match = re.compile(r"\?([A-Za-z]*)(?:-([A-Za-z]+))?([:)])").match(
            self.pattern, self.position
        )
        if flags_match is None:
            raise _Fault("a group starts with `(?` and no flag that is known")
        on, off, end = flags_match[1], flags_match[2] or "", flags_match[3]
        if any(flag not in FLAGS for flag in on + off) or len(set(on + off)) < len(on + off):
            raise _Fault(f"the flags {flags_match[0][:20]!r} are not known, or given twice")
        if not on and not off and end == ")":
            raise _Fault("`(?)` sets no flag")
        if "x" in on or "u" in off:
            raise _Fault("verbose mode and (?-u) are not supported here")
        self.position = flags_match.end()
        if "i" in on:
            self.letter_cost = ANY_CASE_COST
        return end == ":"

    def _repeat(self, letter: str) -> None:
        frame = self.frames[-1]
        if not frame.has_item:
            raise _Fault(f"there is nothing that {letter!r} could repeat")
        times = self._count() if letter == "{" else 1
        if self.pattern.startswith("?", self.position):
            self.position += 1
        cost = frame.last_cost * times + 1
        frame.cost += cost - frame.last_cost
        frame.last_cost, frame.last_depth = cost, frame.last_depth + 1
        frame.depth = max(frame.depth, frame.last_depth)
        self._limit(frame)

    def _count(self) -> int:
        count_match = COUNT.match(self.pattern, self.position - 1)
        if count_match is None:
            raise _Fault("`{` must be followed by a count such as {2}, {2,} or {2,4}")
        self.position = count_match.end()
        low = _number(count_match[1])
        high = _number(count_match[3]) if count_match[3] else low
        if low > high:
            raise _Fault(f"{count_match[0]!r} has its counts in the wrong order")
        return high + 1

    def _take(self) -> str:
        letter = self.pattern[self.position : self.position + 1]
        self.position += 1
        return letter

    def _class(self) -> tuple[int, int]:
        """Read a class after its ``[``. Return its cost and depth."""
        cost, deepest, depth = NARROW_COST, 1, 1
        self._class_start()
        while depth:
            if self.position >= len(self.pattern):
                raise _Fault("a character class is not closed")
            posix = POSIX_CLASS.match(self.pattern, self.position)
            if posix is not None:
                self.position = posix.end()
            elif self.pattern[self.position] == "[":
                self.position += 1
                self._class_start()
                depth, deepest = depth + 1, max(deepest, depth + 1)
            elif self.pattern[self.position] == "]":
                self.position += 1
                depth -= 1
            elif self.pattern[self.position : self.position + 2] in ("&&", "--", "~~"):
                self.position += 2
            else:
                cost += self._class_range()
        return cost, deepest * LEVELS_PER_BRACKET

    def _class_start(self) -> None:
        if self.pattern.startswith("^", self.position):
            self.position += 1
        dashes = self.position
        while self.pattern.startswith("-", self.position):
            self.position += 1
        if self.position == dashes and self.pattern.startswith("]", self.position):
            self.position += 1

    def _class_range(self) -> int:
        low, cost = self._class_item()
        following = self.pattern[self.position + 1 : self.position + 2]
        if not self.pattern.startswith("-", self.position) or following in ("]", "-", ""):
            return cost
        self.position += 1
        high, _ = self._class_item()
        if not low or not high:
            raise _Fault("a range needs a letter at both ends")
        if low > high:
            raise _Fault(f"the range {low!r} to {high!r} is in the wrong order")
        return cost

    def _class_item(self) -> tuple[str, int]:
        letter = self._take()
        if letter != "\\":
            return letter, 1
        if self.pattern[self.position : self.position + 1] in tuple(ASSERTIONS):
            raise _Fault("a character class has an escape that stands for no letter")
        return self._escape()

    def _escape(self) -> tuple[str, int]:
        """Read an escape after its backslash. Return its letter, if it is one, and its cost."""
        letter = self._take()
        if not letter:
            raise _Fault("it ends with a backslash")
        if letter in "0123456789":
            raise _Fault("back-references are not supported")
        if letter in HEX_DIGITS:
            return self._hexadecimal(letter), 1
        if letter in "pP":
            self._property()
            return "", WIDE_COST
        if letter in WIDE_CLASSES:
            return "", WIDE_COST
        if letter in ASSERTIONS:
            self._boundary(letter)
            return "", 1
        if letter in CONTROLS:
            return CONTROLS[letter], 1
        if letter.isascii() and not letter.isalnum():
            return letter, 1
        raise _Fault(f"the escape {chr(92) + letter!r} is not known")

    def _hexadecimal(self, letter: str) -> str:
        braces = HEXADECIMAL.match(self.pattern, self.position)
        size = HEX_DIGITS[letter]
        digits = braces[1] if braces else self.pattern[self.position : self.position + size]
        if not re.fullmatch(r"[0-9A-Fa-f]+", digits) or (not braces and len(digits) < size):
            raise _Fault(f"{chr(92) + letter!r} must be followed by {size} hexadecimal digits")
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:  # noqa: PLR2004 - Unicode's own limits
            raise _Fault(f"{digits} is no character")
        self.position = braces.end() if braces else self.position + size
        return chr(code)

    def _property(self) -> None:
        property_match = PROPERTY.match(self.pattern, self.position)
        if property_match is None:
            raise _Fault("the Unicode property is not known")
        self.position = property_match.end()

    def _boundary(self, letter: str) -> None:
        if letter != "b" or not self.pattern.startswith("{", self.position):
            return
        boundary_match = BOUNDARY.match(self.pattern, self.position)
        if boundary_match is None:
            raise _Fault("the word boundary is not known")
        self.position = boundary_match.end()


def _number(digits: str) -> int:
    if len(digits) > len(str(LARGEST_REPEAT)) or int(digits) > LARGEST_REPEAT:
        raise _Fault(f"the count {digits[:20]} is too large")
    return int(digits)
