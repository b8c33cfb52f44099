"""``temper observe --record`` and ``temper simulate`` as they are typed, on this machine."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from attrs import evolve, frozen

from temper_core.cli import main, observe
from temper_core.errors import DocumentError, InputError, MachineError
from temper_core.plan import ProfileCatalogue
from temper_core.rehearsal.reader import Recording
from temper_core.rehearsal.recording_format import recording_document
from temper_core.settings import Settings
from tests.patience import PATIENCE_S

RUN_TEMPER = "from temper_core.cli.main import main; main()"
EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINES = EXAMPLES / "machines"
RECORDINGS = EXAMPLES / "recordings"
RECORDING = RECORDINGS / "busy-node.rec.gz"


@pytest.fixture
def alone(node):
    """A node without an agent, whose settings look at it often."""
    with node.settings_path.open("a") as file:
        file.write('[observe]\nperiod_s = 0.3\ntier = "proc"\n')
        file.write("[pods]\nunits = false\n[plugin_host]\nallow = []\n")
    return node


@pytest.fixture
def recorded_from(view):
    """Have the agent's view answer ``/recording``; every answer is a look later than the last."""
    looks = []

    def recording():
        at = view.last.at + 5.0 * len(looks)
        snapshot = evolve(view.last, at=at, monotonic_s=time.monotonic(), window_s=0.1)
        looks.append(at)
        return recording_document(snapshot, Settings(), ProfileCatalogue())

    view.recording_document = recording
    return looks


def started(alone, *arguments):
    command = [sys.executable, "-c", RUN_TEMPER, *map(str, arguments)]
    command += ["--settings", str(alone.settings_path)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@pytest.mark.usefixtures("alone")
def test_a_node_without_an_agent_is_looked_at_by_itself(temper, tmp_path):
    path = tmp_path / "node.rec.gz"

    result = temper(observe.command, "--record", str(path), "--looks", "2")

    recording = Recording(path)
    moments = list(recording.moments())
    assert result.exit_code == 0, result.output
    assert "--looks 2 is reached" in result.stderr
    assert recording.head.source == "observer"
    assert len(moments) == 2
    assert any(
        thread.tgid == os.getpid() for moment in moments for thread in moment.snapshot.threads
    )


@pytest.mark.usefixtures("alone")
def test_so_many_seconds_are_recorded(temper, tmp_path):
    path = tmp_path / "node.rec"

    result = temper(observe.command, "--record", str(path), "--seconds", "2")

    moments = list(Recording(path).moments())
    assert "--seconds 2 is reached" in result.stderr
    assert all(moment.snapshot.window_s > 0 for moment in moments)
    assert moments


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_and_its_like_leave_a_whole_file(alone, tmp_path, ending):
    path = tmp_path / "node.rec.gz"
    with started(alone, "observe", "--record", path) as process:
        while not (path.exists() and path.stat().st_size):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(ending)
        _, said = process.communicate(timeout=PATIENCE_S)

    moments = list(Recording(path).moments())
    assert process.returncode == 0
    assert "it was interrupted" in said
    assert f"{len(moments)} looks" in said


def test_what_a_killed_recorder_leaves_is_whole_up_to_its_last_look(alone, tmp_path):
    path = tmp_path / "node.rec.gz"
    with started(alone, "observe", "--record", path) as process:
        while not (path.exists() and path.stat().st_size):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.kill()

    with pytest.raises(DocumentError, match=r"is cut: after [1-9]\d* looks"):
        list(Recording(path).moments())


@pytest.mark.usefixtures("agent")
def test_an_agent_is_asked_over_its_socket_for_what_it_has_seen(
    temper, view, recorded_from, tmp_path
):
    path = tmp_path / "node.rec"

    result = temper(observe.command, "--record", str(path), "--looks", "3")

    recording = Recording(path)
    seen = [moment.snapshot for moment in recording.moments()]
    assert result.exit_code == 0, result.output
    assert recording.head.source == "agent"
    assert [snapshot.at for snapshot in seen] == [round(at, 6) for at in recorded_from[:3]]
    assert seen[0].threads == view.last.threads


@pytest.mark.usefixtures("agent")
def test_an_agent_that_goes_away_leaves_what_was_recorded_until_then(
    temper, view, recorded_from, tmp_path
):
    path, answer = tmp_path / "node.rec", view.recording_document
    view.recording_document = lambda: None if len(recorded_from) > 2 else answer()

    result = temper(observe.command, "--record", str(path), "--looks", "9")

    assert isinstance(result.exception, MachineError)
    assert result.exception.exit_code == 3
    assert "3 looks" in result.stderr
    assert str(result.exception) not in result.stderr, "main prints it, once"
    assert len(list(Recording(path).moments())) == 3


@pytest.mark.usefixtures("tcp_agent", "recorded_from")
def test_an_agent_tells_nobody_over_tcp_who_has_no_token(node, temper, tmp_path):
    with node.settings_path.open("a") as file:
        file.write('[observe]\nperiod_s = 0.3\ntier = "proc"\n[pods]\nunits = false\n')

    result = temper(observe.command, "--record", str(tmp_path / "node.rec"), "--looks", "1")

    assert result.exit_code == 0, result.output
    assert "looking at the node by itself" in result.stderr
    assert Recording(tmp_path / "node.rec").head.source == "observer"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--seconds", "3"), "are for --record"),
        (("--record", "x.rec", "--seconds", "3", "--looks", "3"), "exclude each other"),
        (("--record", "x.rec", "--looks", "0"), "0 is not in the range"),
        (("--record", "x.rec", "--max-bytes", "10"), "10 is not in the range"),
    ],
)
def test_options_that_make_no_sense_are_refused(temper, options, said):
    result = temper(observe.command, *options)

    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.usefixtures("alone")
