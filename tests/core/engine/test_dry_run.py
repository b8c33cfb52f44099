"""The real engine asked by ``temper engine check --binary``, and fake ones that behave badly."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_core.cli.engine import command
from temper_core.engine.binary import EngineBinary
from temper_core.engine.dry_run import DryRunStage, one_line, rehearse, with_hint_map
from temper_core.errors import EngineError

ROOT = Path(__file__).parents[3]
OPEN = {"Open": {}}
LAST = {"name": "all", "matches": [[]], "kind": OPEN}
SOUND = json.dumps([LAST])


def layer(name="a", matches=None, kind=None):
    return {"name": name, "matches": matches or [[{"CommPrefix": "x"}]], "kind": kind or OPEN}


def hinted(number, name="a", *beside):
    return layer(name, [[{"HintEquals": number}, *beside]])


GROUPED = {"Grouped": {"util_range": [0.8, 0.2]}}
REFUSED = [
    ([layer(matches=[[{"Foo": 1}]]), LAST], "parsed", "unknown variant `Foo`"),
    ([layer(kind={"Foo": {}}), LAST], "parsed", "unknown variant `Foo`"),
    ([*[layer(f"l{n}") for n in range(16)], LAST], "verified", "Too many layer specs"),
    ([layer()], "verified", 'Terminal spec "a" must have an empty match'),
    ([{**layer(), "matches": []}, LAST], "verified", 'Non-terminal spec "a" has NULL matches'),
    ([layer(matches=[[{"CommPrefix": "x" * 17}]]), LAST], "verified", "too long a comm prefix"),
    ([layer(kind=GROUPED), LAST], "verified", "invalid util_range (0.8, 0.2)"),
    ([layer(matches=[[{"CommPrefix": "x"}]] * 33), LAST], "verified", "too many (33) OR match"),
    ([hinted(1025), LAST], "verified", "outside the range [0, 1024]"),
    ([hinted(5), hinted(5, "b"), LAST], "verified", "already mapped to Spec"),
    ([hinted(5, "a", {"CommPrefix": "x"}), LAST], "verified", "cannot be in conjunction"),
    ([], "verified", "No layer spec"),
    ({"a": 1}, "parsed", "invalid type: map, expected a sequence"),
]


def temper(*arguments, given=SOUND, environment=None):
    """Run ``temper engine check`` as a user does."""
    code = "from temper_core.cli.main import main; main()"
    called = [sys.executable, "-c", code, "engine", "check", "-", *arguments]
    return subprocess.run(
        called, input=given, capture_output=True, text=True, check=False, env=environment
    )


def asked(engine, config, *arguments):
    """Run the same in this process, where only the engine's part counts."""
    options = ["check", "-", "--binary", str(engine.path), *arguments]
    return CliRunner().invoke(command, options, input=json.dumps(config))


