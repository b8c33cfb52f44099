"""How the scripts in ``kube/`` know the processes that they began.

The shell that begins them does not name the directory in its own command line, as little as
``kube/up`` does that was called without one.
"""

import os
import subprocess

from tests.control_plane.cluster import KUBE

BEGIN = """
set -euo pipefail
source "$0"
for _ in $(seq 50); do
    begin "$where" idle tail -f "$where/idle.command"
    pid=$(<"$where/idle.pid")
    is_ours "$where" "$pid" || echo "missed $pid"
    is_ours "$where/other" "$pid" && echo "mistook $pid"
    finish "$where" idle
    is_ours "$where" "$pid" && echo "left $pid"
done
echo done
"""
BRIEF = """
source "$0"
begin "$where" brief true
wait
is_ours "$where" "$(<"$where/brief.pid")" || echo no
"""


def run(script, where):
    return subprocess.run(
        ["bash", "-c", script, KUBE / "processes.sh"],
        env={**os.environ, "where": str(where)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_a_process_is_known_from_the_moment_it_was_begun_until_it_is_finished(tmp_path):
    ended = run(BEGIN, tmp_path)

    assert (ended.stdout, ended.returncode) == ("done\n", 0), ended.stderr


def test_a_program_that_ends_at_once_is_begun_too_and_not_waited_for(tmp_path):
    assert run(BRIEF, tmp_path).stdout == "no\n"
