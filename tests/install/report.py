"""What each case found, in a file, from which the page of the last result is written."""

import json
from time import monotonic

from tests.install.tools import ROOT, run

PATH = ROOT / "build" / "install" / "report.jsonl"
COUNT = "import importlib.metadata as m; print(len(list(m.distributions())))"


class Report:
    """The result of one case; without ``holds`` it is written as a failure."""

    def __init__(self, test, case):
        self._told = {"test": test, "case": case, "holds": False}
        self._began = monotonic()

    def holds(self, commands, **figures):
        """Tell that all claims of the case hold, how many packages it took, and *figures*."""
        interpreter = (commands / "temper").resolve().with_name("python")
        packages = int(run(interpreter, "-c", COUNT).stdout)
        self._told |= {"holds": True, "packages": packages, **figures}

    def write(self):
        """Append the result to the file of this run."""
        PATH.parent.mkdir(parents=True, exist_ok=True)
        self._told["took_s"] = round(monotonic() - self._began, 1)
        with PATH.open("a") as file:
            file.write(json.dumps(self._told) + "\n")
