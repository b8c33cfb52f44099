import json

import pytest
from click.testing import CliRunner

from temper_core.cli.machine import command as machine_command
from temper_core.cli.map import command as map_command
from temper_core.errors import MachineError
from temper_core.node.machine_file import read_machine_file
from temper_core.node.topology import read_machine
from tests.core.node.sysfs_trees import hybrid_laptop, smt_server

OBSERVATION = {
    "layers": [
        {"name": "critical", "cpus": [0, 16]},
        {"name": "rest", "cpus": []},
        {"name": "odd", "cpus": None},
    ],
    "threads": [
        {"tid": 5, "tgid": 4, "comm": "calm", "cpu": 16, "cpu_used": 0.1, "layer": "critical"},
        {
            "tid": 6,
            "tgid": 4,
            "comm": "busy\x1b[31m",
            "namespace": "shop",
            "pod": "db",
            "cpu": 16,
            "cpu_used": 0.9,
        },
    ],
}


@pytest.fixture
def lonely_settings(tmp_path):
    """Settings of a host where no agent can answer."""
    path = tmp_path / "agent.toml"
    path.write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/no.sock"\n')
    return str(path)


def run(command, *arguments):
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_shape_is_printed_for_people(tmp_path):
    lines = run(machine_command, "--sys-root", str(smt_server(tmp_path))).splitlines()

    assert [line.split(maxsplit=1) for line in lines][1] == ["sockets", "2"]
    assert "CPUs              32 (0-31)" in lines
    assert "offline           none" in lines


def test_a_hybrid_machine_shows_its_capacities(tmp_path):
    printed = run(machine_command, "--sys-root", str(hybrid_laptop(tmp_path, capacities=True)))

    assert "1024 (CPUs 0-3), 512 (CPUs 4-7)" in printed


def test_the_json_is_a_machine_file(tmp_path):
    root = smt_server(tmp_path / "sys")
    path = tmp_path / "machine.json"

    path.write_text(run(machine_command, "--sys-root", str(root), "--output", "json"))

    assert read_machine_file(path) == read_machine(root)


def test_a_tree_that_is_none_ends_with_the_machines_error(tmp_path):
    with pytest.raises(MachineError, match="names no CPU") as caught:
        run(machine_command, "--sys-root", str(tmp_path))

    assert caught.value.exit_code == 3


def test_without_an_agent_the_map_shows_what_runs_now(tmp_path, lonely_settings):
    root = str(smt_server(tmp_path))

    document = json.loads(
        run(map_command, "--sys-root", root, "--settings", lonely_settings, "--output", "json")
    )

    assert (document["schema_version"], document["source"]) == (1, "proc")
    assert [cpu["id"] for cpu in document["cpus"]][:4] == [0, 16, 1, 17]
    assert {cpu["layer"] for cpu in document["cpus"]} == {""}


def test_the_map_draws_every_cpu_once_below_its_core(tmp_path, lonely_settings):
    root = str(smt_server(tmp_path))

    lines = run(map_command, "--sys-root", root, "--settings", lonely_settings).splitlines()

    assert lines[0].split() == ["socket", "node", "cache", "core", "cpu", "layer", "threads"]
    assert lines[1].split()[:5] == ["0", "0", "0", "0", "0"]
    assert lines[2].split()[:1] == ["16"]
    assert len(lines) == 1 + 32 + 1
    assert "no agent answers" in lines[-1]


def test_a_hybrid_map_shows_capacities(tmp_path, lonely_settings):
    root = str(hybrid_laptop(tmp_path, capacities=True))

    lines = run(map_command, "--sys-root", root, "--settings", lonely_settings).splitlines()

    assert "capacity" in lines[0].split()
    assert any("512" in line.split() for line in lines)


def test_with_an_agent_the_map_shows_layers_and_the_busiest_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("temper_core.client.ask_observation", lambda *_: OBSERVATION)
    root = str(smt_server(tmp_path))

    document = json.loads(run(map_command, "--sys-root", root, "--output", "json"))
    lines = run(map_command, "--sys-root", root).splitlines()

    cpus = {cpu["id"]: cpu for cpu in document["cpus"]}
    assert document["source"] == "agent"
    assert (cpus[0]["layer"], cpus[16]["layer"], cpus[1]["layer"]) == ("critical", "critical", "")
    assert [thread["cpu_used"] for thread in cpus[16]["threads"]] == [0.9, 0.1]
    assert cpus[16]["threads"][0]["pod"] == "shop/db"
    assert "critical" in lines[2]
    assert "[shop/db] 0.90, calm 0.10" in lines[2]
    assert "\x1b" not in lines[2]
