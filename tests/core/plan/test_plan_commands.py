import json
import random
import subprocess
import sys

import pytest
from click.testing import CliRunner

from temper_core.cli.explain import command as explain_command
from temper_core.cli.plan import command as plan_command
from temper_core.errors import DocumentError, InputError, TemperError

PROFILE = """
schema_version = 1
id = "own"
[fingerprint]
images = ["own:*"]
[[thread_groups]]
name = "hot"
match = [{ comm_prefix = "hot" }]
treatment = "exclusive"
"""


def a_pod(name, priority=None, image="web:1", cpu=None, **annotations):
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}} if cpu else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "annotations": annotations,
        },
        "spec": {
            "priority": priority,
            "containers": [{"name": "c", "image": image, "resources": resources}],
        },
        "status": {"phase": "Running"},
    }


@pytest.fixture
def files(tmp_path):
    """Write a PodList, a machine file, an empty settings file and a profile; return the options."""
    pods = [
        a_pod("db", 1_000_000, "own:1", "1500m"),
        a_pod("api", 100_000, cpu="500m"),
        a_pod("batch"),
    ]
    (tmp_path / "pods.json").write_text(json.dumps({"kind": "PodList", "items": pods}))
    (tmp_path / "machine.json").write_text(json.dumps({"cores": 8, "threads_per_core": 2}))
    (tmp_path / "agent.toml").write_text("")
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles" / "own.toml").write_text(PROFILE)
    return {
        "--pods": str(tmp_path / "pods.json"),
        "--machine": str(tmp_path / "machine.json"),
        "--settings": str(tmp_path / "agent.toml"),
        "--profiles": str(tmp_path / "profiles"),
    }


@pytest.fixture
def run(files):
    """Run a command with the files, some options changed; raise what it raises."""

    def call(command, *arguments, given=None, **changes):
        options = {**files, **{f"--{name}": value for name, value in changes.items()}}
        line = [part for name, value in options.items() if value for part in (name, value)]
        result = CliRunner().invoke(command, [*arguments, *line], input=given)
        if isinstance(result.exception, TemperError):
            raise result.exception
        return result

    return call


def test_the_plan_is_a_document(run):
    result = run(plan_command, output="json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [layer["name"] for layer in document["layers"]] == [
        "system",
        "own.hot.critical",
        "critical",
        "high",
        "open",
    ]
    assert {each["pod"]: each["tier"] for each in document["assignments"]} == {
        "shop/db": "critical",
        "shop/api": "high",
        "shop/batch": "background",
    }
    assert document["machine"]["cores"] == 8


def test_the_engines_output_is_what_the_engine_is_given(run):
    layers = json.loads(run(plan_command, output="engine").stdout)

    assert layers[1]["kind"]["Confined"]["cpus_range"] == [4, 4]
    assert layers[-1]["matches"] == [[]]


def test_the_table_shows_layers_pods_and_notes(run):
    text = run(plan_command).stdout

    for part in ("8 cores, 16 CPUs", "own.hot.critical", "Confined", "shop/batch", "background"):
        assert part in text


def test_pods_can_come_from_standard_input(run, tmp_path):
    given = (tmp_path / "pods.json").read_text()

    result = run(plan_command, pods="-", output="json", given=given)

    assert len(json.loads(result.stdout)["assignments"]) == 3


def test_the_order_of_the_list_changes_no_byte(run, tmp_path):
    document = json.loads((tmp_path / "pods.json").read_text())
    random.Random(1).shuffle(document["items"])
    (tmp_path / "shuffled.json").write_text(json.dumps(document))

    shuffled = run(plan_command, pods=str(tmp_path / "shuffled.json"), output="engine")

    assert shuffled.stdout == run(plan_command, output="engine").stdout


def test_notes_are_no_error(run, tmp_path):
    (tmp_path / "small.json").write_text('{"cores": 1}')

    result = run(plan_command, machine=str(tmp_path / "small.json"))

    assert result.exit_code == 0
    assert "small_machine" in result.stdout


