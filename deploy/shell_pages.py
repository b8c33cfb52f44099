"""Generates man pages and completion files for packages of distributions.

python -m deploy.shell_pages man|completions FOLDER    FOLDER is a share folder such as /usr/share
"""

import os
import sys
import time
from pathlib import Path

import click
from click_man.core import write_man_pages  # type: ignore[import-untyped]  # it ships no types

from temper_core import __version__
from temper_core.cli.completion import completion_script
from temper_core.cli.main import temper

COMPLETIONS = {
    "bash": "bash-completion/completions/temper",
    "zsh": "zsh/site-functions/_temper",
    "fish": "fish/vendor_completions.d/temper.fish",
}


def write_man(share: Path) -> None:
    """Write a page for ``temper`` and one for each command, plugins' commands included."""
    folder = share / "man" / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    built_at = float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    date = time.strftime("%Y-%m-%d", time.gmtime(built_at))
    write_man_pages("temper", _loaded(temper), version=__version__, target_dir=folder, date=date)


def write_completions(share: Path) -> None:
    """Write the completion script of each shell into the shell's own folder."""
    for shell, place in COMPLETIONS.items():
        file = share / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(completion_script(shell))


def _loaded(command: click.Command, parent: click.Context | None = None) -> click.Command:
    """Return *command* with all its sub-commands imported: click-man reads ``commands`` only."""
    # Without a short help click-man cuts the summary off at 45 characters.
    command.short_help = " ".join((command.help or "").partition("\n\n")[0].split())
    if not isinstance(command, click.Group):
        return command
    context = click.Context(command, info_name=command.name, parent=parent)
    commands = {name: command.get_command(context, name) for name in command.list_commands(context)}
    return click.Group(
        command.name,
        {
            name: _loaded(subcommand, context)
            for name, subcommand in commands.items()
            if subcommand is not None
        },
        help=command.help,
        params=command.params,
        short_help=command.short_help,
    )


def main(arguments: list[str]) -> None:
    """Write the files that the arguments name."""
    kinds = {"man": write_man, "completions": write_completions}
    if len(arguments) != 2 or arguments[0] not in kinds:  # noqa: PLR2004 - kind and folder
        raise SystemExit(__doc__)
    kinds[arguments[0]](Path(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
