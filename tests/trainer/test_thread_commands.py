import gzip
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core import DocumentError, InputError
from temper_core.bounded_memory import MOST_BYTES
from temper_core.cli.profiles import command
from temper_plugin_trainer.thread_tables import (
    TableMachine,
    TableThread,
    ThreadTable,
    parse_thread_table,
    read_thread_table,
    thread_table_text,
)
from temper_plugin_trainer.training.bundles import packed_bundle
from tests.patience import PATIENCE_S
from tests.signals import ignoring, interrupting
from tests.trainer.training.bundled import bundle, thread

TEMPER = Path(sys.executable).with_name("temper")

PROFILE = """
id = "shop"
[[thread_groups]]
name = "requests"
match = [{ comm_prefix = "req-" }]
treatment = "latency"
[[thread_groups]]
name = "merges"
match = [{ title_pattern = "merge" }]
treatment = "yield"
[[thread_groups]]
name = "rest"
"""


@pytest.fixture
def sleeper():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "shop.toml"
    path.write_text(PROFILE)
    return path


@pytest.fixture
def recording(tmp_path):
    def write(*threads, name="shop.json", **more):
        machine, path = TableMachine(2), tmp_path / name
        table = ThreadTable(
            "shop", "1.2", "x", machine, "6.12", 10.0, "2026-01-31", threads, **more
        )
        path.write_text(thread_table_text(table))
        return path

    return write


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_a_profile_is_tested_on_a_bundle(profile, tmp_path):
    path = tmp_path / "shop.bundle.gz"
    path.write_bytes(packed_bundle(bundle(thread("req-1", 3, 0.9), thread("io", 4, 0.1))))

    result = run("test", profile, "--threads", path, "--output", "json")

    (recording,) = json.loads(result.stdout)["recordings"]
    assert recording["program"] == "shop"
    assert recording["coverage"] == pytest.approx(0.9)


def test_a_packed_file_that_is_no_bundle_is_one_line(profile, tmp_path):
    path = tmp_path / "shop.gz"
    path.write_bytes(gzip.compress(b"{}"))

    result = run("test", profile, "--threads", path)

    assert isinstance(result.exception, DocumentError)
    assert str(result.exception).startswith(f"{path}: ")


def waits_for_a_signal(pid):
    """Whether a process is in sigtimedwait(2).

    Its mask does not show that: the C library blocks all signals while it starts a thread, and
    the kernel shows those that are waited for as not blocked.
    """
    return Path(f"/proc/{pid}/wchan").read_text().startswith("do_sigtimedwait")


def row(comm, cpu_share, **more):
    return TableThread(comm, "shop", cpu_share=cpu_share, **more)


def test_a_live_process_is_recorded_into_a_file_that_reads_back(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    named = ("--program", "shop", "--version", "1.2", "--command", "scripts/shop")

    result = run("record", "--pid", sleeper.pid, "--seconds", 1, *named, "-o", path)

    table = read_thread_table(path)
    assert result.exit_code == 0
    assert (table.program, table.version, table.command) == ("shop", "1.2", "scripts/shop")
    assert [thread.leader for thread in table.threads] == [True]
    assert "1 threads in 1 rows" in result.stderr


def test_several_processes_are_recorded_to_standard_output(sleeper):
    with subprocess.Popen(["sleep", "60"]) as other:
        result = run("record", "--pid", sleeper.pid, "--pid", other.pid, "--seconds", 1)
        other.kill()

    table = parse_thread_table(result.stdout, source="-")
    assert {thread.title for thread in table.threads} >= {"sleep 60"}
    assert table.version == "unknown"


def test_a_program_that_ends_meanwhile_ends_the_recording():
    with subprocess.Popen(["sleep", "1"]) as brief:
        result = run("record", "--pid", brief.pid, "--seconds", 600)

    table = parse_thread_table(result.stdout, source="-")
    assert table.program == "sleep"
    assert table.seconds < 600
    assert "the program has ended" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["--pid", "1", "--pod", "a/b"]])
def test_what_is_to_be_recorded_is_said_in_one_way(arguments):
    result = run("record", *arguments)

    assert result.exit_code == 2
    assert "--pid or by --pod" in result.stderr


