"""The Debian package, installed, used and purged by the real dpkg in a root of its own."""

import json
import subprocess
from pathlib import Path

import pytest

INSTALL = "dpkg --install /tmp/temper.deb >/dev/null"
AGENT = """
printf '[server]\\nlisten = \"\"\\n' >/tmp/agent.toml
temper agent --observe-only --settings /tmp/agent.toml >/tmp/log 2>&1 &
for _ in $(seq 60); do
    temper observe --settings /tmp/agent.toml -o json >/tmp/seen && break
    sleep 0.5
done
kill %1
wait %1 || true
cat /tmp/seen
"""
STATE = "rm -rf /var/lib/temper; mkdir /var/lib/temper"
OLD_MARK = "/var/lib/temper/.not-restored"
"""Where earlier packages noted that a restoration had left something."""


def content(package):
    listed = subprocess.run(
        ["dpkg-deb", "--contents", package], check=True, capture_output=True, text=True
    )
    return {line.split()[5].lstrip("."): line.split()[0] for line in listed.stdout.splitlines()}


def test_the_package_has_the_program_the_unit_and_the_pages(package):
    files = content(package)

    for path in (
        "/usr/bin/temper",
        "/usr/bin/kubectl-temper",
        "/lib/systemd/system/temper.service",
        "/usr/share/man/man1/temper-plan.1.gz",
        "/usr/share/bash-completion/completions/temper",
        "/usr/share/doc/temper-agent/copyright",
        "/usr/share/doc/temper-agent/LICENSE-GPL-2.0-only",
    ):
        assert path in files, path
    assert not any("/pytest/" in path or "/sphinx/" in path for path in files)
    assert not any("w" in mode[5:] for mode in files.values() if mode[0] != "l")


def test_no_path_of_the_build_is_in_it(package, tmp_path):
    subprocess.run(["dpkg-deb", "--extract", package, tmp_path], check=True)

    here = str(Path(__file__).parents[2]).encode()
    texts = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    assert texts
    assert not [path for path in texts if here in path.read_bytes()]


def test_it_runs_after_its_installation_alone(host):
    seen = host(
        f"{INSTALL}; temper --version; kubectl-temper --help >/dev/null; temper plugins -o json"
    )

    first, *rest = seen.stdout.splitlines()
    assert first.startswith("temper, version ")
    states = json.loads("\n".join(rest))
    assert {state["state"] for state in states} == {"active"}
    assert {"linter", "tracer", "trainer", "rightsizer"} <= {state["name"] for state in states}


def test_its_agent_observes(host):
    seen = host(f"{INSTALL}{AGENT}")

    assert json.loads(seen.stdout)["threads"]


def test_its_unit_is_accepted_by_systemd(host):
    checked = host(f"{INSTALL}; systemd-analyze verify /lib/systemd/system/temper.service", False)

    if "not found" in checked.stderr:
        pytest.skip("this host has no systemd-analyze")
    assert checked.returncode == 0, checked.stderr
    assert "temper.service" not in checked.stderr


def test_a_purge_leaves_nothing(host):
    # By ctime: dpkg sets the times of files to those in the package.
    changed = "find /opt /usr /etc /var /lib/systemd -xdev -cnewer /tmp/before -path '*temper*'"
    left = host(
        f"touch /tmp/before; sleep 1; {{ {INSTALL}; {AGENT} }} >/dev/null 2>&1; "
        f"test -n \"$({changed} -path '/opt/*')\"; mkdir -p /etc/temper; "
        "dpkg --remove temper-agent >/dev/null; test ! -e /var/lib/temper; "
        "mkdir -p /var/lib/temper; touch /var/lib/temper/late; "
        "dpkg --purge temper-agent >/dev/null; "
        f"test ! -e /opt/temper; {changed}; ls -d /etc/temper /var/lib/temper || true"
    )

    assert left.stdout.strip() == ""


def test_a_purge_beside_an_agent_from_elsewhere_keeps_its_files(host):
    """An agent of a cluster's pod, or of a virtual environment, has the same directories."""
    # The agent's program is the package's, as there is no other one in this root. It goes on.
    beside = (
        "temper agent --observe-only >/tmp/log 2>&1 & agent=$!; "
        "for _ in $(seq 60); do test -S /run/temper/agent.sock && break; sleep 0.5; done; "
        "temper safe-mode on --reason upgrade >/dev/null; "
    )
    left = host(
        f"{INSTALL}; {beside} dpkg --purge temper-agent 2>&1; "
        "ls -d /run/temper/agent.sock; ls -A /var/lib/temper /run/temper; "
        "kill $agent; wait $agent || true; rm -rf /var/lib/temper"
    )

    assert "/var/lib/temper and /run/temper are kept: an agent runs" in left.stdout
    assert "/run/temper/agent.sock" in left.stdout.splitlines()
    assert "safe-mode-requests.json" in left.stdout


