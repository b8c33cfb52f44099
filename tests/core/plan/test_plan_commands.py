import json
import random
import shlex
import subprocess
import sys

import pytest
import yaml
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


def test_a_closed_standard_input_is_one_line(files):
    options = {**files, "--pods": "-"}
    line = shlex.join(part for option in options.items() for part in option)
    program = "from temper_core.cli.main import main; main()"

    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -c '{program}' plan {line} <&-"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr == "temper: -: standard input is closed\n"


@pytest.fixture
def cluster(tmp_path):
    """Write a PodList of three nodes, JSON or YAML, and return its path."""

    def write(as_yaml=False):
        pods = [a_pod("db", 1_000_000, cpu="1"), a_pod("api"), a_pod("web"), a_pod("new")]
        for pod, node in zip(pods, ("n1", "n2", "n3.example"), strict=False):
            pod["spec"]["nodeName"] = node
        pods[1]["metadata"]["annotations"]["applied"] = '{"spec": {"nodeName": "n4"}}'
        pods[3]["status"]["phase"] = "Pending"
        document = {"kind": "PodList", "items": pods}
        path = tmp_path / "cluster"
        path.write_text(yaml.safe_dump(document) if as_yaml else json.dumps(document))
        return str(path)

    return write


def planned(result):
    return {each["pod"] for each in json.loads(result.stdout)["assignments"]}


@pytest.mark.parametrize("as_yaml", [False, True])
def test_pods_of_several_nodes_are_planned_with_one_warning(run, cluster, as_yaml):
    path = cluster(as_yaml)

    plan = run(plan_command, pods=path, output="json")
    explanation = run(explain_command, "db", pods=path, output="json")

    assert plan.stderr == explanation.stderr
    assert plan.stderr == (
        f"temper: {path}: has pods of 3 nodes (n1, n2, n3.example), planned as if on one; "
        "choose one with --node NAME\n"
    )
    assert plan.exit_code == explanation.exit_code == 0
    assert len(planned(plan)) == 4


def test_one_node_is_planned_without_a_warning(run, cluster):
    plan = run(plan_command, pods=cluster(), node="n1", output="json")

    assert planned(plan) == {"shop/db"}
    assert plan.stderr == ""


def test_without_an_option_the_node_is_the_settings_own(run, cluster, tmp_path):
    (tmp_path / "node.toml").write_text('node = "n2"\n')
    own = {"pods": cluster(), "settings": str(tmp_path / "node.toml"), "output": "json"}

    assert planned(run(plan_command, **own)) == {"shop/api"}
    assert planned(run(plan_command, **own, node="n3.example")) == {"shop/web"}


def test_a_node_without_a_pod_is_told_with_those_that_there_are(run, cluster):
    plan = run(plan_command, pods=cluster(), node="n9", output="json")

    assert planned(plan) == set()
    assert "no pod is on node 'n9'; there are n1, n2, n3.example" in plan.stderr


def test_a_mistyped_node_gets_the_one_that_was_meant(run, cluster):
    plan = run(plan_command, pods=cluster(), node="n3.exmaple", output="json")

    assert plan.stderr.endswith("; did you mean 'n3.example'?\n")


def test_a_list_that_names_one_node_needs_no_choice(run):
    assert run(plan_command).stderr == ""


def test_one_pod_is_told_in_the_singular(run, tmp_path):
    (tmp_path / "one.json").write_text(json.dumps(a_pod("db")))
    (tmp_path / "small.json").write_text('{"cores": 1}')

    text = run(
        plan_command, pods=str(tmp_path / "one.json"), machine=str(tmp_path / "small.json")
    ).stdout

    assert text.startswith("1 pod on 1 core, 1 CPU, ")


@pytest.mark.parametrize("option", [{"node": "n1"}, {"profiles": "."}])
def test_the_agent_is_asked_without_what_only_files_need(run, option):
    options = {"pods": None, "machine": None, "profiles": None, **option}

    result = run(explain_command, "db", **options)

    assert result.exit_code == 2
    assert "need --pods" in result.stderr


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


def test_a_pod_is_explained_from_files_as_it_would_be_steered(run):
    static = json.loads(run(explain_command, "db", output="json").stdout)
    steered = json.loads(run(explain_command, "db", "--steered", output="json").stdout)

    assert [place["hint"] for place in static["places"]] == [None] * len(static["places"])
    assert all(place["hint"] for place in steered["places"])
    assert [place["layer"] for place in static["places"]] == [
        place["layer"] for place in steered["places"]
    ]


def test_the_agent_cannot_be_asked_to_explain_as_if_it_steered(run):
    result = run(explain_command, "db", "--steered", pods=None)

    assert result.exit_code == 2
    assert "--steered needs --pods" in result.stderr


def test_a_directory_of_profiles_that_cannot_be_looked_for_is_one_line(run, tmp_path):
    unspeakable = str(tmp_path / ("x" * 300))

    with pytest.raises(DocumentError, match=r"x: File name too long$"):
        run(plan_command, profiles=unspeakable)


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
