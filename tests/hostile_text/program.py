"""The program ``temper``, on a host whose usual settings are those of the working folder.

Only ``safe-mode`` has such an object. It keeps the command off the machine's own files.
"""

from pathlib import Path

from temper_core.cli.main import main, temper
from temper_core.cli.safe_mode_outcome import Host
from temper_core.settings import load


def run():
    """Run the command of ``sys.argv`` and exit with its code."""
    usual = Path("agent.toml")
    temper.context_settings["obj"] = Host(usual=lambda: load(usual).settings)
    main()
