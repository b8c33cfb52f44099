"""Processors and GPUs whose power is known by their model.

Thermal design power, highest boost clock and board power are those of the data sheets of the
manufacturers. A model that is not here is not known, and nothing is guessed for it.
"""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

LEAST_CPU_SHARE, LEAST_GPU_SHARE = 0.55, 0.5
"""Of the power of the data sheet. Below it the catalogue allows no cap."""


@frozen
class CpuModel:
    """A processor: its thermal design power, and its highest boost clock."""

    tdp_watts: float
    boost_ghz: float
    cores: int


@frozen
class GpuModel:
    """A GPU: the power of its board."""

    board_watts: float


CPUS: Mapping[str, CpuModel] = {
    "EPYC 7742": CpuModel(225, 3.4, 64),
    "EPYC 7763": CpuModel(280, 3.5, 64),
    "EPYC 9554": CpuModel(360, 3.75, 64),
    "EPYC 9654": CpuModel(360, 3.7, 96),
    "EPYC 9754": CpuModel(360, 3.1, 128),
    "Xeon Platinum 8280": CpuModel(205, 4.0, 28),
    "Xeon Platinum 8380": CpuModel(270, 3.4, 40),
    "Xeon Platinum 8480": CpuModel(350, 3.8, 56),
    "Xeon Platinum 8592": CpuModel(350, 3.9, 64),
}
GPUS: Mapping[str, GpuModel] = {
    "A10": GpuModel(150),
    "A100 PCIE 40GB": GpuModel(250),
    "A100 80GB PCIe": GpuModel(300),
    "A100 SXM4": GpuModel(400),
    "H100 PCIe": GpuModel(350),
    "H100 80GB HBM3": GpuModel(700),
    "H200 NVL": GpuModel(600),  # before "H200", whose words it has too
    "H200": GpuModel(700),
    "L4": GpuModel(72),
    "L40S": GpuModel(350),
    "MI300X": GpuModel(750),
    "Tesla T4": GpuModel(70),
    "V100 SXM2": GpuModel(300),
}


def cpu_key(names: Iterable[str]) -> str:
    """Return the key of the processor that one of *names* names, empty if it is not known.

    A name has all words of the key: ``Intel(R) Xeon(R) Platinum 8480+``.
    """
    return _find(CPUS, names)


def gpu_key(names: Iterable[str]) -> str:
    """Return the key of the GPU that one of *names* names: ``NVIDIA-H100-80GB-HBM3``."""
    return _find(GPUS, names)


def cpu_model(names: Iterable[str]) -> CpuModel | None:
    """Return the processor that one of *names* names, None if it is not known."""
    return CPUS.get(cpu_key(names))


def gpu_model(names: Iterable[str]) -> GpuModel | None:
    """Return the GPU that one of *names* names, None if it is not known."""
    return GPUS.get(gpu_key(names))


def _find(keys: Iterable[str], names: Iterable[str]) -> str:
    known = [(key, _words(key)) for key in keys]
    for name in names:
        words = _words(name)
        found = next((key for key, own in known if own <= words), "")
        if found:
            return found
    return ""


def _words(name: str) -> frozenset[str]:
    # The marks of trade names are no words of the model: Xeon(R).
    return frozenset(re.findall(r"[a-z0-9]+", re.sub(r"\((r|tm)\)", " ", name.lower())))
