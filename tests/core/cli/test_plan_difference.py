"""``temper plan --diff``, against files and against an agent that answers on its socket."""

import json

import pytest
from click.testing import CliRunner

from temper_core.cli.plan import command
from temper_core.decide.decider import Decider
from temper_core.errors import DocumentError, MachineError, TemperError
from temper_core.node.podlist import read_pods
from temper_core.plan import ProfileCatalogue
from temper_core.records.plans import Generation
from temper_core.records.snapshots import Mode, Status
from temper_core.settings import Settings
from temper_core.testing import make_machine

CRITICAL, HIGH = 1_000_000, 100_000
BEFORE = {"db": (CRITICAL, "1500m"), "api": (HIGH, "500m"), "batch": (None, None)}


def podlist(pods):
    def item(name, priority, cpu):
        resources = {"requests": {"cpu": cpu}} if cpu else {}
        container = {"name": "c", "image": "web:1", "resources": resources}
        return {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
            "spec": {"priority": priority, "containers": [container]},
            "status": {"phase": "Running"},
        }

    items = [item(name, *given) for name, given in pods.items()]
    return json.dumps({"kind": "PodList", "items": items})


@pytest.fixture
def planned(node):
    """Plan for some pods on 8 cores of 2 CPUs; raise what the command raises."""

    def run(pods, *arguments, cores=8):
        (node.folder / "pods.json").write_text(podlist(pods))
        machine = {"cores": cores, "threads_per_core": 2}
        (node.folder / "machine.json").write_text(json.dumps(machine))
        files = {
            "--pods": node.folder / "pods.json",
            "--machine": node.folder / "machine.json",
            "--settings": node.settings_path,
        }
        line = [str(part) for option in files.items() for part in option]
        result = CliRunner().invoke(command, [*arguments, *line])
        if isinstance(result.exception, TemperError):
            raise result.exception
        return result

    return run


@pytest.fixture
def written(planned, node):
    """Write the plan of some pods to a file, as somebody would who compares with it later."""

    def write(pods, *arguments):
        path = node.folder / "in-force.json"
        path.write_text(planned(pods, "--output", "json", *arguments).stdout)
        return str(path)

    return write


@pytest.fixture
def differing(planned, written):
    """Compare the plan of *pods* with that of the pods before; return exit code and document."""

    def differ(pods, *, kind="--steered", **given):
        against = written(BEFORE, *([kind] if kind else []))
        result = planned(pods, "--diff", "--against", against, "--output", "json", **given)
        return result.exit_code, json.loads(result.stdout)

    return differ


@pytest.fixture
def in_force(view, host):
    """Let the agent have a steered plan for some pods in force."""

    def put(pods):
        decider = Decider(Settings(), make_machine(8, 2), host, ProfileCatalogue(()))
        plan = decider.decide(read_pods(podlist(pods), source="test"), steered=True).wanted
        view.in_force = Generation(7, plan, "[]")

    return put


def test_the_same_pods_change_nothing(differing):
    code, document = differing(BEFORE)

    assert (code, document["change"], document["moves"]) == (0, "none", [])


def test_pods_that_fit_the_layers_in_force_need_hints(differing):
    code, document = differing({**BEFORE, "api": (CRITICAL, "400m"), "new": (None, None)})

    assert (code, document["change"], document["reasons"]) == (0, "hints", [])
    assert document["moves"] == [
        {"pod": "shop/api", "before": ["high"], "at_once": ["critical"], "after": ["critical"]},
        {"pod": "shop/new", "before": [], "at_once": ["open"], "after": ["open"]},
    ]


def test_what_is_not_urgent_is_told_before_it_takes_an_engine(differing):
    code, document = differing({**BEFORE, "db": (CRITICAL, "3500m")})

    assert (code, document["change"]) == (0, "hints")
    assert [(each["code"], each["urgent"]) for each in document["reasons"]] == [("drift", False)]


def test_a_demotion_that_can_be_undone_says_how_soon(planned, written):
    db = {"db": (CRITICAL, "3")}
    against = written({**db, "guest": (CRITICAL, "12")}, "--steered")

    text = planned(db, "--diff", "--against", against).stdout

    assert "recovery critical if it lasts 60 s" in " ".join(text.split())
    assert "reason layer needs an engine why" in " ".join(text.split())


def test_pods_that_outgrow_their_layer_need_an_engine(differing):
    code, document = differing({**BEFORE, "db": (CRITICAL, "9")})

    assert (code, document["change"]) == (1, "warm_swap")
    assert document["reasons"] == [
        {
            "code": "growth",
            "layer": "critical",
            "urgent": True,
            "message": "owns 2 to 4 CPUs, is to own 10 CPUs",
        }
    ]


def test_without_warm_swaps_it_is_a_cold_restart(differing, node):
    with node.settings_path.open("a") as file:
        file.write("[scheduler]\nwarm_swap = false\n")

    _, document = differing({**BEFORE, "db": (CRITICAL, "9")})

    assert document["change"] == "cold_restart"


