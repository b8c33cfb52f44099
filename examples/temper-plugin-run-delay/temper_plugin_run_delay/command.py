"""``temper run-delay``, which queries the agent."""

from pathlib import Path

import click

from temper_core import ask_agent, load_settings


@click.command("run-delay")
@click.option("--settings", type=click.Path(path_type=Path), help="The settings file.")
def run_delay(settings: Path | None) -> None:
    """Show how long the pods of this node wait for a CPU."""
    document = ask_agent("/observe", settings=load_settings(settings))
    section = document["sections"].get("run-delay", {"delays": {}})
    for pod, delay in sorted(section["delays"].items(), key=lambda item: -item[1]):
        click.echo(f"{delay:8.3f}  {pod}")
