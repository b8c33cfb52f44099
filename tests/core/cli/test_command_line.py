import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from temper_core.cli import remembered
from temper_core.cli.main import CORE_COMMANDS
from temper_core.hookspecs import ENTRY_POINTS
from temper_core.install_hints import GROUP, plugin_with
from temper_core.plugin_commands import settings_path, summaries
from temper_core.settings import reader
from tests.hostile_text.forks import Forks
from tests.patience import PATIENCE_S

COMMANDING = """
from temper_core import Command, hookimpl

@hookimpl
def temper_commands():
    return [Command("brew", "Make coffee.", lambda: None)]
"""
TEMPER = str(Path(sys.executable).with_name("temper"))


def temper(*arguments, **options):
    command = [TEMPER, *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


@pytest.fixture
def forked(forks, tmp_path):
    """Run commands as ``temper`` does, but without a new interpreter that imports all again."""

    def run(*arguments):
        paths = tmp_path / "forked-stdout", tmp_path / "forked-stderr"
        with paths[0].open("w") as output, paths[1].open("w") as errors:
            forks.start(arguments, Path.cwd(), os.environ, output.fileno(), errors.fileno())
            code = forks.wait()
        return subprocess.CompletedProcess(arguments, code, *(path.read_text() for path in paths))

    return run


@pytest.mark.parametrize("name", sorted(CORE_COMMANDS))
def test_every_command_explains_itself_and_exits_clean(name):
    done = temper(name, "--help")

    assert done.returncode == 0
    assert "Usage: temper" in done.stdout
    assert done.stderr == ""


def test_the_help_lists_the_commands_of_core_and_plugins(tmp_path):
    done = temper("--help", env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)})

    for name in [*CORE_COMMANDS, "diff", "lint", "map", "top"]:
        assert f"  {name} " in done.stdout