def test_a_static_plan_is_compared_with_a_static_one(differing):
    same_code, same = differing(BEFORE, kind="")
    code, document = differing({**BEFORE, "new": (HIGH, "100m")}, kind="")

    assert (same_code, same["change"]) == (0, "none")
    assert (code, document["change"], document["steered"]) == (1, "warm_swap", False)
    assert document["moves"] == [
        {"pod": "shop/new", "before": [], "at_once": ["open"], "after": ["high"]}
    ]


def test_settings_that_forbid_hints_take_an_engine(differing, node):
    with node.settings_path.open("a") as file:
        file.write('[scheduler]\nsteering = "static"\n')

    code, document = differing(BEFORE)

    assert code == 1
    assert [(each["code"], each["urgent"]) for each in document["reasons"]] == [("steering", True)]


def test_another_machine_is_the_only_reason(differing):
    code, document = differing(BEFORE, cores=4)

    assert code == 1
    assert [each["code"] for each in document["reasons"]] == ["machine"]
    assert document["reasons"][0]["message"] == "planned for 4 cores, in force for 8"


def test_people_read_the_way_the_reasons_and_the_moves(planned, written):
    pods = {**BEFORE, "db": (CRITICAL, "9"), "api": (None, None)}

    text = planned(pods, "--diff", "--against", written(BEFORE, "--steered")).stdout

    told = " ".join(text.split())
    for part in (
        "change warm_swap: the next engine loads while the one in force schedules",
        "in-force.json does not have it; [scheduler] warm_swap is set",
        "growth critical now owns 2 to 4 CPUs",
        "1 pod in other layers than before, 2 stay",
        "shop/api high open open",
    ):
        assert part in told


def test_keys_that_a_later_version_adds_are_passed_over(planned, written, node):
    document = json.loads((node.folder / written(BEFORE, "--steered")).read_text())
    document["news"] = document["layers"][0]["news"] = document["machine"]["news"] = {"a": 1}
    (node.folder / "later.json").write_text(json.dumps(document))

    result = planned(BEFORE, "--diff", "--against", str(node.folder / "later.json"))

    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document.update(schema_version=2), "schema_version"),
        (lambda document: document.update(layers=[]), "layers"),
        (lambda document: document.update(layers=7), "layers: must be a list"),
        (lambda document: document["layers"][0].update(kind="Odd"), "layers[0].kind"),
        (lambda document: document["layers"][0].pop("slice_us"), "layers[0].slice_us: is required"),
        (lambda document: document["layers"][0].update(matches=[[3]]), "matches[0][0]"),
        (lambda document: document["machine"].update(cores=10**9), "machine.cores"),
    ],
)
def test_a_file_that_is_no_plan_is_told_by_its_place(planned, written, node, change, told):
    path = written(BEFORE)
    document = json.loads((node.folder / path).read_text())
    change(document)
    (node.folder / path).write_text(json.dumps(document))

    with pytest.raises(DocumentError) as caught:
        planned(BEFORE, "--diff", "--against", path)

    assert told in str(caught.value)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--against", "x"), "--against is for --diff"),
        (("--diff", "--output", "engine"), "--diff has no output engine"),
    ],
)
def test_options_that_do_not_go_together_are_told(planned, arguments, told):
    result = planned(BEFORE, *arguments)

    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.usefixtures("agent")
def test_the_running_agent_is_asked_for_the_plan_in_force(planned, in_force):
    in_force(BEFORE)

    same = planned(BEFORE, "--diff")
    other = planned({**BEFORE, "db": (CRITICAL, "9")}, "--diff", "--output", "json")

    assert same.exit_code == 0
    assert same.stdout.startswith("against  the agent, generation 7\nchange   none")
    assert other.exit_code == 1
    assert json.loads(other.stdout)["change"] == "warm_swap"


@pytest.mark.usefixtures("agent")
def test_an_agent_that_cannot_swap_says_why(planned, in_force, view):
    in_force(BEFORE)
    view.no_swap = "too little memory"

    result = planned({**BEFORE, "db": (CRITICAL, "9")}, "--diff")

    assert "change   cold_restart" in result.stdout
    assert "the agent cannot: too little memory" in result.stdout


@pytest.mark.usefixtures("agent")
def test_where_no_plan_is_in_force_an_engine_starts(planned, view):
    view.in_force = None
    view.state = Status(Mode.SAFE_MODE, "requested", "by alice")

    result = planned(BEFORE, "--diff")

    assert result.exit_code == 1
    assert "change   start" in result.stdout
    assert "no plan is in force (safe_mode requested by alice)" in result.stdout


@pytest.mark.usefixtures("agent")
def test_an_answer_that_is_no_plan_is_the_agents_fault(planned, view):
    view.plan_document = lambda: {"layers": 7}

    with pytest.raises(MachineError, match="is not a plan"):
        planned(BEFORE, "--diff")


def test_without_an_agent_that_is_told(planned):
    with pytest.raises(MachineError, match="no agent answers") as caught:
        planned(BEFORE, "--diff")

    assert caught.value.exit_code == 3


def test_a_steered_configuration_is_shown_as_the_engine_gets_it(planned):
    layers = json.loads(planned(BEFORE, "--steered", "--output", "engine").stdout)

    assert [layer["name"] for layer in layers][-2:] == ["open", "unmatched"]
    assert layers[0]["matches"] == [[{"HintEquals": 3}]]
