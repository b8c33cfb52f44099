"""The program ``temper``, on a host whose usual settings are those of the working folder.

Only ``safe-mode`` has such an object. It keeps the command off the machine's own files.
"""

from pathlib import Path

from temper_core.cli.main import main, temper
from temper_core.cli.safe_mode_outcome import Host
from temper_core.scheduler.host.roots import Roots
from temper_core.settings import load


def run():
    """Run the command of ``sys.argv`` and exit with its code."""
    usual, roots = Path("agent.toml"), Roots(node=Path("node").absolute())
    temper.context_settings["obj"] = Host(roots, usual=lambda: load(usual).settings)
    main()
