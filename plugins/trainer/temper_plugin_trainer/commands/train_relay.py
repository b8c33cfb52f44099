"""``temper train relay``: the part of ``kubectl temper train`` that runs in the agent's pod."""

import json
import os
import signal
import sys
from pathlib import Path

import click

from temper_core import configure_logs, load_settings
from temper_core.console import settings_option
from temper_plugin_trainer.refining.node_facts import facts_here
from temper_plugin_trainer.refining.trial_door import way_here
from temper_plugin_trainer.remote.channel import Channel
from temper_plugin_trainer.remote.relay import Relay
from temper_plugin_trainer.remote.relay_client import SCHEMA_VERSION


@click.command("relay")
@settings_option
def relay_command(settings_path: Path | None) -> None:
    """Pass requests of kubectl temper train from standard input on to the agent.

    When the input ends or is silent for 30 s, or a signal ends it, the trials and the requests of
    safe mode that came through it are ended.
    """
    configure_logs("warning")
    channel = Channel(sys.stdin.fileno(), sys.stdout.fileno(), _stop_by_signals())
    relay = Relay(way_here(load_settings(settings_path)))
    facts = facts_here()
    greeting = {
        "schema_version": SCHEMA_VERSION,
        "machine": facts.machine,
        "kernel": facts.kernel,
    }
    channel.write(json.dumps(greeting) + "\n")
    relay.serve(channel.lines(), channel.write)


def _stop_by_signals() -> int:
    """Return a descriptor that has something to read once a signal asks for the end.

    An exception of a handler could end a request between the answer and its note, or the clearing.
    """
    stop, asked = os.pipe()
    os.set_blocking(asked, False)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(asked, warn_on_full_buffer=False)
    return stop
