"""The programs of a container, from made-up processes and from real ones."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from temper_core.node.container_programs import (
    INITS,
    MOST_CHILDREN,
    MOST_LISTED,
    MOST_PROGRAMS,
    SETTLED_S,
    SHELLS,
    ProgramReader,
    cgroup_pids,
)
from tests.core.node.trees import make_cgroup, make_process
from tests.patience import PATIENCE_S


def programs_of(cgroup, proc_root=Path("/proc"), known=()):
    reader = ProgramReader(proc_root)
    try:
        return reader.read(cgroup, known)
    finally:
        reader.close()


@pytest.fixture
def proc(tmp_path):
    return tmp_path / "proc"


@pytest.fixture
def cgroup(tmp_path):
    return make_cgroup(tmp_path / "cgroup", "a.service")


def test_the_first_process_is_the_one_with_the_lowest_id(proc, cgroup):
    make_process(proc, 300, "worker", cgroup)
    make_process(proc, 20, "main", cgroup)

    found = programs_of(cgroup, proc)

    assert (found.names, found.listened) == (("main",), {20})
    assert found.age_s == pytest.approx(3600.0, abs=5.0)


def test_a_cgroup_without_processes_of_its_own_is_looked_into(proc, cgroup):
    make_process(proc, 20, "main", make_cgroup(cgroup, "init"))

    assert programs_of(cgroup, proc).names == ("main",)


@pytest.fixture
def blocking(proc, cgroup):
    """Processes whose command lines block, as one does that holds the lock of its memory."""
    blocked = []

    def make(pid, name, **kept):
        make_process(proc, pid, name, cgroup, **kept)
        line = proc / str(pid) / "cmdline"
        line.unlink()
        os.mkfifo(line)
        blocked.append(line)

    yield make
    for line in blocked:
        os.close(os.open(line, os.O_RDWR | os.O_NONBLOCK))  # wakes the reader


def test_of_very_many_cgroups_below_a_container_the_first_are_looked_at(proc, cgroup):
    for number in range(3 * MOST_CHILDREN):
        make_process(proc, 100 + number, "worker", make_child(cgroup, f"n{number}"))

    assert len(cgroup_pids(cgroup)) == MOST_CHILDREN


def make_child(cgroup, name):
    child = cgroup / name
    child.mkdir()
    return child


def test_a_first_process_whose_command_line_blocks_is_the_program_for_now(proc, cgroup, blocking):
    blocking(20, "main")

    found = programs_of(cgroup, proc)

    assert (found.names, found.listened) == (("main",), {20})
    assert found.again_in_s is not None


def test_a_child_whose_command_line_blocks_leaves_the_first_process(proc, cgroup, blocking):
    make_process(proc, 20, "tini", cgroup)
    blocking(30, "main", parent=20)

    assert programs_of(cgroup, proc).names == ("tini",)


def test_containers_that_block_delay_no_other(tmp_path, proc, cgroup, blocking):
    for pid in range(30, 40):
        blocking(pid, "main")
    other = make_cgroup(tmp_path / "other", "b.service")
    make_process(proc, 90, "docker-entrypoi", other, arguments=["/bin/sh", "/entry"])
    make_process(proc, 91, "mysqld", other, parent=90)
    reader = ProgramReader(proc)
    for _ in range(20):
        reader.read(cgroup)

    assert reader.read(other).names == ("docker-entrypoi", "mysqld")
    reader.close()


def test_an_empty_or_missing_cgroup_has_no_program(tmp_path):
    empty = make_cgroup(tmp_path, "a", cgroup_procs="0\n")

    assert programs_of(empty, tmp_path).names == ()
    assert programs_of(tmp_path / "absent", tmp_path).names == ()


def test_a_process_that_has_ended_has_no_name(tmp_path):
    gone = make_cgroup(tmp_path, "a", cgroup_procs="77\n")

    assert programs_of(gone, tmp_path / "proc").names == ()


@pytest.mark.parametrize("name", sorted(INITS | SHELLS))
def test_below_an_init_or_a_shell_its_child_is_a_program(proc, cgroup, name):
    make_process(proc, 20, name, cgroup)
    make_process(proc, 21, "mysqld", cgroup, parent=20)

    found = programs_of(cgroup, proc)

    assert (found.names, found.listened) == ((name, "mysqld"), {20})
    assert len(name.encode()) <= 15


def test_a_script_is_known_by_its_interpreter(proc, cgroup):
    script = ("/bin/sh", "/docker-entrypoint.sh")
    make_process(proc, 20, "docker-entrypoi", cgroup, arguments=script)
    make_process(proc, 21, "mysqld", cgroup, parent=20)

    assert programs_of(cgroup, proc).names == ("docker-entrypoi", "mysqld")


def test_a_chain_of_inits_is_followed_to_its_end(proc, cgroup):
    make_process(proc, 20, "s6-svscan", cgroup)
    make_process(proc, 21, "s6-supervise", cgroup, parent=20)
    make_process(proc, 22, "s6-supervise", cgroup, parent=20)
    make_process(proc, 23, "nginx", cgroup, parent=21)
    make_process(proc, 24, "run", cgroup, parent=22, arguments=("/bin/sh", "./run"))
    make_process(proc, 25, "php-fpm", cgroup, parent=24)

    found = programs_of(cgroup, proc)

    assert found.names == ("s6-svscan", "nginx", "php-fpm")
    assert found.listened == {20, 21, 22, 24}


def test_children_of_a_program_and_strangers_are_no_programs(proc, cgroup):
    make_process(proc, 20, "tini", cgroup)
    make_process(proc, 21, "postgres", cgroup, parent=20)
    make_process(proc, 22, "archiver", cgroup, parent=21)
    make_process(proc, 23, "redis-cli", cgroup, parent=9)  # by kubectl exec

    assert programs_of(cgroup, proc).names == ("tini", "postgres")


def test_a_first_process_that_is_a_program_hides_its_children(proc, cgroup):
    make_process(proc, 20, "python3", cgroup, arguments=("python3", "serve.py"))
    make_process(proc, 21, "mysqld", cgroup, parent=20)

    assert programs_of(cgroup, proc).names == ("python3",)


def test_a_child_that_has_just_begun_does_not_count_yet_unless_it_is_known(proc, cgroup):
    make_process(proc, 20, "sh", cgroup)
    make_process(proc, 21, "chown", cgroup, parent=20, age_s=0.0)

    new = programs_of(cgroup, proc)
    known = programs_of(cgroup, proc, {"chown"})

    assert new.names == ("sh",)
    assert 0.0 < new.again_in_s <= SETTLED_S
    assert (known.names, known.again_in_s) == (("sh", "chown"), None)


def test_the_processes_read_and_the_names_are_bounded(proc, cgroup):
    make_process(proc, 20, "sh", cgroup)
    for number in range(MOST_LISTED + 5):
        make_process(proc, 30 + number, f"p{number:03}", cgroup, parent=20)

    names = programs_of(cgroup, proc).names

    assert names == ("sh", *(f"p{number:03}" for number in range(MOST_PROGRAMS)))


@pytest.fixture
def mysqld(tmp_path):
    """A real program of that name, which sleeps for as long as it is told."""
    return shutil.copy(shutil.which("sleep"), tmp_path / "mysqld")


@pytest.fixture
def container():
    """Start a command. Return what the kernel would list as its cgroup's processes."""
    started = []

    def start(*command):
        process = subprocess.Popen(command, start_new_session=True)
        started.append(process)
        return process

    yield start
    for process in started:
        os.killpg(process.pid, 9)
        process.wait()


