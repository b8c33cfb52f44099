"""What an installed agent has to do: tell its version and plugins, and observe real threads."""

import json
import os
import subprocess
import time
from contextlib import contextmanager, suppress
from urllib.error import HTTPError
from urllib.request import urlopen

from tests.install.tools import run
from tests.patience import PATIENCE_S

SETTINGS = """
run_directory = "FOLDER/run"
state_directory = "FOLDER/state"
observe = {period_s = 1.0}
server = {
    listen = "127.0.0.1:0",
}
"""
"""With an inline table over several lines, which TOML 1.1 allows."""
ALL_COMMANDS = """
import click
from temper_core.cli.main import temper

def walk(command, context):
    command.get_help(context)
    if not isinstance(command, click.Group):
        return 1
    names = command.list_commands(context)
    found = [(name, command.get_command(context, name)) for name in names]
    assert all(each for _, each in found), found
    return sum(walk(each, click.Context(each, context, name)) for name, each in found)

print(walk(temper, click.Context(temper, info_name="temper")))
"""
"""Imports the module of every command, and asks for its help."""


def version_of(commands):
    """Return what ``temper --version`` prints."""
    return run(commands / "temper", "--version").stdout.strip()


def plugins_of(commands):
    """Return the state of every plugin; a plugin that fails is an error."""
    listed = run(commands / "temper", "plugins", "--strict-plugins", "--output", "json")
    return {each["name"]: each["state"] for each in json.loads(listed.stdout)}


def number_of_commands(commands):
    """Return how many commands there are, all of them imported."""
    interpreter = (commands / "temper").resolve().with_name("python")
    return int(run(interpreter, "-I", "-c", ALL_COMMANDS).stdout)


@contextmanager
def observing(commands, folder):
    """Run an agent that only observes this machine; yield its address."""
    folder.mkdir(exist_ok=True)
    settings, log = folder / "agent.toml", folder / "log"
    settings.write_text(SETTINGS.replace("FOLDER", str(folder)))
    command = [commands / "temper", "agent", "--observe-only", "--settings", settings]
    # Not in the checkout, whose modules would come first.
    options = {"cwd": folder, "env": {"PATH": os.environ["PATH"]}}
    with log.open("w") as file:
        agent = subprocess.Popen(command, stderr=file, **options)
    try:
        yield _address_in(log, agent)
    finally:
        agent.terminate()
        code = agent.wait(PATIENCE_S)
    assert code == 0, log.read_text()
    assert not troubles_in(log)


def events_in(log):
    """Return the events of a log; a line that is none counts as an error."""
    lines = log.read_text().splitlines()
    return [
        json.loads(line) if line.startswith("{") else {"level": "error", "event": line}
        for line in lines
    ]


def troubles_in(log):
    """Return the events that tell of a plugin that failed, and errors of any kind."""
    return [
        event
        for event in events_in(log)
        if event["level"] == "error" or event["event"] == "plugin_set_aside"
    ]


def _address_in(log, agent):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and agent.poll() is None:
        for event in events_in(log):
            if event["event"] == "agent_started":
                return event["address"]
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def scraped(address):
    """Return the samples of ``/metrics``, by name with labels."""
    with urlopen(f"http://{address}/metrics", timeout=PATIENCE_S) as answer:
        lines = answer.read().decode().splitlines()
    samples = (line.rpartition(" ") for line in lines if line and not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


def observed(address):
    """Return the first observation that has threads; before the first one the answer is 503."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(HTTPError), urlopen(f"http://{address}/observe") as answer:
            document = json.load(answer)
            if document["threads"]:
                return document
        time.sleep(0.5)
    raise AssertionError(f"{address} has observed no threads")