def test_the_help_is_the_same_when_it_is_remembered(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    first = temper("--help", env=environment)
    second = temper("--help", env=environment)

    assert (tmp_path / "temper-agent").is_dir()
    assert first.stdout == second.stdout


def test_a_remembered_help_imports_no_module_that_is_slow(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    temper("--help", env=environment)

    done = temper("--help", env={**environment, "PYTHONPROFILEIMPORTTIME": "1"})

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "temper_core.cli.remembered" in imported
    assert not {"attrs", "click", "dataclasses", "re", "rich", "typing"} & imported


@pytest.mark.parametrize("content", [b"", b"other stamp\nUsage: nonsense", b"\xff"])
def test_a_spoilt_copy_of_the_help_is_made_anew(tmp_path, content):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    right = temper("--help", env=environment).stdout
    (copy,) = (tmp_path / "temper-agent").iterdir()
    copy.write_bytes(content)

    done = temper("--help", env=environment)

    assert (done.stdout, done.stderr) == (right, "")
    assert copy.read_text().endswith(right)


def test_the_help_of_a_narrow_terminal_is_kept_apart(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    wide = temper("--help", env={**environment, "COLUMNS": "80"})
    narrow = temper("--help", env={**environment, "COLUMNS": "50"})

    assert wide.stdout != narrow.stdout
    assert temper("--help", env={**environment, "COLUMNS": "50"}).stdout == narrow.stdout


def test_the_help_is_made_anew_when_the_path_brings_other_plugins(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    temper("--help", env=environment)
    path = tmp_path / "path"
    path.mkdir()
    first = temper("--help", env={**environment, "PYTHONPATH": str(path)})
    install(path, "acme", COMMANDING)

    done = temper("--help", env={**environment, "PYTHONPATH": str(path)})

    assert "brew" not in first.stdout
    assert "  brew  " in done.stdout


def test_few_copies_of_the_help_are_kept_and_none_that_is_out_of_date(tmp_path):
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    kept = tmp_path / "temper-agent"
    kept.mkdir()
    (kept / "help-70.txt").write_text("an old stamp\nUsage: nonsense")

    for columns in ["80", "100", "250", "9" * 5000]:
        temper("--help", env={**environment, "COLUMNS": columns})

    assert [path.name for path in kept.iterdir()] == ["help-80.txt"]


def test_the_help_works_where_nothing_can_be_remembered():
    done = temper("--help", env={**os.environ, "XDG_CACHE_HOME": "/proc/none"})

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["frobnicate"], "frobnicate"),
        (["settings", "--bogus"], "--bogus"),
        (["settings", "--settings", "/no/such/file"], "No such file"),
        (["settings", "--output", "xml"], "xml"),
        (["completion", "tcsh"], "tcsh"),
        (["run"], "ARGV"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_clear_message_and_code_2(forked, arguments, word):
    done = forked(*arguments)

    assert done.returncode == 2
    assert word in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["run", "--tier", "critcal", "true"], "Did you mean 'critical'?"),
        (["machine", "-o", "jsno"], "Did you mean 'json'?"),
        (["plan", "--pods", "-", "--output", "enigne"], "Did you mean 'engine'?"),
        (["safe-mode", "statsu"], "Did you mean 'status'?"),
        (["trace", "analyze", "x", "--by", "thraed"], "Did you mean 'thread'?"),
        (["profiles", "show", "redsi"], "did you mean 'redis'?"),
        (["lint", "--explain", "starvatoin", "--from", "{empty}"], "did you mean 'starvation'?"),
    ],
)
def test_a_mistyped_value_gets_the_one_that_was_meant(forked, arguments, meant, tmp_path):
    empty = tmp_path / "violations.json"
    empty.write_text('{"violations": [], "at": 1}')

    done = forked(*(each.format(empty=empty) for each in arguments))

    assert done.returncode == 2
    assert done.stderr.endswith(f"{meant}\n")


def test_a_value_that_is_like_none_gets_no_suggestion(forked):
    done = forked("run", "--tier", "sideways", "true")

    assert "'sideways' is not one of" in done.stderr
    assert "mean" not in done.stderr


def test_a_mistyped_invariant_is_told_without_an_agent_too(forked, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/none"\n')

    done = forked("lint", "--explain", "starvatoin", "--settings", str(path))

    assert done.returncode == 3
    assert "no agent answers" in done.stderr
    assert done.stderr.endswith("did you mean 'starvation'?\n")


def test_every_mistake_in_a_settings_file_is_a_line_of_its_own(forked, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("[observe]\nperiod_s = 'x'\n[lint]\nwindow = 1\n")

    done = forked("settings", "--settings", str(path))

    assert done.returncode == 2
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["temper", "temper"]
    assert f"{path}: observe.period_s: must be a number" in done.stderr
    assert f"{path}: lint: unknown key 'window'" in done.stderr


FORGING = "x\nFORGED all is well"


@pytest.mark.parametrize(
    "arguments",
    [
        ("settings", "--settings", FORGING),
        ("plan", "--pods", FORGING),
        ("profiles", "check", FORGING),
        ("engine", "check", FORGING),
        ("simulate", FORGING),
        ("diff", FORGING, FORGING),
        ("plugins", FORGING),
        ("k8s", "status", "--kubeconfig", FORGING),
    ],
)
def test_text_with_a_line_break_makes_no_second_line_in_an_error(forked, arguments):
    done = forked(*arguments)

    assert done.returncode in (2, 3)
    assert "FORGED all is well" in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("temper: FORGED")]
    assert not [line for line in done.stderr.splitlines() if line.startswith("FORGED")]


def test_settings_are_printed_for_machines_with_their_source(forked, tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("[tiers.low]\nweight = 60\n")

    done = forked("settings", "--settings", str(path), "--output", "json")

    rows = {row["setting"]: row for row in json.loads(done.stdout)}
    assert rows["tiers.low.weight"] == {
        "setting": "tiers.low.weight",
        "value": 60,
        "source": str(path),
        "default": 50,
        "meaning": "Weight between layers when CPUs are short, 1 to 10000.",
    }
    assert rows["tiers.low.slice_us"]["source"] == "default"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_completes_temper(forked, shell):
    done = forked("completion", shell)

    assert done.returncode == 0
    assert "_TEMPER_COMPLETE" in done.stdout


def test_a_reader_who_goes_away_is_no_error():
    writer = subprocess.Popen(
        [TEMPER, "settings", "--output", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    writer.stdout.close()

    assert writer.stderr.read() == b""
    writer.stderr.close()
    writer.wait(timeout=PATIENCE_S)


def test_the_version_is_printed():
    assert temper("--version").stdout.startswith("temper, version 0.")


def shell(line):
    """Run *line* in a shell, where ``temper`` is the command, and report the code of each part."""
    script = f'temper() {{ {TEMPER} "$@"; }}; {line}; echo codes ${{PIPESTATUS[*]}} >&2'
    done = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)
    *errors, codes = done.stderr.splitlines()
    return errors, codes


@pytest.mark.parametrize("arguments", ["--help", "settings", "plugins", "settings --output json"])
def test_a_full_disk_is_one_line_and_code_3(arguments):
    errors, codes = shell(f"temper {arguments} > /dev/full")

    assert errors == ["temper: cannot write the result: No space left on device"]
    assert codes == "codes 3"


@pytest.mark.parametrize("arguments", ["--help", "settings"])
def test_a_closed_standard_output_is_one_line_and_code_3(arguments):
    errors, codes = shell(f"temper {arguments} >&-")

    assert errors == ["temper: cannot write the result: Bad file descriptor"]
    assert codes == "codes 3"


@pytest.mark.parametrize("arguments", ["--help", "settings", "settings --output json", "plugins"])
def test_a_reader_that_reads_nothing_is_silent_and_clean(arguments):
    errors, codes = shell(f"temper {arguments} | true")

    assert errors == []
    assert codes == "codes 0 0"


def test_a_command_that_ran_to_its_end_keeps_its_code_without_a_reader(tmp_path):
    (tmp_path / "bad.toml").write_text("id = 3\n")

    errors, codes = shell(f"temper profiles --profiles {tmp_path} | true")

    assert len(errors) == 1
    assert codes == "codes 1 0"


NOISY = """
from temper_core import Invariant, hookimpl

print("noise at import")

@hookimpl
def temper_invariants():
    print("noise in a hook")
    return [Invariant("held", lambda snapshot: (), why="it always holds")]
"""


def install(directory, name, source, plugin=None):
    """Put a distribution with one plugin on a path; return the environment that sees it."""
    (directory / f"{name}.py").write_text(source)
    info = directory / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[temper.plugins]\n{plugin or name} = {name}\n")
    return {**os.environ, "PYTHONPATH": str(directory)}


def test_a_command_whose_plugin_is_set_aside_says_why(tmp_path):
    done = temper("lint", env=install(tmp_path, "impostor", NOISY, plugin="linter"))

    assert done.returncode == 2
    assert "no plugin offers 'lint'; plugin 'linter' is set aside: " in done.stderr
    assert "impostor and temper-plugin-linter" in done.stderr


ALONE = """
import os, sys
from importlib import metadata
metadata.distributions = lambda: []
import temper_core.cli.main
from temper_core.cli.entry import main
for number, command in enumerate(sys.argv[1:]):
    if os.fork() == 0:
        os.dup2(os.open(str(number), os.O_CREAT | os.O_WRONLY), 2)
        sys.argv = command.split()
        main()
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
"""Runs each command in a fork, without any plugin. The file of its number has its errors."""


PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
OFFERS = PROJECT["entry-points"][GROUP]
OFFERED = [name for name in OFFERS if name.startswith("temper ")]
UNKNOWN = "temper brew"


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return the exit code and the errors of each command where no plugin is installed."""
    folder = tmp_path_factory.mktemp("alone")
    commands = [*(f"{name} --help" for name in OFFERED), UNKNOWN]
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *commands],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    errors = [(folder / str(number)).read_text() for number in range(len(commands))]
    codes = map(int, done.stdout.splitlines())
    return dict(zip([*OFFERED, UNKNOWN], zip(codes, errors, strict=True), strict=True))


@pytest.mark.parametrize("command", OFFERED)
def test_a_command_whose_plugin_is_missing_is_told_with_its_install_line(alone, command):
    code, errors = alone[command]
    name, plugin = command.split()[-1], plugin_with(command)

    assert code == 2
    assert errors == (
        f"temper: no plugin offers {name!r}; plugin {plugin!r} is not installed: "
        f"pip install 'temper-agent[{plugin}]'\n"
    )


def test_a_command_that_no_plugin_of_ours_has_is_unknown_to_the_core_alone(alone):
    code, errors = alone[UNKNOWN]

    assert code == 2
    assert "No such command 'brew'" in errors


def test_the_install_lines_are_of_the_commands_and_extras_that_there_are():
    groups = ("temper", "temper profiles", "kubectl temper")
    offered = {f"{group} {name}" for group in groups for name in summaries(group)}

    assert {name for name in OFFERS if not name.startswith("/")} == offered
    assert {plugin_with(name) for name in OFFERS} <= set(PROJECT["optional-dependencies"])


def test_an_offer_is_of_the_plugin_with_that_name():
    plugins = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINTS)}

    assert {plugin_with(name): module for name, module in OFFERS.items()}.items() <= plugins.items()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["expain"], "explain"),
        (["profiles", "lst"], "list"),
        (["run", "--tir", "high", "--", "true"], "--tier"),
        (["run", "--teir=high", "true"], "--tier"),
    ],
)
def test_a_mistyped_word_is_an_error_with_the_one_that_was_meant(forked, arguments, meant):
    done = forked(*arguments)

    assert done.returncode == 2
    assert re.search(f"Error: No such .* Did you mean '?{meant}'?\\?", done.stderr)