def test_a_file_that_is_there_is_kept(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    path.write_text("mine")

    result = run("record", "--pid", sleeper.pid, "-o", path)

    assert isinstance(result.exception, InputError)
    assert path.read_text() == "mine"


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_recording_keeps_what_was_recorded(ending, sleeper, tmp_path):
    path = tmp_path / "shop.json"

    with interrupting(ending):
        result = run("record", "--pid", sleeper.pid, "--seconds", 600, "-o", path)

    assert result.exit_code == 0
    assert "interrupted" in result.stderr
    assert len(read_thread_table(path).threads) == 1


def test_a_signal_to_the_process_ends_a_recording_of_the_installed_command(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    arguments = ("profiles", "record", "--pid", str(sleeper.pid), "--seconds", "600", "-o", path)
    with subprocess.Popen([TEMPER, *arguments], stderr=subprocess.PIPE, text=True) as recorder:
        deadline = time.monotonic() + PATIENCE_S
        while not waits_for_a_signal(recorder.pid):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        recorder.send_signal(signal.SIGINT)
        _, error = recorder.communicate(timeout=PATIENCE_S)

    assert (recorder.returncode, "interrupted" in error) == (0, True)
    assert len(read_thread_table(path).threads) == 1


def test_a_hang_up_does_not_end_a_recording_that_nohup_started(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    hangup = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGHUP))
    with ignoring([signal.SIGHUP]):
        hangup.start()
        result = run("record", "--pid", sleeper.pid, "--seconds", 2, "-o", path)
        hangup.join()

    assert result.exit_code == 0
    assert "interrupted" not in result.stderr


def test_a_link_that_takes_the_place_of_the_file_meanwhile_is_not_followed(sleeper, tmp_path):
    path, precious = tmp_path / "shop.json", tmp_path / "precious"
    precious.write_text("precious")

    def swap():
        path.unlink()
        path.symlink_to(precious)

    swapping = threading.Timer(0.3, swap)
    swapping.start()
    result = run("record", "--pid", sleeper.pid, "--seconds", 1, "-o", path)
    swapping.join()

    assert result.exit_code == 0
    assert precious.read_text() == "precious"


def test_a_recording_that_cannot_be_written_leaves_no_file(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        result = run("record", "--pid", sleeper.pid, "--seconds", 1, "-o", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{path}: File too large"
    assert not path.exists()


def test_a_recording_without_a_program_leaves_no_file(tmp_path):
    path = tmp_path / "shop.json"

    result = run("record", "--pid", 2**22, "-o", path)

    assert isinstance(result.exception, InputError)
    assert not path.exists()


@pytest.mark.parametrize(
    "arguments",
    [("record", "--pid", 1, "--seconds", "nan"), ("test", "a", "--threads", "b", "--least", "nan")],
)
def test_what_is_no_number_is_refused(arguments):
    result = run(*arguments)

    assert result.exit_code == 2
    assert "'nan' is not a number; allowed is" in result.stderr


def test_what_no_table_can_say_is_refused_at_once(sleeper):
    result = run("record", "--pid", sleeper.pid, "--program", "My Shop", "--seconds", 3_600)

    assert isinstance(result.exception, InputError)
    assert "program" in str(result.exception)


def test_a_folder_that_is_not_there_is_told_in_one_line(sleeper, tmp_path):
    path = tmp_path / "missing" / "shop.json"

    result = run("record", "--pid", sleeper.pid, "--seconds", 1, "-o", path)

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{path}: No such file or directory"


def test_a_profile_that_covers_enough_passes(profile, recording):
    path = recording(row("req-1", 0.6), row("x", 0.35, title="shop merge"), row("y", 0.05))

    result = run("test", profile, "--threads", path)

    assert result.exit_code == 0
    assert "95.0 % covered by shop, 100.0 % in any group" in result.stdout
    assert "unmatched and hot: y of process shop, 5.0 % of the CPU time" in result.stdout


def test_threads_that_end_before_they_are_decided_are_told(profile, recording):
    brief = row("backend", 0.5, title="merge", lived_share=0.01, count=40)
    path = recording(brief, row("req-1", 0.1))

    result = run("test", profile, "--threads", path)
    told = json.loads(run("test", profile, "--threads", path, "--output", "json").stdout)

    assert result.exit_code == 1
    assert "decided late: backend is in rest for 60.0 % of the CPU time" in result.stdout
    [document] = told["recordings"]
    assert document["late"] == pytest.approx(0.6)
    assert document["coverage"] == pytest.approx(0.4)
    assert [(each["before"], each["group"]) for each in document["decided_late"]] == [
        ("rest", "merges")
    ]


def test_a_recording_without_executables_is_told(recording, tmp_path):
    path = tmp_path / "java.toml"
    path.write_text(PROFILE.replace('title_pattern = "merge"', 'exe = "java"'))

    result = run("test", path, "--threads", recording(row("req-1", 0.5)))

    assert "recorded without executables and parents" in result.stdout


def test_a_profile_that_covers_too_little_is_a_finding(profile, recording):
    path = recording(row("req-1", 0.5), row("y", 0.5))

    assert run("test", profile, "--threads", path).exit_code == 1
    assert run("test", profile, "--threads", path, "--least", 0.5).exit_code == 0


def test_only_the_named_containers_of_a_pod_are_judged(profile, recording):
    rows = row("req-1", 0.5, container="main"), row("envoy", 0.5, container="mesh")
    path = recording(*rows)

    whole = run("test", profile, "--threads", path)
    narrow = run("test", profile, "--threads", path, "--container", "main")

    assert "several containers: main, mesh" in whole.stdout
    assert (whole.exit_code, narrow.exit_code) == (1, 0)
    assert "100.0 % covered by shop" in narrow.stdout
    assert "envoy" not in narrow.stdout


def test_a_container_that_was_not_recorded_is_refused(profile, recording):
    path = recording(row("req-1", 0.5, container="main"))

    result = run("test", profile, "--threads", path, "--container", "mesh")

    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{path}: no container 'mesh'; there are: main"


def test_static_mode_shows_what_names_alone_can_do(profile, recording):
    path = recording(row("req-1", 0.6), row("x", 0.4, title="shop merge"))

    result = run("test", profile, "--threads", path, "--static", "--output", "json")

    (told,) = json.loads(result.stdout)["recordings"]
    assert (result.exit_code, told["coverage"], told["taken"]) == (1, 0.6, 0.6)
    assert told["unmatched"]["names"] == ["x"]


def test_json_names_groups_threads_and_what_is_hot(profile, recording):
    path = recording(row("req-1", 0.5, count=2), row("y", 0.5, names=("req-2",)), unseen_cpus=0.1)

    document = json.loads(run("test", profile, "--threads", path, "--output", "json").stdout)

    (told,) = document["recordings"]
    assert (told["program"], told["version"], told["unseen_cpus"]) == ("shop", "1.2", 0.1)
    assert told["groups"][0] == {
        "name": "requests",
        "treatment": "latency",
        "threads": 2,
        "share": 0.666667,
        "names": ["req-1"],
    }
    assert [each["comm"] for each in told["hot_unmatched"]] == ["y"]
    assert told["in_several_groups"][0]["other_groups"] == ["requests"]


def test_every_recording_has_to_be_covered(profile, recording):
    good, bad = recording(row("req-1", 0.5)), recording(row("y", 0.5), name="bad.json")

    result = run("test", profile, "--threads", good, "--threads", bad)

    assert result.exit_code == 1
    assert "shop.json: shop 1.2" in result.stdout
    assert "bad.json: shop 1.2" in result.stdout


def test_alike_hot_threads_are_told_in_one_line(profile, recording):
    path = recording(*[row("y", 0.25, title="shop")] * 3, row("req-1", 0.25))

    result = run("test", profile, "--threads", path)

    assert result.stdout.count("unmatched and hot") == 1
    assert "y of process shop, 3 threads, 75.0 % of the CPU time (shop)" in result.stdout


def test_a_profile_of_other_versions_is_told(profile, recording):
    profile.write_text(f'{PROFILE}\n[fingerprint]\nimages = ["*/shop:*"]\nversions = [">=2.0"]\n')

    result = run("test", profile, "--threads", recording(row("req-1", 0.5)))

    assert "not for this version" in result.stdout


@pytest.mark.usefixtures("profile")
def test_a_profile_that_extends_another_is_tested_whole(recording, tmp_path):
    (tmp_path / "child.toml").write_text('id = "child"\nextends = "shop"\n')
    path = recording(row("req-1", 0.5))

    result = run("test", tmp_path / "child.toml", "--threads", path, "--profiles", tmp_path)

    assert result.exit_code == 0
    assert "covered by child" in result.stdout


def test_what_a_thread_calls_itself_does_not_steer_the_terminal(profile, recording):
    path = recording(row("\x1b[2Jboo", 0.5, title="a\nb\x07"))

    result = run("test", profile, "--threads", path)

    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", "\x00"])
def test_a_recording_that_is_none_is_refused_in_one_line(profile, tmp_path, text):
    (tmp_path / "bad.json").write_text(text)

    result = run("test", profile, "--threads", tmp_path / "bad.json")

    assert isinstance(result.exception, DocumentError)
    assert len(str(result.exception).splitlines()) == 1


def test_a_profile_that_is_none_is_refused_with_all_that_is_wrong(profile, recording):
    profile.write_text('id = "Shop"\ncolour = 3\n')

    result = run("test", profile, "--threads", recording(row("req-1", 0.5)))

    assert isinstance(result.exception, DocumentError)
    assert len(result.exception.problems) >= 2


def test_a_recording_takes_bounded_memory(sleeper):
    before, during = resource.getrlimit(resource.RLIMIT_DATA), []
    looking = threading.Timer(0.5, lambda: during.append(resource.getrlimit(resource.RLIMIT_DATA)))
    looking.start()

    result = run("record", "--pid", sleeper.pid, "--seconds", 2)
    looking.join()

    assert result.exit_code == 0
    assert 0 < during[0][0] <= MOST_BYTES
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_new_recording_is_readable_by_no_other_user(sleeper, tmp_path):
    path = tmp_path / "shop.json"
    before = os.umask(0o022)

    run("record", "--pid", sleeper.pid, "--seconds", 1, "-o", path)
    os.umask(before)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
