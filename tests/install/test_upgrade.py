"""A host that is upgraded and rolled back: each version runs on what the other one has written."""

import json
import sqlite3
import tarfile
from contextlib import closing

import pytest

from tests.install.interpreters import VERSIONS, python_of
from tests.install.pins import plugins
from tests.install.tools import ROOT, by_uv_pip, run, uv
from tests.install.trial import observing

EARLIER = ("ff93e8939e", "23d2e5bf85")
"""Commits of 2026-11-24 and 2026-11-26. The second one is the first with a history of demand."""
REFUSED = ("tiers.low.", "tiers.background.")
"""Settings of tiers without a layer of their own, which no version takes from a file."""
RESTARTED = ["agent_stopped", "agent_started"]


@pytest.fixture(scope="module", params=EARLIER)
def earlier(request, tmp_path_factory):
    """Build and install the wheels of an earlier commit; return the folder of its commands."""
    folder = tmp_path_factory.mktemp(request.param)
    if run("git", "-C", ROOT, "rev-parse", "--is-shallow-repository").stdout == "true\n":
        pytest.skip("this checkout has no history")
    run("git", "-C", ROOT, "archive", "--output", folder / "source.tar", request.param)
    with tarfile.open(folder / "source.tar") as source:
        source.extractall(folder / "source", filter="data")
    build = (uv(), "build", "--quiet", "--wheel", "--all-packages")
    run(*build, "--out-dir", folder / "dist", folder / "source")
    return _install(folder / "dist", folder)


@pytest.fixture(scope="module")
def present(wheels, tmp_path_factory):
    """Install the wheels of this commit; return the folder of its commands."""
    return _install(wheels, tmp_path_factory.mktemp("present"))


def _install(wheels, folder):
    python = python_of(VERSIONS[0])
    if python is None:
        pytest.skip(f"this machine has no Python {VERSIONS[0]}")
    pins = folder / "pins.txt"
    pins.write_text("")
    return by_uv_pip("temper-agent[all]", wheels, pins, python, folder)


def asked(commands, folder, *words):
    """Return what a command says of the agent of *folder*, as JSON."""
    given = ("--settings", folder / "agent.toml", "--output", "json")
    return json.loads(run(commands / "temper", *words, *given).stdout)


def requesters(commands, folder):
    """Return who requests safe mode of the running agent."""
    return set(asked(commands, folder, "safe-mode", "status")["requests"])


def kinds(commands, folder):
    """Return the kinds of all events that the running agent knows, the oldest first."""
    return [event["kind"] for event in asked(commands, folder, "events")["events"]]


def request_safe_mode(commands, folder, requester):
    run(
        *(commands / "temper", "safe-mode", "on", "--requester", requester),
        *("--reason", "a test", "--settings", folder / "agent.toml"),
    )


def versions_of_histories(folder):
    """Return the versions of the files in which the rightsizer keeps demand."""
    found = {}
    for path in (folder / "state").rglob("demand*"):
        with closing(sqlite3.connect(path)) as database:
            found[path.name] = database.execute("PRAGMA user_version").fetchone()[0]
    return found


def test_requests_and_events_outlive_an_upgrade_and_a_rollback(earlier, present, tmp_path):
    host = tmp_path / "host"
    with observing(earlier, host):
        request_safe_mode(earlier, host, "before")
        first = kinds(earlier, host)

    with observing(present, host):
        assert requesters(present, host) == {"before"}
        second = kinds(present, host)
        assert second[: len(first)] == first
        assert second[len(first) :][:2] == RESTARTED
        request_safe_mode(present, host, "after")
        second = kinds(present, host)

    with observing(earlier, host):
        assert requesters(earlier, host) == {"before", "after"}
        third = kinds(earlier, host)
        assert third[: len(second)] == second
        assert third[len(second) :][:2] == RESTARTED


def test_no_history_of_demand_is_lost(earlier, present, tmp_path):
    host = tmp_path / "host"
    with observing(earlier, host):
        pass
    before = set(versions_of_histories(host).values())
    with observing(present, host):
        pass
    with observing(earlier, host):
        pass

    assert before <= set(versions_of_histories(host).values())


def test_every_setting_of_the_earlier_version_is_still_one(earlier, present, tmp_path):
    listed = [each for each in _settings(earlier) if each["value"] is not None]
    written = [each for each in listed if not each["setting"].startswith(REFUSED)]
    file = tmp_path / "agent.toml"
    lines = (f"{each['setting']} = {json.dumps(each['value'])}\n" for each in written)
    file.write_text("".join(lines))

    read = {each["setting"]: each for each in _settings(present, "--settings", file)}

    assert len(written) > 100
    assert {each["setting"] for each in listed} <= set(read)
    assert {name for name, each in read.items() if each["source"] != "default"} == {
        each["setting"] for each in written
    }
    assert all(read[each["setting"]]["value"] == each["value"] for each in written)


def _settings(commands, *given):
    listed = run(commands / "temper", "settings", "--output", "json", *given)
    return json.loads(listed.stdout)


def test_every_plugin_of_the_earlier_version_is_there(earlier):
    listed = json.loads(run(earlier / "temper", "plugins", "--output", "json").stdout)

    names = {each["name"] for each in listed} - {"core"}
    assert names <= {name for named in plugins().values() for name in named}