UNFIT = """
raise ImportError("no such library here")
"""


@pytest.mark.parametrize("spelling", ["--settings {}", "--settings={}"])
def test_a_plugin_that_the_settings_keep_out_is_not_imported_for_anothers_command(
    tmp_path, spelling
):
    path = tmp_path / "agent.toml"
    path.write_text("[plugin_host]\nallow = ['linter']\n[server]\nlisten = ''\nsocket = '/none'\n")
    environment = install(tmp_path, "unfit", UNFIT)

    done = temper("lint", *spelling.format(path).split(), env=environment)
    unbound = temper("lint", "--help", env=environment)

    assert done.returncode == 3
    assert done.stderr.startswith("temper: no agent answers")
    assert "no such library here" in unbound.stderr


def test_a_command_whose_plugin_the_settings_keep_out_says_so(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("[plugin_host]\nallow = []\n")

    done = temper("lint", "--settings", str(path))

    assert done.returncode == 2
    assert "no plugin offers 'lint'; " in done.stderr
    assert "plugin 'linter' is not loaded: " in done.stderr
    assert "[plugin_host] allow" in done.stderr


def test_settings_that_are_not_there_are_one_line_for_a_plugins_command_too(tmp_path):
    done = temper("lint", "--settings", str(tmp_path / "none.toml"))

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "none.toml" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ("", None),
        ("--from -", None),
        ("--settings", None),
        ("--settings a", "a"),
        ("--settings=a --settings b", "b"),
        ("-- --settings a", None),
    ],
)
def test_the_last_settings_among_the_arguments_count(arguments, path):
    found = settings_path(arguments.split())

    assert found == (path and Path(path))