def test_a_purge_after_a_restoration_that_left_something_keeps_the_records(host):
    left = host(
        f"{INSTALL}; {STATE}; touch /var/lib/temper/notes; "
        "dpkg --purge temper-agent 2>&1; find /var/lib/temper* | sort; rm -rf /var/lib/temper"
    )

    assert "left: /var/lib/temper/notes: is not Temper's" in left.stdout
    assert left.stdout.splitlines()[-2:] == ["/var/lib/temper", "/var/lib/temper/notes"]
    assert "/var/lib/temper and /run/temper are kept" in left.stdout


def test_a_purge_after_such_a_removal_keeps_the_records_too(host):
    left = host(
        f"{INSTALL}; {STATE}; touch /var/lib/temper/notes; "
        "dpkg --remove temper-agent >/dev/null 2>&1; ls -A /var/lib/temper; "
        "dpkg --purge temper-agent >/dev/null 2>&1; ls -A /var/lib/temper; rm -rf /var/lib/temper"
    )

    assert left.stdout.split() == ["notes", "notes"]


def test_what_one_removal_left_does_not_count_for_the_next(host):
    left = host(
        f"{INSTALL}; {STATE}; touch /var/lib/temper/notes; "
        "dpkg --remove temper-agent >/dev/null 2>&1; rm /var/lib/temper/notes; "
        f"{INSTALL}; temper restore >/dev/null; "
        "{ dpkg --purge temper-agent 2>&1 | grep kept; } || true; "
        "find /var/lib/temper* 2>/dev/null || true"
    )

    assert left.stdout == ""


def test_an_upgrade_removes_the_mark_of_an_earlier_package(host):
    host(
        f"{INSTALL}; {STATE}; touch {OLD_MARK}; {INSTALL}; "
        "temper restore; test ! -e /var/lib/temper; dpkg --purge temper-agent"
    )


@pytest.mark.parametrize(
    "command", ["ln -s /tmp/other", "ln -s /var/lib/temper/none", "mkdir"], ids=str
)
def test_a_removal_writes_nothing_into_the_state_directory_of_another_user(host, command):
    entries = "find /var/lib/temper -printf '%P %y %l\\n' | sort"
    left = host(
        f"{INSTALL}; echo text >/tmp/other; {STATE}; {command} {OLD_MARK}; "
        f"chown -hR nobody /var/lib/temper; {entries} >/tmp/before; "
        f"dpkg --remove temper-agent >/dev/null; {entries} | diff /tmp/before -; cat /tmp/other; "
        "dpkg --purge temper-agent >/dev/null 2>&1; rm -rf /var/lib/temper"
    )

    assert left.stdout == "text\n"


def test_a_removal_opens_no_pipe_in_the_state_directory_of_another_user(host):
    left = host(
        f"{INSTALL}; {STATE}; mkfifo {OLD_MARK}; chown -R nobody /var/lib/temper; "
        # The reader ends once the pipe was opened to write, and so the removal waits for nobody.
        f"cat {OLD_MARK} & reader=$!; dpkg --remove temper-agent >/dev/null; "
        "kill $reader && echo waits; dpkg --purge temper-agent >/dev/null 2>&1; "
        "rm -rf /var/lib/temper"
    )

    assert left.stdout == "waits\n"


def test_an_installation_follows_nothing_in_the_state_directory_of_another_user(host):
    left = host(
        f"{STATE}; echo text >/tmp/other; ln -s /tmp/other {OLD_MARK}; {INSTALL}; "
        f"cat /tmp/other; rm -rf /var/lib/temper; mkdir -p {OLD_MARK}; {INSTALL}; "
        "rm -r /var/lib/temper; dpkg --purge temper-agent >/dev/null 2>&1"
    )

    assert left.stdout == "text\n"


def test_it_needs_the_python_that_its_modules_are_compiled_for(package):
    needed = subprocess.run(
        ["dpkg-deb", "--field", package, "Depends"], check=True, capture_output=True, text=True
    ).stdout

    assert "python3 (>= 3." in needed
    assert "python3 (<< 3." in needed
