import json
import subprocess
import sys
from typing import Any

import pytest

SOUND = [{"name": "all", "matches": [[]], "kind": {"Open": {}}}]
WARNED = [{"name": "all", "matches": [[]], "kind": {"Open": {"slice_ms": 20}}}]
REFUSED = [{"name": "all", "matches": [[]], "kind": {"Open": {"perf": 2000}}}]
HINTED = [{"name": "a", "matches": [[{"HintEquals": 1}]], "kind": {"Open": {"preempt": True}}}]


def temper(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ``temper engine check`` as a user does."""
    code = "from temper_core.cli.main import main; main()"
    command = [sys.executable, "-c", code, "engine", "check", *arguments]
    found = subprocess.run(command, input=given, capture_output=True, check=False)
    return subprocess.CompletedProcess(
        command, found.returncode, found.stdout.decode(), found.stderr.decode()
    )


def bytes_of(layers: list[dict[str, Any]]) -> bytes:
    return json.dumps(layers).encode()


@pytest.mark.parametrize(
    ("layers", "code", "line"),
    [
        (SOUND, 0, "scx_layered 1.1.4 would take it as it is written"),
        (WARNED, 1, "ignored  layer[0] 'all': kind.Open.slice_ms: is no option of the engine"),
        (REFUSED, 2, "refused  layer[0] 'all': kind.Open.perf: the kernel ejects the engine"),
    ],
)
def test_the_exit_code_tells_how_it_went(layers, code, line):
    found = temper("-", given=bytes_of(layers))

    assert found.returncode == code
    assert found.stdout.startswith(line)
    assert found.stderr == ""


def test_a_file_is_judged_as_json_for_machines(tmp_path):
    path = tmp_path / "layers.json"
    path.write_bytes(bytes_of(REFUSED + SOUND))

    found = temper(str(path), "--output", "json")

    document = json.loads(found.stdout)
    assert found.returncode == 2
    assert document["accepted"] is False
    assert document["engine_version"] == "1.1.4"
    assert [each["severity"] for each in document["problems"]] == ["refused", *["ignored"] * 3]


def test_a_version_that_is_not_known_is_judged_with_a_word_on_it():
    found = temper("-", "--engine-version", "1.9.0", given=bytes_of(SOUND))

    assert found.returncode == 0
    assert found.stderr == "scx_layered 1.9.0 is not known; taken for 1.1.4\n"


def test_what_the_engine_is_started_with_counts():
    layers = bytes_of(HINTED + SOUND)

    without = temper("-", given=layers)
    with_map = temper("-", "--argument=--task-hint-map=/sys/fs/bpf/hints", given=layers)

    assert (without.returncode, with_map.returncode) == (1, 0)


@pytest.mark.parametrize(
    ("arguments", "given", "line"),
    [
        (["no-such-file.json"], b"", "temper: no-such-file.json: No such file or directory\n"),
        (["-"], b"[\xff]", "temper: -: is not UTF-8 text (byte 1)\n"),
        (["-", "--engine-version", "v1.1.2"], b"[]", "temper: 'v1.1.2' is no engine version"),
        (["-", "--engine-version", "0.1.0"], b"[]", "temper: scx_layered 0.1.0 is older than"),
    ],
)
def test_a_mistake_in_the_call_is_one_line(arguments, given, line):
    found = temper(*arguments, given=given)

    assert found.returncode == 2
    assert found.stderr.startswith(line)
    assert found.stderr.count("\n") == 1


def test_bytes_that_are_no_configuration_give_a_reason_and_no_traceback():
    found = temper("-", given=b"\0\1\2")

    assert found.returncode == 2
    assert found.stdout.startswith("refused  configuration: is not JSON")
    assert found.stderr == ""
