"""The guardian of a run, in a working directory of another user."""

import subprocess
import sys

from temper_plugin_trainer.refining import guardian

PROGRAM = f"""
from {guardian.__name__} import Guardian
Guardian(None).close()
"""


def test_no_module_is_imported_from_the_working_directory(tmp_path):
    for name in ("attrs", "json", "signal", "subprocess"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\n")

    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM], check=False, cwd=tmp_path)

    assert done.returncode == 0
    assert not (tmp_path / "ran").exists()
