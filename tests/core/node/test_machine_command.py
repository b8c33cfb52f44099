import pytest
from click.testing import CliRunner

from temper_core.cli.machine import command as machine_command
from temper_core.errors import MachineError
from temper_core.node.machine_file import read_machine_file
from temper_core.node.topology import read_machine
from tests.core.node.sysfs_trees import hybrid_laptop, smt_server


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
