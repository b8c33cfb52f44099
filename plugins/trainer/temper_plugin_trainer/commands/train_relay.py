"""``temper train relay``: the part of ``kubectl temper train`` that runs in the agent's pod."""

import json
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from temper_core import configure_logs, load_settings
from temper_core.console import settings_option
from temper_plugin_trainer.refining.node_facts import facts_here
from temper_plugin_trainer.refining.trial_door import way_here
from temper_plugin_trainer.remote.relay import Relay, lines_of
from temper_plugin_trainer.remote.relay_client import SCHEMA_VERSION


@click.command("relay")
@settings_option
def relay_command(settings_path: Path | None) -> None:
    """Pass requests of kubectl temper train from standard input on to the agent.

    When the input ends or is silent for 30 s, or a signal ends it, the trials and the requests of
    safe mode that came through it are ended.
    """
    configure_logs("warning")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _end)
    relay = Relay(way_here(load_settings(settings_path)))
    facts = facts_here()
    greeting = {
        "schema_version": SCHEMA_VERSION,
        "machine": facts.machine,
        "kernel": facts.kernel,
    }
    _write(json.dumps(greeting) + "\n")
    relay.serve(lines_of(sys.stdin.fileno()), _write)


def _end(_number: int, _frame: object) -> NoReturn:
    """End the relay as the end of its input does."""
    sys.exit(0)


def _write(line: str) -> None:
    sys.stdout.write(line)
    sys.stdout.flush()