def program(folder, script, name="scx_layered"):
    path = folder / name
    answer = 'if [ "$1" = --version ]; then echo scx_layered 1.1.4 x86_64; exit; fi'
    path.write_text(f"#!/bin/sh\n{answer}\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(("config", "stage", "words"), REFUSED)
def test_the_real_engine_refuses_each_bad_configuration_in_its_own_words(
    offline_engine, config, stage, words
):
    found = temper(
        "--binary", str(offline_engine.path), "--output", "json", given=json.dumps(config)
    )

    told = json.loads(found.stdout)
    assert (found.returncode, found.stderr, told["accepted"]) == (2, "", False)
    assert (told["engine"]["taken"], told["engine"]["stage"]) == (False, stage)
    assert words in told["engine"]["said"]
    assert "\n" not in told["engine"]["said"]
    assert told["problems"], "the engine refuses what Temper's own rules let through"


def test_the_real_engine_takes_a_sound_configuration_in_one_line(offline_engine):
    found = temper("--binary", str(offline_engine.path))

    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == (
        f"scx_layered {offline_engine.version}: "
        "parsed and verified by the engine; not loaded into a kernel\n"
    )


def test_a_refusal_is_one_line_of_rules_and_one_of_the_engine(offline_engine):
    found = asked(offline_engine, [layer()])

    *_, last = found.stdout.splitlines()
    assert last == 'refused  the engine, verifying it: Terminal spec "a" must have an empty match'


def test_hints_are_judged_as_the_agent_would_start_the_engine(offline_engine):
    first = {**hinted(5), "kind": {"Open": {"preempt": True}}}

    found = asked(offline_engine, [first, LAST])

    assert (found.exit_code, found.stdout.count("\n")) == (0, 1)


def test_what_the_engine_takes_and_crashes_on_later_is_still_refused(offline_engine):
    config = [layer(matches=[[{"CommPrefix": "x" * 16}]]), LAST]

    found = asked(offline_engine, config, "--output", "json")

    assert found.exit_code == 2
    assert json.loads(found.stdout)["engine"]["taken"]


def test_a_backtrace_that_the_user_asked_for_elsewhere_stays_away(offline_engine, monkeypatch):
    monkeypatch.setenv("RUST_BACKTRACE", "1")

    found = asked(offline_engine, [layer()])

    assert "backtrace" not in found.stdout.lower()


def test_a_plan_of_temper_goes_straight_to_the_real_engine(offline_engine):
    pods = ROOT / "examples/podlists"
    podlist = next(iter(sorted(pods.glob("*.json")) or sorted(pods.glob("*.yaml"))))
    machine = next(iter(sorted((ROOT / "examples/machines").iterdir())))
    code = "from temper_core.cli.main import main; main()"
    plan = [sys.executable, "-c", code, "plan", "--pods", str(podlist), "--machine", str(machine)]
    made = subprocess.run([*plan, "--output", "engine"], capture_output=True, text=True, check=True)

    found = temper("--binary", str(offline_engine.path), given=made.stdout)

    assert found.returncode in (0, 1), found.stdout
    assert "parsed and verified by the engine" in found.stdout


def test_the_engine_of_the_settings_is_asked_where_no_path_is_given(tmp_path):
    program(tmp_path, "echo 'Error: No layer spec' >&2; exit 1")

    found = temper("--binary", environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})

    assert found.returncode == 2
    assert found.stdout.endswith(": No layer spec\n")


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("exec sleep 60", "did not end within 0.5 s"),
        ("exit 1", "ended without a word"),
        ("kill -9 $$", "ended without a word"),
    ],
)
def test_an_engine_that_gives_no_answer_is_the_machines_fault(tmp_path, script, line):
    path = program(tmp_path, script)

    found = temper("--binary", str(path), "--timeout", "0.5")

    assert (found.returncode, found.stdout) == (3, "")
    assert found.stderr.startswith("temper: ")
    assert found.stderr.rstrip().endswith(line)


def test_a_configuration_that_was_taken_for_the_engine_is_told_to_come_first():
    found = CliRunner().invoke(command, ["check", "--binary", "layers.json"])

    assert found.exit_code == 2
    assert "--binary took 'layers.json' for the engine: give FILE before" in found.output


@pytest.mark.parametrize("arguments", [[], ["--binary"], ["--cpus", "4"]])
def test_without_a_configuration_there_is_nothing_to_judge(arguments):
    found = CliRunner().invoke(command, ["check", *arguments])

    assert found.exit_code == 2
    assert found.output.rstrip().endswith("Error: Missing argument 'FILE|-'.")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--binary", "/nowhere/scx_layered"], 3),
        (["--load"], 2),
        (["--binary", "/x", "--engine-version", "1.1.4"], 2),
        (["--binary", "/x", "--timeout", "0"], 2),
    ],
)
def test_a_mistake_in_the_call_has_its_exit_code_and_no_traceback(arguments, code):
    found = temper(*arguments)

    assert found.returncode == code
    assert "Traceback" not in found.stderr


def test_where_the_engine_could_attach_it_only_reads(tmp_path):
    (tmp_path / "kernel/sched_ext").mkdir(parents=True)
    path = program(tmp_path, f'echo "$@" > {tmp_path}/asked; echo specs=[]')

    found = rehearse(EngineBinary(path, "1.1.4"), SOUND, sys_root=str(tmp_path))

    assert (found.stage, found.is_taken) == (DryRunStage.PARSED, True)
    assert "--load" in found.line
    assert "--print-and-exit" in (tmp_path / "asked").read_text()


def test_a_long_error_is_cut_to_one_line():
    said = "Error: Failed\n\nCaused by:\n    " + "x" * 1000

    assert one_line(said).startswith("Failed: xxx")
    assert len(one_line(said)) == 400


@pytest.mark.parametrize(
    ("config", "given", "expected"),
    [
        ("[]", ("--a",), ("--a",)),
        ('[{"HintEquals": 1}]', (), ("--task-hint-map=/m",)),
        ('[{"HintEquals": 1}]', ("--task-hint-map=/x",), ("--task-hint-map=/x",)),
    ],
)
def test_a_map_is_named_where_hints_need_one(config, given, expected):
    assert with_hint_map(config, given, "/m") == expected


def test_a_binary_that_cannot_run_is_told_with_a_remedy(tmp_path):
    path = tmp_path / "scx_layered"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)

    with pytest.raises(EngineError, match="cannot be run: Exec format error"):
        rehearse(EngineBinary(path, "1.1.4"), SOUND, sys_root=str(tmp_path))
