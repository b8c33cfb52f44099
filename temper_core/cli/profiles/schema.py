"""``temper profiles schema``: the JSON Schema by which editors complete profiles."""

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of profiles, by which editors complete TOML."""
    import json

    from temper_core.profiles.schema import profile_schema

    click.echo(json.dumps(profile_schema(), indent=2))
