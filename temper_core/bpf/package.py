"""BPF objects shipped inside a Python package, next to the code that loads them."""

from collections.abc import Mapping
from importlib.resources import files

from temper_core.bpf.skeleton import Skeleton
from temper_core.errors import BpfError


def load_object(
    package: str,
    name: str,
    *,
    max_entries: Mapping[str, int] | None = None,
    initial: Mapping[str, bytes] | None = None,
) -> Skeleton:
    """Load ``NAME.bpfl`` of *package*, as ``Skeleton.load`` does. Raises ``BpfError``."""
    try:
        content = files(package).joinpath(f"{name}.bpfl").read_bytes()
    except (OSError, ModuleNotFoundError) as error:
        raise BpfError(f"cannot read the BPF object {name!r} of {package}: {error}") from error
    return Skeleton.load(content, max_entries=max_entries, initial=initial)
