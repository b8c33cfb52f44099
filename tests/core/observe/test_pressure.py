from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.observe.descriptors import DescriptorBudget
from temper_core.observe.pressure import RESOURCES, cgroup_pressure, node_pressure, parse_pressure
from temper_core.records.snapshots import PressureLine

SOME = "some avg10=1.50 avg60=0.25 avg300=100.00 total=123456\n"
FULL = "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"


@pytest.fixture
def budget():
    return DescriptorBudget()


def test_percentages_become_ratios():
    pressure = parse_pressure((SOME + FULL).encode())

    assert pressure.some == PressureLine(0.015, 0.0025, 1.0, 123456)
    assert pressure.full == PressureLine(0.0, 0.0, 0.0, 0)


def test_a_kernel_without_a_full_line_has_none():
    assert parse_pressure(SOME.encode()).full is None


@pytest.mark.parametrize(
    "content",
    ["", FULL, "some\n", "some avg10=1\n", SOME.replace("1.50", "x"), SOME.replace("1.50", "101"),
     SOME.replace("1.50", "nan"), SOME.replace("1.50", "-1"), "some avg10\n"],
)  # fmt: skip
def test_anything_else_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011 - float() and int() word it differently
        parse_pressure(content.encode())


@settings(max_examples=60)
@given(
    st.binary(max_size=60) | st.text(max_size=40).map(lambda text: SOME.encode() + text.encode())
)
def test_any_bytes_are_read_or_refused_with_a_value_error(content):
    try:
        pressure = parse_pressure(content)
    except ValueError:
        return

    assert 0 <= pressure.some.avg10 <= 1


@settings(max_examples=40)
@given(st.lists(st.integers(0, 10_000), min_size=3, max_size=3), st.integers(0, 2**63))
def test_what_the_kernel_writes_is_read_back(hundredths, total):
    ten, sixty, long = (value / 100 for value in hundredths)
    line = f"some avg10={ten:.2f} avg60={sixty:.2f} avg300={long:.2f} total={total}\n"

    some = parse_pressure(line.encode()).some

    assert some.total_us == total
    assert [some.avg10, some.avg60, some.avg300] == pytest.approx([v / 10_000 for v in hundredths])


def test_the_real_nodes_pressure_is_that_of_its_files(budget):
    if not Path("/proc/pressure/cpu").exists():
        pytest.skip("this kernel has no PSI")
    files = node_pressure("/proc", budget)

    first = files.read()
    again = files.read()

    assert set(first) == set(RESOURCES)
    assert again["cpu"].some.total_us >= first["cpu"].some.total_us > 0
    assert files.defects == ()
    files.close()
    assert budget.used == 0


def test_a_kernel_without_psi_gives_nothing_and_says_so(tmp_path, budget):
    files = node_pressure(tmp_path, budget)

    assert files.read() == {}
    assert len(files.defects) == 3
    assert files.defects[0] == f"pressure: {tmp_path}/pressure/cpu: No such file or directory"


def test_one_odd_file_leaves_the_others_alone(tmp_path, budget):
    folder = tmp_path / "pressure"
    folder.mkdir()
    for resource in RESOURCES:
        (folder / resource).write_text(SOME)
    (folder / "io").write_text("?")

    files = node_pressure(tmp_path, budget)

    assert set(files.read()) == {"cpu", "memory"}
    assert [defect.split(": ")[1] for defect in files.defects] == [f"{folder}/io"]


def test_a_real_cgroups_pressure_is_read(cgroup, budget):
    _, folder = cgroup
    if not (folder / "cpu.pressure").exists():
        pytest.skip("this kernel has no PSI for cgroups")

    found = cgroup_pressure(str(folder), budget).read()

    assert found["cpu"].some.avg10 == 0