def listed(folder, first):
    """List *first* and its descendants as a cgroup does."""
    pids, parents = [], {first}
    for entry in sorted(
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()
    ):
        try:
            parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if entry == first or parent in parents:
            parents.add(entry)
            pids.append(entry)
    return make_cgroup(folder, "c", cgroup_procs="".join(f"{pid}\n" for pid in pids))


def found_within_patience(folder, process, program):
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends:
        names = programs_of(listed(folder, process.pid)).names
        if program in names:
            return names
        time.sleep(0.05)
    pytest.fail(f"{program} was never among the programs: {names}")


FORKS = 'set -e\n"$1" 600\nexit 0\n'


def test_the_child_of_a_real_shell_is_found(tmp_path, container, mysqld):
    process = container("/bin/sh", "-c", FORKS, "sh", mysqld)

    assert found_within_patience(tmp_path, process, "mysqld") == ("sh", "mysqld")


@pytest.mark.parametrize("shebang", ["#!/bin/sh", "#!/usr/bin/env bash"])
def test_the_child_of_a_real_script_is_found(tmp_path, container, mysqld, shebang):
    script = tmp_path / "start-database.sh"
    script.write_text(f"{shebang}\n{FORKS}")
    script.chmod(0o755)

    process = container(str(script), mysqld)

    name = "bash" if "env" in shebang else "start-database."
    assert found_within_patience(tmp_path, process, "mysqld") == (name, "mysqld")


def test_mysqld_safe_that_starts_its_server_in_a_loop_is_seen_through(tmp_path, container, mysqld):
    safe = tmp_path / "mysqld_safe"
    safe.write_text(f"#!/bin/sh\nwhile true; do {mysqld} 600; done\n")
    safe.chmod(0o755)

    process = container(str(safe))

    assert found_within_patience(tmp_path, process, "mysqld") == ("mysqld_safe", "mysqld")


@pytest.mark.parametrize(
    ("init", "options"), [("tini", ["-s", "--"]), ("dumb-init", []), ("catatonit", ["--"])]
)
def test_the_child_of_a_real_init_is_found(tmp_path, container, mysqld, init, options):
    if shutil.which(init) is None:
        pytest.skip(f"{init} is not installed here; the made-up processes stand for it")

    process = container(init, *options, mysqld, "600")

    assert found_within_patience(tmp_path, process, "mysqld") == (init, "mysqld")


def test_the_services_of_a_real_s6_are_found(tmp_path, container, mysqld):
    if shutil.which("s6-svscan") is None:
        pytest.skip("s6-svscan is not installed here; the made-up processes stand for it")
    run = tmp_path / "services/database/run"
    run.parent.mkdir(parents=True)
    run.write_text(f"#!/bin/sh\nexec {mysqld} 600\n")
    run.chmod(0o755)

    process = container("s6-svscan", str(run.parent.parent))

    assert found_within_patience(tmp_path, process, "mysqld") == ("s6-svscan", "mysqld")
