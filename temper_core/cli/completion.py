"""``temper completion``: the script that a shell needs to complete commands and options."""

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    Bash: add ``eval "$(temper completion bash)"`` to ~/.bashrc. Zsh and fish likewise.
    """
    click.echo(completion_script(shell))


def completion_script(shell: str) -> str:
    """Return the script that *shell* sources to complete ``temper``."""
    from click.shell_completion import get_completion_class

    from temper_core.cli.main import temper

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"click has no completion for {shell}")
    return completion(temper, {}, "temper", "_TEMPER_COMPLETE").source()
