"""Names that users choose make no lines and words of their own."""

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import temper_core
from temper_core.kernel_text import kernel_lines, kernel_words, read_kernel_text
from temper_core.node.cgroups import thread_cgroup
from temper_core.observe.process_text import parse_cgroup
from temper_core.patient_reading import cgroup_owner
from temper_core.scheduler.host.processes import status_field

SEPARATORS = "\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029\xa0\u2003"
TEXT_OF_NO_KERNEL = {
    "console.py",
    "engine/binary.py",
    "engine/dry_run.py",
    "plugin_host/code_places.py",
    "safe_mode/host_file.py",
    "safe_mode/state_file.py",
    "scheduler/failure/diagnosis.py",
    "server/answers.py",
    "server/token_file.py",
    "watching.py",
    "bpf/access.py",
    "bpf/skeleton.py",
}
"""Files that separate lines of other origins: the engine's, the verifier's, an operator's."""


@given(st.lists(st.text(st.characters(blacklist_characters="\n"), min_size=1)))
def test_only_the_kernels_ends_of_lines_count(lines):
    assert kernel_lines("".join(f"{line}\n" for line in lines)) == lines


def test_only_spaces_and_tabs_separate_words():
    assert kernel_words(f"Uid:\t0  {SEPARATORS} \t") == ["Uid:", "0", SEPARATORS]


def test_a_file_is_read_as_it_is(tmp_path):
    (tmp_path / "cgroup").write_bytes(b"0::/a\rb\xff\n")

    assert read_kernel_text(tmp_path / "cgroup") == "0::/a\rb\udcff\n"


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_cgroups_name_is_no_line_of_its_own(separator, tmp_path):
    path = f"user.slice/user-1000.slice/x{separator}0::/system.slice/web.service"
    content = f"0::/{path}\n"
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text(content, newline="")

    assert parse_cgroup(content.encode()) == f"{path}/"
    assert thread_cgroup(content) == f"{path}/"
    assert cgroup_owner(tmp_path)(7) == "user.slice/user-1000.slice"


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_processs_name_is_no_field_of_its_own(separator, tmp_path):
    (tmp_path / "status").write_text(f"Name:\tx{separator}CapEff:z\nCapEff:\t00ff\n", newline="")

    assert status_field(tmp_path, "CapEff") == "00ff"


def test_no_other_file_of_the_core_separates_lines_in_the_python_way():
    core = Path(temper_core.__file__).parent
    found = {
        str(path.relative_to(core))
        for path in core.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "splitlines"
    }

    assert found == TEXT_OF_NO_KERNEL
