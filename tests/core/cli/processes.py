"""``temper`` as a process of its own."""

import subprocess
import sys

RUN_TEMPER = "from temper_core.cli.main import main; main()"


def temper_process(node, *arguments, **options):
    command = [sys.executable, "-c", RUN_TEMPER, *arguments, "--settings", str(node.settings_path)]
    return subprocess.Popen(command, text=True, **options)