def test_a_file_that_is_there_is_not_recorded_over(temper, tmp_path):
    path = tmp_path / "node.rec"
    path.write_text("precious")

    result = temper(observe.command, "--record", str(path), "--looks", "1")

    assert isinstance(result.exception, InputError)
    assert path.read_text() == "precious"


@frozen
class Done:
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def simulated(tmp_path, monkeypatch, capsys):
    """Return a function that runs ``temper simulate`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["temper", "simulate", *map(str, arguments)])
        return Done(main.run(), *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("golden", "options"),
    [
        ("busy-node.json", ()),
        ("busy-node.16-cores.json", ("--steered", "--machine", MACHINES / "16-cores.toml")),
    ],
)
def test_the_recording_that_ships_gives_the_result_that_ships(simulated, golden, options):
    result = simulated(RECORDING, *options, "--output", "json")

    said, expected = json.loads(result.stdout), json.loads((RECORDINGS / golden).read_text())
    assert lasting(said) == lasting(expected), "to be another? see examples/recordings/README.md"
    assert said["threads_elsewhere"] or not options


def lasting(document):
    """Leave out what depends on the plugins that are installed, and on which shapes were judged."""
    plan = document["plan"]
    notes = [note for note in plan["notes"] if note["code"] != "unproven_shape"]
    changing = ("invariants", "violations", "remarks", "shape_verdict")
    kept = {key: value for key, value in document.items() if key not in changing}
    return {**kept, "plan": {**plan, "notes": notes}}


def test_the_same_recording_gives_the_same_bytes_each_time(simulated):
    outputs = {simulated(RECORDING, "--output", output).stdout for output in ("json", "json")}

    assert len(outputs) == 1
    assert outputs != {""}


def test_the_tables_show_plan_reasons_changes_and_verdict(simulated):
    result = simulated(RECORDING, "--machine", MACHINES / "16-cores.toml", "--steered")

    assert result.stderr == ""
    for words in (
        "node-1  24 looks in 26 s, recorded by an observer (observe_only)",
        "threads move by hints, the engine is not touched",
        "workload rule 'ledger' (process = 'ledger')",
        "planned for 16 cores, in force for 2",
        "http-0",
        "high, open  storefront",
        "judged were",
    ):
        assert words in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.rec", None, "absent.rec: No such file or directory"),
        ("empty.rec", b"", "empty.rec:1: is no recording of a node"),
        ("text.rec", b"hello\n", "text.rec:1: is not JSON"),
        ("noise.rec", b"\xff\xfe\n", "noise.rec:1: is not UTF-8 text (byte 0)"),
        ("cut.rec.gz", b"\x1f\x8b\x08\x00", "cut.rec.gz:1: is cut here"),
        ("torn.rec.gz", b"\x1f\x8b\x08\x00" + b"\xff" * 60, "torn.rec.gz:1: cannot be unpacked"),
    ],
)
def test_what_is_no_recording_is_one_line_and_the_users_mistake(
    simulated, tmp_path, name, content, said
):
    if content is not None:
        (tmp_path / name).write_bytes(content)

    result = simulated(name)

    assert result.returncode == 2
    assert result.stderr.startswith(f"temper: {said}")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("option", "said"),
    [("--settings", "absent"), ("--machine", "absent"), ("--profiles", "is not a directory")],
)
def test_what_is_to_take_the_place_of_the_recorded_must_be_there(simulated, option, said):
    result = simulated(RECORDING, option, "absent")

    assert result.returncode == 2
    assert said in result.stderr


def test_the_recording_that_ships_names_nothing_of_the_machine_it_was_made_on():
    for snapshot in (moment.snapshot for moment in Recording(RECORDING).moments()):
        assert snapshot.node == "node-1"
        assert {thread.process for thread in snapshot.threads} <= {
            "bash",
            "ledger",
            "nightly-report",
            "search",
            "sleep",
            "storefront",
            "temper",
        }
        assert {thread.cgroup for thread in snapshot.threads} <= {"/"}
