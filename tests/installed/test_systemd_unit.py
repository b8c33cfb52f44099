"""The unit for one plain host, as systemd reads it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy/systemd/temper.service"
TEMPER = Path(sys.executable).with_name("temper")


def test_systemd_has_no_complaint_about_the_unit_and_what_it_starts_is_there(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("this machine has no systemd-analyze")
    text = UNIT.read_text()
    (started,) = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    program, *arguments = started.removeprefix("ExecStart=").split()
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace(program, str(TEMPER)))

    judged = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
    )
    helped = subprocess.run([TEMPER, *arguments, "--help"], capture_output=True, check=False)

    assert (judged.returncode, judged.stdout + judged.stderr) == (0, "")
    assert program.endswith("/.venv/bin/temper")
    assert helped.returncode == 0
