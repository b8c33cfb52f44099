"""Processors and GPUs whose power is known by their model, each with the source of its figures.

A model that is not here is not known, and nothing is guessed for it.
"""

import re
from collections.abc import Iterable, Mapping

from attrs import frozen

LEAST_CPU_SHARE, LEAST_GPU_SHARE = 0.55, 0.5
"""Of the power of the data sheet. Below it the catalogue allows no cap."""


AMD = "AMD's table of server processors, in mlco2/codecarbon b05965e43b69"
INTEL = "Intel ARK, in mlco2/codecarbon b05965e43b69"
NVIDIA = "NVIDIA's data sheet, as mlco2/impact d0d3ee5a71ea quotes it"
H100_BRIEF = "NVIDIA's product brief PB-11133-001_v02"
MLPERF = "AMD's system description of MLPerf, in mlcommons/inference_results_v4.1"
A100_GUIDE = "thundercompute.com/blog/nvidia-a100-specs-full-guide"
H200_GUIDE = "openmetal.io/resources/blog/how-the-h200-is-built-for-memory-bound-ai-workloads"
H200_NVL_NOTE = "onestopsystems.com/pages/one-stop-systems-blog"
V100_NEWS = "hwupgrade.it/news/skvideo, 69475"
A10_TABLES = "optimum/llm-perf-leaderboard hardware.yml, winston-zhang-orz/gpu-specs 097f0fb34b75"
"""Two tables of others. NVIDIA's own text was not found."""


@frozen
class CpuModel:
    """A processor: its default thermal design power, its highest boost clock, and its cores.

    All three are of *source*.
    """

    tdp_watts: float
    boost_ghz: float
    cores: int
    source: str


@frozen
class GpuModel:
    """A GPU: the greatest power of its board by default, as *source* has it."""

    board_watts: float
    source: str


CPUS: Mapping[str, CpuModel] = {
    "EPYC 7543": CpuModel(225, 3.7, 32, AMD),
    "EPYC 7742": CpuModel(225, 3.4, 64, AMD),
    "EPYC 7763": CpuModel(280, 3.5, 64, AMD),
    "EPYC 9354": CpuModel(280, 3.8, 32, AMD),
    "EPYC 9375F": CpuModel(320, 4.8, 32, AMD),
    "EPYC 9454": CpuModel(290, 3.8, 48, AMD),
    "EPYC 9455": CpuModel(300, 4.4, 48, AMD),
    "EPYC 9534": CpuModel(280, 3.7, 64, AMD),
    "EPYC 9554": CpuModel(360, 3.75, 64, AMD),
    "EPYC 9554P": CpuModel(360, 3.75, 64, AMD),
    "EPYC 9555": CpuModel(360, 4.4, 64, AMD),
    "EPYC 9654": CpuModel(360, 3.7, 96, AMD),
    "EPYC 9654P": CpuModel(360, 3.7, 96, AMD),
    "EPYC 9655": CpuModel(400, 4.5, 96, AMD),
    "EPYC 9655P": CpuModel(400, 4.5, 96, AMD),
    "EPYC 9754": CpuModel(360, 3.1, 128, AMD),
    "EPYC 9965": CpuModel(500, 3.7, 192, AMD),
    "Xeon 6972P": CpuModel(500, 3.9, 96, INTEL),
    "Xeon 6980P": CpuModel(500, 3.9, 128, INTEL),
    "Xeon Gold 6530": CpuModel(270, 4.0, 32, INTEL),
    "Xeon Platinum 8280": CpuModel(205, 4.0, 28, INTEL),
    "Xeon Platinum 8380": CpuModel(270, 3.4, 40, INTEL),
    "Xeon Platinum 8468": CpuModel(350, 3.8, 48, INTEL),
    "Xeon Platinum 8480": CpuModel(350, 3.8, 56, INTEL),
    "Xeon Platinum 8490H": CpuModel(350, 3.5, 60, INTEL),
    "Xeon Platinum 8580": CpuModel(350, 4.0, 60, INTEL),
    "Xeon Platinum 8592": CpuModel(350, 3.9, 64, INTEL),
    "Xeon Platinum 8592V": CpuModel(330, 3.9, 64, INTEL),
}
GPUS: Mapping[str, GpuModel] = {
    "A10": GpuModel(150, A10_TABLES),
    "A100 PCIE 40GB": GpuModel(250, NVIDIA),
    "A100 80GB PCIe": GpuModel(300, A100_GUIDE),
    "A100 SXM4": GpuModel(400, NVIDIA),
    "H100 PCIe": GpuModel(350, H100_BRIEF),
    "H100 NVL": GpuModel(400, NVIDIA),
    "H100 80GB HBM3": GpuModel(700, NVIDIA),
    "H200 NVL": GpuModel(600, H200_NVL_NOTE),  # before "H200", whose words it has too
    "H200": GpuModel(700, H200_GUIDE),
    "L4": GpuModel(72, NVIDIA),
    "L40S": GpuModel(350, NVIDIA),
    "MI300X": GpuModel(750, MLPERF),
    "Tesla T4": GpuModel(70, NVIDIA),
    "V100 SXM2": GpuModel(300, V100_NEWS),
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
