"""The input of the rules: the layers as far as they could be read, and their context."""

from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from temper_core.engine.capabilities import Capabilities
from temper_core.engine.config_layers import Condition, LayerText
from temper_core.engine.problems import Problem


@frozen
class JudgedConfiguration:
    """A configuration that is checked.

    ``arguments`` are the options that the engine is started with. ``cpus`` is the number of CPUs
    that it will find, ``None`` if unknown.
    """

    layers: tuple[LayerText, ...]
    capabilities: Capabilities
    arguments: Sequence[str] = ()
    cpus: int | None = None

    def has_argument(self, name: str) -> bool:
        """Whether the engine is started with ``--name``, alone or as ``--name=value``."""
        flag = f"--{name}"
        return any(
            argument == flag or argument.startswith(f"{flag}=") for argument in self.arguments
        )

    def conditions(self) -> Iterator[tuple[LayerText, Condition]]:
        """Yield every matcher that could be read, with its layer."""
        for layer in self.layers:
            for block in layer.blocks:
                yield from ((layer, condition) for condition in block if condition.kind)


Rule = Callable[[JudgedConfiguration], Iterator[Problem]]
