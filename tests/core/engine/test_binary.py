import json
import os
import time
from pathlib import Path

import pytest

from temper_core.engine.binary import (
    EngineBinary,
    find_engine,
    parse_version,
    print_and_exit,
    verify_offline,
)
from temper_core.errors import EngineError
from tests.patience import PATIENCE_S

SOUND = json.dumps([{"name": "all", "matches": [[]], "kind": {"Open": {}}}])


def runs(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return ") Z " not in stat


def program(folder: Path, script: str, name: str = "scx_layered") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "scx_layered 1.1.4 x86_64-unknown-linux-gnu\n",
        "scx_layered 1.1.4-g7a58a3a1a-dirty x86_64-unknown-linux-gnu/debug\n",
        "scx_layered 1.1.4",
    ],
)
def test_the_version_is_the_crates(text):
    assert parse_version(text) == "1.1.4"


@pytest.mark.parametrize("text", ["scx_rusty 1.1.4", "1.1.4", "scx_layered one", "scx_layered 1.1"])
def test_another_programs_version_is_refused_with_its_words(text):
    with pytest.raises(EngineError, match=f"--version printed '{text}'"):
        parse_version(text)


def test_no_version_at_all_tells_which_engines_have_none():
    with pytest.raises(EngineError, match=r"printed nothing \(engines before 1\.0\.15 lack it\)"):
        parse_version("\n")


def test_an_engine_is_found_by_its_path(tmp_path):
    path = program(tmp_path, "echo scx_layered 1.1.2 target")

    assert find_engine(str(path)) == EngineBinary(path, "1.1.2")


def test_an_engine_is_found_by_its_name_on_path(tmp_path, monkeypatch):
    program(tmp_path, "echo scx_layered 1.1.2 target", name="my_layered")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert find_engine("my_layered").path == tmp_path / "my_layered"


def test_a_name_that_is_not_on_path_names_the_setting(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EngineError, match=r"no such program on PATH; .* scheduler\.engine"):
        find_engine("scx_layered")


def test_a_path_without_a_file_says_so(tmp_path):
    with pytest.raises(EngineError, match="there is no such file"):
        find_engine(str(tmp_path / "scx_layered"))


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
def test_an_engine_that_may_not_be_looked_at_is_told(tmp_path):
    tmp_path.chmod(0o700)

    os.seteuid(65534)
    try:
        with pytest.raises(EngineError, match="Permission denied"):
            find_engine(str(tmp_path / "scx_layered"))
    finally:
        os.seteuid(0)


def test_a_file_that_is_not_executable_says_so(tmp_path):
    path = program(tmp_path, "")
    path.chmod(0o644)

    with pytest.raises(EngineError, match="is not executable"):
        find_engine(str(path))


def test_a_file_that_is_no_program_says_so(tmp_path):
    path = tmp_path / "scx_layered"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)

    with pytest.raises(EngineError, match="cannot be run: Exec format error"):
        find_engine(str(path))


def test_bytes_that_are_no_text_are_no_version(tmp_path):
    path = program(tmp_path, r"printf '\377\376'")

    with pytest.raises(EngineError, match="no version of scx_layered"):
        find_engine(str(path))


def test_an_engine_that_does_not_end_is_given_up(tmp_path):
    path = program(tmp_path, "exec sleep 60")

    with pytest.raises(EngineError, match=r"did not end within 0\.2 s"):
        print_and_exit(EngineBinary(path, "1.1.4"), SOUND, timeout_s=0.2)


@pytest.mark.parametrize("where", ["", " >&2"])
def test_an_engine_that_prints_without_end_is_refused_at_64_kib(tmp_path, where):
    noted = tmp_path / "pid"
    path = program(tmp_path, f"echo $$ > {noted}; exec yes scx_layered{where}")

    with pytest.raises(EngineError, match=r"^engine \S+: printed more than 64 KiB; [^\n]+$"):
        find_engine(str(path))

    assert not runs(noted.read_text().strip())


