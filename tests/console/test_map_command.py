import json

import pytest
from click.testing import CliRunner

from temper_core.rich_output import VisibleConsole
from temper_plugin_console import map as cpu_map
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


def test_without_an_agent_the_map_shows_what_runs_now(tmp_path, lonely_settings):
    root = str(smt_server(tmp_path))

    document = json.loads(
        run(cpu_map.command, "--sys-root", root, "--settings", lonely_settings, "--output", "json")
    )

    assert (document["schema_version"], document["source"]) == (1, "proc")
    assert [cpu["id"] for cpu in document["cpus"]][:4] == [0, 16, 1, 17]
    assert {cpu["layer"] for cpu in document["cpus"]} == {""}


def test_the_map_draws_every_cpu_once_below_its_core(tmp_path, lonely_settings):
    root = str(smt_server(tmp_path))

    lines = run(cpu_map.command, "--sys-root", root, "--settings", lonely_settings).splitlines()

    assert lines[0].split() == ["socket", "node", "cache", "core", "cpu", "layer", "threads"]
    assert lines[1].split()[:5] == ["0", "0", "0", "0", "0"]
    assert lines[2].split()[:1] == ["16"]
    assert len(lines) == 1 + 32 + 1
    assert "no agent answers" in lines[-1]


def test_a_hybrid_map_shows_capacities(tmp_path, lonely_settings):
    root = str(hybrid_laptop(tmp_path, capacities=True))

    lines = run(cpu_map.command, "--sys-root", root, "--settings", lonely_settings).splitlines()

    assert "capacity" in lines[0].split()
    assert any("512" in line.split() for line in lines)


def test_with_an_agent_the_map_shows_layers_and_the_busiest_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(cpu_map, "ask_observation", lambda *_: OBSERVATION)
    root = str(smt_server(tmp_path))

    document = json.loads(run(cpu_map.command, "--sys-root", root, "--output", "json"))
    lines = run(cpu_map.command, "--sys-root", root).splitlines()

    cpus = {cpu["id"]: cpu for cpu in document["cpus"]}
    assert document["source"] == "agent"
    assert (cpus[0]["layer"], cpus[16]["layer"], cpus[1]["layer"]) == ("critical", "critical", "")
    assert [thread["cpu_used"] for thread in cpus[16]["threads"]] == [0.9, 0.1]
    assert cpus[16]["threads"][0]["pod"] == "shop/db"
    assert "critical" in lines[2]
    assert "[shop/db] 0.90, calm 0.10" in lines[2]
    assert "\x1b" not in lines[2]


def test_at_80_columns_the_numbers_stay_and_the_threads_are_folded(tmp_path, monkeypatch):
    crowd = [
        {"tid": tid, "tgid": 4, "comm": f"worker-{tid}", "namespace": "shop", "pod": "database-0",
         "cpu": 0, "cpu_used": 0.5}
        for tid in range(3)
    ]  # fmt: skip
    monkeypatch.setattr(cpu_map, "ask_observation", lambda *_: {**OBSERVATION, "threads": crowd})
    monkeypatch.setattr("temper_core.console.results_console", lambda: VisibleConsole(width=80))

    lines = run(cpu_map.command, "--sys-root", str(smt_server(tmp_path))).splitlines()

    assert lines[0].split() == ["socket", "node", "cache", "core", "cpu", "layer", "threads"]
    assert lines[1].split()[:6] == ["0", "0", "0", "0", "0", "critical"]
    assert "worker-2 [shop/database-0] 0.50" in " ".join(" ".join(lines[1:4]).split())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    "document",
    [
        {"layers": "x", "threads": 7},
        {"layers": [5, {"name": [], "cpus": ["x", 0, None]}], "threads": [{}, "x", {"cpu": "y"}]},
        {
            "layers": [{"name": "a", "cpus": {}}],
            "threads": [{"cpu": 0, "cpu_used": "x", "tid": []}],
        },
    ],
)
def test_an_observation_of_odd_types_is_drawn(tmp_path, monkeypatch, document):
    monkeypatch.setattr(cpu_map, "ask_observation", lambda *_: document)

    output = run(cpu_map.command, "--sys-root", str(smt_server(tmp_path)))

    assert "socket" in output
