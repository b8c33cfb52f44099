"""GPUs whose limits are in files, so that several processes see one machine's."""

import os
from pathlib import Path

from tests.power.node.fake_nvml import FakeNvml, NVMLError

FILES = "TEMPER_TEST_GPUS"
"""The variable with the folder of the files."""
ROOT = Path(__file__).parents[3]


class FiledGpus:
    """Two GPUs of 350 W in *folder*, and a module ``pynvml`` that has them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "module").mkdir(parents=True)
        (folder / "module/pynvml.py").write_text(
            "from tests.power.node.filed_gpus import functions\nglobals().update(functions())\n"
        )
        self.module_path = os.pathsep.join((str(folder / "module"), str(ROOT)))
        for gpu in gpus_of(folder):
            gpu.limit_mw = gpu.most_mw

    def limits(self):
        return [gpu.limit_mw / 1000 for gpu in gpus_of(self.folder)]

    def fail(self, problem):
        """Let every process that connects from now on fail, or none with an empty text."""
        (self.folder / "problem").write_text(problem)


class FiledGpu:
    """A GPU with its limit in a file."""

    has_limits = True
    least_mw, most_mw = 200_000, 350_000

    def __init__(self, folder, number):
        self.uuid = f"GPU-{number}"
        self._path = folder / str(number)

    @property
    def limit_mw(self):
        return int(self._path.read_text())

    @limit_mw.setter
    def limit_mw(self, limit):
        self._path.write_text(str(limit))


def gpus_of(folder):
    """Return the GPUs of the machine."""
    return [FiledGpu(folder, number) for number in range(2)]


class FiledNvml(FakeNvml):
    """The library of one process."""

    def __init__(self, folder):
        self._problem = folder / "problem"
        super().__init__(*gpus_of(folder))

    def nvmlInit(self):  # noqa: N802 - the name of pynvml
        if self._problem.exists() and (problem := self._problem.read_text()):
            raise NVMLError(problem)
        super().nvmlInit()


def functions():
    """Return what the module holds."""
    library = FiledNvml(Path(os.environ[FILES]))
    names = [name for name in dir(library) if name.startswith("nvml")]
    return {"NVMLError": NVMLError, **{name: getattr(library, name) for name in names}}