def test_an_engine_may_print_64_kib_beside_its_version(tmp_path):
    path = program(tmp_path, "head -c 65536 /dev/zero >&2; echo scx_layered 1.1.2 target")

    assert find_engine(str(path)).version == "1.1.2"


def test_an_engine_that_prints_a_configuration_without_end_is_refused(tmp_path):
    engine = EngineBinary(program(tmp_path, "exec yes specs="), "1.1.4")

    with pytest.raises(EngineError, match="printed more than 16384 KiB"):
        print_and_exit(engine, SOUND)


def test_an_engine_that_reads_no_configuration_is_not_waited_for(tmp_path):
    engine = EngineBinary(program(tmp_path, "echo specs=read"), "1.1.4")

    assert print_and_exit(engine, "x" * 200_000) == (True, "read\n")


def test_an_engine_that_closes_its_output_and_stays_is_given_up(tmp_path):
    path = program(tmp_path, "exec sleep 60 >&- 2>&-")

    with pytest.raises(EngineError, match=r"did not end within 0\.2 s"):
        print_and_exit(EngineBinary(path, "1.1.4"), SOUND, timeout_s=0.2)


@pytest.mark.parametrize("then", ["wait", "exit 0"])
def test_what_a_wrapper_of_the_engine_started_ends_with_it(tmp_path, then):
    noted = tmp_path / "pid"
    path = program(tmp_path, f"sleep 60 & echo $! > {noted}; {then}")

    with pytest.raises(EngineError, match="did not end within 1 s"):
        print_and_exit(EngineBinary(path, "1.1.4"), SOUND, timeout_s=1)

    until = time.monotonic() + PATIENCE_S
    while runs(noted.read_text().strip()) and time.monotonic() < until:
        time.sleep(0.01)
    assert not runs(noted.read_text().strip())


def test_a_kernel_that_could_be_taken_over_is_never_given_to_the_engine(tmp_path):
    (tmp_path / "kernel/sched_ext").mkdir(parents=True)
    engine = EngineBinary(program(tmp_path, f"touch {tmp_path}/started"), "1.1.4")

    with pytest.raises(EngineError, match="would attach"):
        verify_offline(engine, SOUND, sys_root=str(tmp_path))

    assert not (tmp_path / "started").exists()


def test_the_engine_is_told_to_be_quiet_about_backtraces_and_colours(tmp_path):
    engine = EngineBinary(program(tmp_path, 'echo "$RUST_BACKTRACE $NO_COLOR" >&2; exit 1'), "1")

    assert print_and_exit(engine, SOUND) == (False, "0 1")


def test_the_real_engine_prints_how_it_read_a_configuration(engine):
    taken, printed = print_and_exit(engine, SOUND)

    assert taken
    assert json.loads(printed)[0]["kind"]["Open"]["slice_us"] == 20_000


def test_the_real_engine_says_where_it_stopped_reading(engine):
    taken, said = print_and_exit(engine, "[{}]")

    assert not taken
    assert "missing field `name`" in said


def test_print_and_exit_looks_at_no_limit(engine):
    layers = json.loads(SOUND) * 17

    taken, _ = print_and_exit(engine, json.dumps(layers))

    assert taken


def test_the_real_engine_takes_a_configuration_longer_than_an_argument(offline_engine):
    layers = [{"name": "all", "comment": "x" * 200_000, "matches": [[]], "kind": {"Open": {}}}]

    taken, _ = verify_offline(offline_engine, json.dumps(layers))

    assert taken


def test_the_real_engine_knows_the_arguments_it_is_given(offline_engine):
    taken, _ = verify_offline(offline_engine, SOUND, arguments=["--allow-partial-core"])
    refused, said = verify_offline(offline_engine, SOUND, arguments=["--no-such-option"])

    assert taken
    assert not refused
    assert "unexpected argument" in said