def test_settings_change_the_plan(run, tmp_path):
    (tmp_path / "other.toml").write_text("[priority_mapping]\ncritical = 2000000\n")

    result = run(plan_command, settings=str(tmp_path / "other.toml"), output="json")

    tiers = {each["pod"]: each["tier"] for each in json.loads(result.stdout)["assignments"]}
    assert tiers["shop/db"] == "high"


def test_a_profile_that_does_not_load_is_told_and_costs_nothing_else(run, tmp_path):
    (tmp_path / "profiles" / "bad.toml").write_text("id = 7\n")

    result = run(plan_command, output="json")

    assert result.exit_code == 0
    assert "bad.toml" in result.stderr
    assert "own.hot.critical" in result.stdout


@pytest.mark.parametrize(
    ("option", "text", "told"),
    [
        ("pods", "{", "is not JSON"),
        ("pods", '{"kind": "PodList", "items": [{"kind": "Pod"}]}', "metadata"),
        ("machine", '{"cores": 0}', "cores"),
        ("settings", "[plan]\nreserve_cores = 0\n", "reserve_cores"),
        ("settings", "[plan]\nreserve = 1\n", "unknown key 'reserve'"),
    ],
)
def test_a_file_that_does_not_fit_is_named_with_what_is_wrong(run, tmp_path, option, text, told):
    path = tmp_path / f"wrong-{option}"
    path.write_text(text)

    with pytest.raises(DocumentError) as caught:
        run(plan_command, **{option: str(path)})

    assert str(path) in str(caught.value)
    assert told in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("option", ["pods", "machine", "settings", "profiles"])
def test_a_file_that_is_not_there_is_named(run, tmp_path, option):
    with pytest.raises(DocumentError, match="absent"):
        run(plan_command, **{option: str(tmp_path / "absent")})


def test_standard_input_that_is_not_text_is_told(run):
    with pytest.raises(DocumentError, match="is not UTF-8 text"):
        run(plan_command, pods="-", given=b"\xff\xfe")


def test_a_pod_is_explained_from_files(run):
    text = run(explain_command, "db").stdout

    for part in ("priority 1000000 >= critical threshold 1000000", "own.hot.critical", "1500m"):
        assert part in text


def test_an_explanation_is_a_document(run):
    document = json.loads(run(explain_command, "shop/api", output="json").stdout)

    assert document["pod"] == "shop/api"
    assert [place["layer"] for place in document["places"]] == ["high"]


def test_an_unknown_pod_is_the_users_mistake(run):
    with pytest.raises(InputError, match="similar: shop/api"):
        run(explain_command, "shop/apl")


def test_without_pods_the_agent_is_asked_and_its_absence_told(run, tmp_path):
    (tmp_path / "silent.toml").write_text(f'[server]\nlisten = ""\nsocket = "{tmp_path}/none"\n')
    options = {"pods": None, "machine": None, "profiles": None}

    with pytest.raises(TemperError, match="no agent answers") as caught:
        run(explain_command, "db", settings=str(tmp_path / "silent.toml"), **options)

    assert caught.value.exit_code == 3


def test_files_for_a_plan_without_pods_are_refused(run):
    result = run(explain_command, "db", pods=None)

    assert result.exit_code == 2
    assert "need --pods" in result.stderr


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_with_a_machine_file_nothing_of_linux_is_needed(files, platform):
    hidden = ["fcntl", "resource", "pwd", "grp", "termios"] if platform == "darwin" else []
    program = (
        "import sys\n"
        f"sys.platform = {platform!r}\n"
        f"for name in {hidden!r}: sys.modules[name] = None\n"
        "from temper_core.cli.plan import command\n"
        "command(sys.argv[1:] + ['--output', 'engine'])\n"
    )
    line = [part for option in files.items() for part in option]

    done = subprocess.run(
        [sys.executable, "-c", program, *line], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)[0]["name"] == "system"
