"""``temper profiles schema``: the JSON Schema by which editors complete profiles."""

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of profiles, for editors that complete TOML by one."""
    import json

    from temper_core.profiles.schema import profile_schema

    click.echo(json.dumps(profile_schema(), indent=2))
