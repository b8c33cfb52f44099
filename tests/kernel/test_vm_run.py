"""What vm/run promises to whoever calls it."""

import socket
import subprocess

import pytest

from tests.kernel.guest import CHECKOUT, VM_RUN

README = CHECKOUT / "README.md"
SETTINGS = CHECKOUT / "vm/settings.sh"
BROKEN = "traps: PANIC: double fault, error_code: 0x0"
BREAK = f"echo '<0>{BROKEN}' >/dev/kmsg; echo c >/proc/sysrq-trigger; sleep 60"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port: int = held.getsockname()[1]
        return port


@pytest.fixture(autouse=True)
def no_tally(monkeypatch):
    """The guests that are broken here on purpose do not count as lost."""
    monkeypatch.delenv("TEMPER_VM_TALLY", raising=False)


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [VM_RUN, *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_a_command_runs_as_root_on_a_sched_ext_kernel_and_hands_back_its_exit_code(tmp_path):
    script = "id -u; cat /sys/kernel/sched_ext/state; nproc; echo kept >$SHARE/note; exit 7"

    ended = run("--cpus", 2, "--share", tmp_path, "sh", "-c", script)

    assert (ended.returncode, ended.stdout.split()) == (7, ["0", "disabled", "2"])
    assert (tmp_path / "note").read_text() == "kept\n"


def test_arguments_reach_the_command_as_they_were_given():
    ended = run("--cpus", 1, "printf", "<%s>", "two  words", "$HOME 'x'", "")

    assert (ended.returncode, ended.stdout) == (0, "<two  words><$HOME 'x'><>")


def test_what_the_guest_writes_over_a_file_of_the_host_is_gone_with_the_guest():
    before = README.read_text()

    ended = run("--cpus", 1, "sh", "-c", 'echo gone >"$0"; cat "$0"', README)

    assert ended.stdout == "gone\n"
    assert README.read_text() == before


def test_a_guest_has_a_network_card_only_if_it_is_asked_for():
    with_card = run("--cpus", 1, "--network", free_port(), "ls", "/sys/class/net")
    without = run("--cpus", 1, "ls", "/sys/class/net")

    assert with_card.stdout.split() == ["eth0", "lo"]
    assert without.stdout.split() == ["lo"]


def test_a_guest_can_have_numa_nodes_and_caches():
    show = "cd /sys/devices/system; cat node/node*/cpulist cpu/cpu[05]/cache/index3/shared_cpu_list"

    ended = run("--cpus", 8, "--nodes", 2, "--caches", 2, "sh", "-c", show)

    assert ended.stdout.split() == ["0-3", "4-7", "0-1", "4-5"]


def test_a_command_can_be_the_guests_first_process_and_power_it_off(tmp_path):
    script = "echo $$ >$SHARE/pid; sync; /bin/busybox poweroff -f"

    run("--cpus", 1, "--share", tmp_path, "--init", "sh", "-c", script)

    assert (tmp_path / "pid").read_text() == "1\n"


def test_a_command_that_takes_too_long_is_ended_and_said_so():
    ended = run("--timeout", 5, "sleep", 1000)

    assert ended.returncode == 124
    assert "time is up after 5 s" in ended.stderr


def test_a_guest_that_dies_is_reported_with_the_last_words_of_its_kernel():
    ended = run("sh", "-c", "echo c >/proc/sysrq-trigger; sleep 60")

    assert ended.returncode == 125
    assert "the guest died" in ended.stderr
    assert "sysrq triggered crash" in ended.stderr


def test_a_guest_that_the_emulator_broke_is_booted_once_more_and_both_count(tmp_path, monkeypatch):
    console, share, tally = tmp_path / "console", tmp_path / "share", tmp_path / "tally"
    monkeypatch.setenv("TEMPER_VM_TALLY", str(tally))
    script = f"[ -e $SHARE/before ] && exit 5; touch $SHARE/before; sync; {BREAK}"

    ended = run("--console", console, "--share", share, "sh", "-c", script)

    assert ended.returncode == 5
    assert f"the emulator broke the guest ('{BROKEN}'); once more" in ended.stderr
    assert BROKEN in (tmp_path / "console.first").read_text()
    assert BROKEN not in console.read_text()
    assert tally.read_text() == "broken 0 0\nlived 0 0\n"


def test_a_guest_that_the_emulator_broke_stays_dead_if_it_is_to_be_booted_once():
    ended = run("--once", "sh", "-c", BREAK)

    assert ended.returncode == 125
    assert "once more" not in ended.stderr
    assert f"the guest died (QEMU's exit code 0, broken by the emulator: '{BROKEN}')" in (
        ended.stderr
    )


@pytest.mark.parametrize(
    ("line", "signature"),
    [
        (f"[   41.9] {BROKEN}\r", BROKEN),
        ("[    7.0] Oops: int3: 0000 [#1] SMP NOPTI\r", "Oops: int3: 0000 [#1] SMP NOPTI"),
        ("[    7.0] Oops: double fault: 0000 [#1] SMP", "Oops: double fault: 0000 [#1] SMP"),
        ("[    7.0] Oops: general protection fault: 0000 [#1] SMP", ""),
        ("[    7.0] Kernel panic - not syncing: sysrq triggered crash", ""),
    ],
)
def test_the_emulators_signatures_are_known_and_no_other_end_is_taken_for_one(
    tmp_path, line, signature
):
    console = tmp_path / "console"
    console.write_text(f"[    0.0] Linux version 6.18\n{line}\n[   42.0] Call Trace:\n")

    found = subprocess.run(
        ["bash", "-c", 'source "$0"; emulator_signature "$1"', SETTINGS, console],
        capture_output=True,
        text=True,
        check=False,
    )

    assert found.stdout.strip() == signature
    assert found.returncode == (0 if signature else 1)


def test_an_oops_ends_the_guest():
    ended = run("--cpus", 1, "cat", "/proc/sys/kernel/panic_on_oops")

    assert ended.stdout == "1\n"


def test_the_emulator_that_is_fetched_runs_with_the_libraries_that_came_with_it():
    program = subprocess.run(
        [CHECKOUT / "vm/fetch-qemu"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()

    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)

    assert "QEMU emulator version" in version.stdout
    assert version.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--cpus", "none", "true"], "--cpus must be a number from 1, not 'none'"),
        (["--timeout", "-3", "true"], "--timeout must be a number of seconds, not '-3'"),
        (
            ["--cpus", 3, "--threads-per-core", 2, "true"],
            "--threads-per-core must divide --cpus, 3, not be '2'",
        ),
        (
            ["--cpus", 8, "--nodes", 3, "true"],
            "--nodes times --caches must divide the 4 cores, not be '3' times '1'",
        ),
        (["--kernel", "6.1; true", "true"], "no kernel is called '6.1; true'"),
        (["--gpu", "1", "true"], "no option --gpu"),
        (["--network", "80,http", "true"], "--network must be a list of ports such as 8080,9090"),
        (["--cpus"], "--cpus needs a value"),
        ([], "run [OPTION ...] COMMAND"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused_before_anything_boots(arguments, complaint):
    ended = run(*arguments)

    assert ended.returncode == 2
    assert complaint in ended.stderr
