import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import DocumentError
from temper_core.node.machine_file import machine_document, read_machine_file
from temper_core.node.topology import read_machine
from temper_core.records.machine import MachineShape
from tests.core.node.sysfs_trees import SysfsCpu, hybrid_laptop, smt_server, write_sysfs


def problems_of(path):
    with pytest.raises(DocumentError) as caught:
        read_machine_file(path)
    return caught.value.problems


@pytest.fixture
def machine_file(tmp_path):
    def write(content, name="machine.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.fixture
def two_cpus():
    return machine_document(MachineShape.uniform(2))


def test_a_document_says_everything_about_the_machine(tmp_path):
    document = machine_document(read_machine(smt_server(tmp_path), architecture="x86_64"))

    assert {key: document[key] for key in ("schema_version", "cores", "sockets", "llcs")} == {
        "schema_version": 1,
        "cores": 16,
        "sockets": 2,
        "llcs": 4,
    }
    assert document["siblings"][1] == [1, 17]
    assert document["cpus"][17] == {
        "id": 17,
        "core": 1,
        "socket": 0,
        "node": 0,
        "llc": 0,
        "capacity": 1024,
    }


def test_what_is_printed_reads_back_as_the_same_machine(tmp_path, machine_file):
    cpus = {cpu: SysfsCpu(core_id=cpu, siblings=(cpu,)) for cpu in range(4)}
    partly_offline = write_sysfs(tmp_path / "offline", cpus, online="0,2", isolated="2")
    machines = [
        read_machine(smt_server(tmp_path / "server")),
        read_machine(hybrid_laptop(tmp_path / "laptop", capacities=True)),
        read_machine(partly_offline),
        read_machine(),
    ]

    for machine in machines:
        assert read_machine_file(machine_file(machine_document(machine))) == machine


def test_a_short_file_needs_only_cores(machine_file):
    assert read_machine_file(machine_file({"cores": 3})) == MachineShape.uniform(3)


def test_a_short_file_may_be_toml(machine_file):
    path = machine_file(
        'architecture = "aarch64"\ncores = 32\nthreads_per_core = 2\nsockets = 2\n'
        "numa_nodes = 4\nllcs = 8\n",
        "machine.toml",
    )

    machine = read_machine_file(path)

    assert machine == MachineShape.uniform(
        32, 2, sockets=2, numa_nodes=4, llcs=8, architecture="aarch64"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "cores: is required where there are no cpus"),
        ({"cores": 0}, "cores: must be >= 1: 0"),
        ({"cores": "4"}, "cores: must be a whole number, not '4'"),
        ({"cores": 4.0}, "cores: must be a whole number, not 4.0"),
        ({"cores": True}, "cores: must be a whole number, not True"),
        ({"cores": 4096, "threads_per_core": 2}, "cores: 4096 x 2 threads are more than 4096"),
        ({"cores": 2, "sockets": 3}, "sockets: 3 cannot share 2 cores"),
        ({"cores": 2, "offline": [3]}, "offline: needs cpus as well"),
        ({"cores": 2, "schema_version": 2}, "schema_version: must be in [1]"),
        ({"cores": 2, "memory": 5}, "document: unknown key 'memory'"),
        ({"cpus": []}, "cpus: "),
        ({"cpus": [{"id": 0}]}, "cpus[0].core: is required"),
        ({"cpus": [{"id": -1, "core": 0}]}, "cpus[0].id: must be >= 0: -1"),
        ([], "document: must be a table, not []"),
        ("{", "is not JSON"),
        ("cores = ", "is neither JSON nor TOML"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_misfit_is_named_by_its_path(machine_file, content, problem):
    assert any(found.startswith(problem) for found in problems_of(machine_file(content)))


def test_every_misfit_is_reported_at_once(machine_file):
    found = problems_of(machine_file({"cores": 0, "sockets": "x", "cpus": [{"id": "a"}]}))

    assert len(found) == 4


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"cores": 3}, "cores: is 3, but the cpus make 2"),
        ({"siblings": [[0, 1]]}, "siblings: is [[0, 1]], but the cpus make [[0], [1]]"),
        ({"offline": [1]}, "offline: CPU 1 is also among the cpus, which are online"),
        ({"isolated": [-1]}, "isolated: must be CPU ids from 0 to 8191"),
        ({"cpus": [{"id": 0, "core": 0}] * 2}, "cpus: id 0 is given twice"),
        ({"cpus": [{"id": 9000, "core": 0}]}, "cpus: id 9000 is not below 8192"),
        (
            {"cpus": [{"id": 0, "core": 0}, {"id": 1, "core": 0, "socket": 1}]},
            "cpus: core 0 is in more than one socket or NUMA node",
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(machine_file, two_cpus, change, problem):
    assert problem in problems_of(machine_file(two_cpus | change))


def test_the_largest_machine_is_read_and_a_larger_one_is_not(machine_file):
    largest = machine_document(MachineShape.uniform(2048, 2))
    larger = largest | {"cpus": [*largest["cpus"], {"id": 4096, "core": 2048}]}

    assert len(read_machine_file(machine_file(largest)).cpus) == 4096
    assert any(found.startswith("cpus: ") for found in problems_of(machine_file(larger)))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DocumentError, match=r"absent\.json: No such file"):
        read_machine_file(tmp_path / "absent.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(key=st.sampled_from(sorted(machine_document(MachineShape.uniform(2)))), value=json_values)
def test_any_value_of_any_key_is_a_machine_or_a_document_error(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "any-machine.json"
    path.write_text(json.dumps(machine_document(MachineShape.uniform(2)) | {key: value}))

    try:
        outcome = read_machine_file(path).cpus
    except DocumentError as error:
        outcome = error.problems

    assert len(outcome) >= 1