def test_the_default_settings_bind_the_help_and_are_part_of_its_stamp(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "agent.toml"
    assert str(reader.DEFAULT_PATH) == remembered.SETTINGS_PATH
    monkeypatch.setattr(reader, "DEFAULT_PATH", path)
    monkeypatch.setattr(remembered, "SETTINGS_PATH", str(path))
    remembered.remember("help", "with lint")
    before = summaries("temper"), remembered.recall("help")

    path.write_text("[plugin_host]\nallow = []\n")
    kept_out = summaries("temper"), remembered.recall("help")
    path.write_text("[plugin_host\n")
    unreadable = summaries("temper")

    assert "lint" in before[0]
    assert before[1] == "with lint"
    assert kept_out == ({}, None)
    assert unreadable == {}


def test_what_a_plugin_prints_is_no_part_of_the_result(tmp_path):
    done = temper("plugins", "--output", "json", env=install(tmp_path, "noisy", NOISY))

    states = {state["name"]: state["state"] for state in json.loads(done.stdout)}
    assert states["noisy"] == "active"
    assert done.stderr.splitlines() == ["noise at import", "noise in a hook"]


@pytest.mark.parametrize("columns", ["20", "80", "400"])
def test_a_table_in_a_pipe_is_whole_whatever_the_width(columns, tmp_path):
    path = tmp_path / "agent.toml"
    words = "word " * 100
    path.write_text(f"[plugins.acme]\nnote = '{words}'\n")
    environment = {**os.environ, "COLUMNS": columns}

    settings = temper("settings", "--settings", str(path), env=environment)
    plugins = temper("plugins", env=environment)
    profiles = temper("profiles", env=environment)

    assert words in settings.stdout
    assert "profiles" in plugins.stdout.splitlines()[1]
    assert plugins.stdout.splitlines()[0].split() == [
        "plugin",
        "version",
        "distribution",
        "state",
        "hooks",
        "failure",
    ]
    assert profiles.stdout.splitlines()[0].split() == [
        "profile",
        "source",
        "machine",
        "enabled",
        "effect",
        "groups",
        "description",
    ]
    assert "…" not in plugins.stdout + profiles.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["settings", "--settings"],
        ["profiles", "check"],
        ["plan", "--pods", "none.json", "--settings"],
    ],
)
def test_a_pipe_in_place_of_a_file_is_refused_at_once(arguments, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    done = temper(*arguments, str(pipe), timeout=PATIENCE_S)

    assert done.returncode == 2
    assert done.stderr == f"temper: {pipe}: is not a regular file\n"


@pytest.mark.parametrize("arguments", [["engine", "check"], ["plan", "--pods"], ["lint", "--from"]])
def test_a_document_that_never_ends_is_refused(arguments):
    done = temper(*arguments, "/dev/zero", timeout=PATIENCE_S)

    assert done.returncode == 2
    assert done.stderr == "temper: /dev/zero: is larger than 67108864 bytes\n"
