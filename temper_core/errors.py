"""All errors that Temper raises on purpose.

TemperError
├── InputError         input of the user is wrong: a document, an option, a request
│   ├── DocumentError  a document does not fit its model. Names every misfit
│   └── PlanError      an engine configuration that the engine would refuse
├── PluginError        an installed plugin cannot be used
│   └── NameClash      two plugins contribute the same name
└── MachineError       this machine lacks something that is needed
    ├── EngineError    the engine did not start, did not answer, or was ejected
    └── BpfError       the kernel refused a call of bpf(2), or a BPF object is damaged
"""

from collections.abc import Sequence
from os import strerror

TYPE_CHECKING = False  # typing is slow to import, and every start would wait for it
if TYPE_CHECKING:
    from typing import ClassVar

TRACEBACK = "TEMPER_TRACEBACK"
"""The environment variable that adds tracebacks to the failures of plugins."""
EXIT_CLEAN = 0
EXIT_FINDINGS = 1
EXIT_INPUT = 2
EXIT_MACHINE = 3


class TemperError(Exception):
    """Base of Temper's own errors. Anything else that escapes is a bug."""

    exit_code: "ClassVar[int]" = EXIT_INPUT

    @property
    def lines(self) -> tuple[str, ...]:
        """The message by the lines to print. A line may hold any text, line breaks included."""
        return (str(self),)


class InputError(TemperError):
    """Some input of the user is wrong. Nothing was changed."""


class DocumentError(InputError):
    """A document does not fit its model. ``problems`` names each misfit by its path."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each problem."""
        return tuple(f"{self.source}: {problem}" for problem in self.problems)


class PlanError(InputError):
    """An engine configuration breaks rules of the engine. ``problems`` lists them."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines))

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each problem."""
        return tuple(f"{self.source}: {problem}" for problem in self.problems)


class PluginError(TemperError):
    """A plugin could not be loaded, or broke its hook's contract."""

    def __init__(self, plugin: str, reason: str) -> None:
        self.plugin = plugin
        self.reason = reason
        super().__init__(f"plugin {plugin!r}: {reason}")


class NameClash(PluginError):  # noqa: N818 - reads as the fact it reports
    """Two plugins contribute a record of the same name."""


class MachineError(TemperError):
    """The machine lacks something that is needed. The message names it."""

    exit_code = EXIT_MACHINE


class EngineError(MachineError):
    """The engine did not start, did not answer, or was ejected by the kernel."""


class BpfError(MachineError):
    """The kernel refused a call of bpf(2), or a BPF object is damaged.

    ``errno`` is 0 without a call into the kernel. ``log`` is the output of its verifier, if any.
    """

    def __init__(self, what: str, errno: int = 0, log: str = "") -> None:
        self.errno = errno
        self.log = log
        super().__init__(f"{what}: {strerror(errno)}" if errno else what)
