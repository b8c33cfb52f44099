"""Hostile text through every command: none of it controls the operator's terminal."""

import fcntl
import json
import os
import re
import struct
import termios
from contextlib import suppress

import click
import pytest

from temper_core.cli.main import temper
from temper_plugin_rightsizer.applying.record import KEY as RECORD
from tests.hostile_text.forks import Forks
from tests.hostile_text.hostile import TEXTS, Poison, has_arrived, leaks
from tests.hostile_text.inputs import HostileAgent, a_demand, a_power_profile, write_files
from tests.kube_client.made_server import MadeServer, agent, in_pages, node
from tests.podlists import make_podlist

ARGUMENT = "".join(TEXTS.values()).replace("\ud800", "")
"""Every text as an argument of a command, which an error quotes."""
SETTINGS = ("--settings", "agent.toml")
PODS = ("--pods", "pods.json", "--profiles", "profiles")

COMMANDS = {
    "diff": [("a.json", "b.json")],
    "doctor": [SETTINGS],
    "engine check": [("layers.json",), ("bad-pods.json",)],
    "events": [SETTINGS, (*SETTINGS, "--kind", ARGUMENT)],
    "explain": [
        ("shop/web", *SETTINGS),
        ("NAME", *PODS),
        (ARGUMENT, *PODS),
        ("x", "--pods", "bad-pods.json"),
    ],
    "k8s doctor": [("--no-kubelets",)],
    "k8s power explain": [(ARGUMENT,)],
    "k8s power profiles": [()],
    "k8s power recommend": [()],
    "k8s power status": [()],
    "k8s resize": [
        ("report.json", "--low-confidence"),
        ("report.json", "--in-place", "--low-confidence"),
        ("--undo",),
        ("--undo", "--in", ARGUMENT),
        (ARGUMENT,),
    ],
    "k8s restore": [("odd", "--timeout", "1"), (ARGUMENT,)],
    "k8s rightsize": [
        (),
        ("--output", "csv"),
        ("--output", "json"),
        ("--output", "markdown"),
        ("--output", "html"),
        ("--output", "patch"),
        ("--output", "pr"),
        ("--output", "profile"),
        ("--output", "values"),
        (ARGUMENT,),
        ("-n", ARGUMENT),
    ],
    "k8s status": [()],
    "k8s trace": [(ARGUMENT,)],
    "k8s trace-compare": [(ARGUMENT, "shop/web")],
    "k8s train": [
        (
            *(ARGUMENT, "--benchmark", ARGUMENT, "--metric", ARGUMENT),
            *("--profile", "profiles/odd.toml"),
        ),
    ],
    "lint": [SETTINGS, ("--from", "b.json"), (*SETTINGS, "--explain", ARGUMENT)],
    "machine": [("--sys-root", ARGUMENT)],
    "map": [SETTINGS],
    "observe": [SETTINGS, (*SETTINGS, "--output", "yaml")],
    "overcommit preview": [("-f", "pods.json"), ("-f", "bad-pods.json")],
    "overcommit report": [()],
    "placement score": [("pod.json",), (ARGUMENT,)],
    "plan": [
        PODS,
        (*PODS, "--steered"),
        (*PODS, "--diff", *SETTINGS),
        (*PODS, "--diff", "--against", "a.json"),
        (*PODS, "--output", "json"),
        (*PODS, "--output", "engine"),
        ("--pods", "bad-pods.json"),
        (*PODS, "--node", ARGUMENT),
    ],
    "plugins list": [SETTINGS, (*SETTINGS, "--agent"), ("--settings", "bad-agent.toml")],
    "plugins new": [(ARGUMENT,), ("watch", "--directory", ARGUMENT)],
    "power classify": [
        ("--cases", "cases.json"),
        ("--cases", "cases.json", "--output", "table"),
        ("--cases", "bad-cases.json"),
        ("--pods", "pods.json"),
        ("--pods", "pods.json", "--metrics", "pod-metrics.json", "--output", "table"),
        ("--pods", "bad-pods.json"),
        ("--pods", "pods.json", "--metrics", "bad-cases.json"),
        ("--cases", ARGUMENT),
    ],
    "power dialect": [("--prometheus", "http://127.0.0.1:0", "--pods", ARGUMENT)],
    "power explain": [
        ("shop/odd", "--objects", "twins.json"),
        ("shop/odd", "--objects", "twins.json", "--output", "json"),
        (ARGUMENT, "--objects", "twins.json"),
    ],
    "power profiles": [
        (),
        ("--objects", "twins.json"),
        ("--objects", "twins.json", "--output", "json"),
        ("--objects", ARGUMENT),
    ],
    "power recommend": [("--objects", "twins.json"), (), (ARGUMENT,)],
    "power score": [
        ("pod.json", "--objects", "twins.json"),
        ("pod.json", "--objects", "twins.json", "--output", "json"),
        (ARGUMENT, "--objects", "twins.json"),
    ],
    "power status": [
        (),
        ("--objects", "twins.json"),
        ("--objects", "twins.json", "--output", "json"),
        ("--objects", ARGUMENT),
    ],
    "profiles check": [("profiles/odd.toml",), ("bad-profiles/odd.toml",)],
    "profiles explain": [("NAME", *PODS), (ARGUMENT, *PODS)],
    "profiles lint": [("profiles/odd.toml",), ("bad-profiles/odd.toml",)],
    "profiles list": [("--profiles", "profiles"), ("--profiles", "bad-profiles")],
    "profiles record": [("--pod", ARGUMENT, *SETTINGS)],
    "profiles show": [("odd", "--profiles", "profiles"), (ARGUMENT,)],
    "profiles test": [("profiles/odd.toml", "--threads", "threads.json")],
    "restore": [("--dry-run", "--settings", "bad-agent.toml")],
    "rightsize backfill": [
        ("--prometheus", "http://127.0.0.1:1", "--namespace", ARGUMENT, *SETTINGS),
    ],
    "rightsize backtest": [("samples.jsonl",), ("bad-samples.jsonl",), (ARGUMENT,)],
    "rightsize show": [
        SETTINGS,
        (*SETTINGS, "--output", "csv"),
        (*SETTINGS, "--output", "json"),
        (*SETTINGS, "--output", "markdown"),
        (*SETTINGS, "--output", "html"),
        (*SETTINGS, "--output", "patch"),
        (*SETTINGS, "--output", "pr"),
        (*SETTINGS, "--output", "profile"),
        (*SETTINGS, "--output", "values"),
        (ARGUMENT, *SETTINGS),
    ],
    "run": [("--tier", "low", "--", ARGUMENT), ("--tier", ARGUMENT, "--", "true")],
    "safe-mode": [("status", *SETTINGS), ("on", *SETTINGS, "--reason", ARGUMENT)],
    "settings": [SETTINGS, ("--settings", "bad-agent.toml")],
    "simulate": [("recording",), ("live-recording",), ("live-recording", "--save", "plot.svg")],
    "top": [
        (*SETTINGS, "--once"),
        (*SETTINGS, "--iterations", "2", "--interval", "0.2"),
        (*SETTINGS, "--iterations", "1", "--no-mouse"),
    ],
    "trace analyze": [("trace.txt",), ("trace.txt", "--output", "html"), (ARGUMENT,)],
    "trace compare": [("trace.txt", "trace.txt")],
    "trace capture": [SETTINGS, (*SETTINGS, "--cpus", ARGUMENT)],
    "trace delete": [(ARGUMENT, *SETTINGS)],
    "trace fetch": [(ARGUMENT, *SETTINGS)],
    "trace flight-recorder dump": [SETTINGS],
    "trace flight-recorder start": [SETTINGS, (*SETTINGS, "--cpus", ARGUMENT)],
    "trace flight-recorder status": [SETTINGS],
    "trace list": [SETTINGS],
    "train analyze": [
        ("bundle.gz",),
        ("bundle.gz", "--output", "json"),
        ("bundle.gz", "--trace", "unmade.pftrace"),
        (ARGUMENT,),
    ],
    "train auto": [
        ("--pod", ARGUMENT, "--benchmark", ARGUMENT, "--metric", ARGUMENT, *SETTINGS),
    ],
    "train observe": [
        ("--pod", ARGUMENT, "-o", "unmade-bundle.gz", *SETTINGS),
        ("--command", ARGUMENT, "-o", "unmade-bundle.gz", *SETTINGS),
    ],
    "train results": [SETTINGS, (*SETTINGS, "--output", "json")],
    "train run": [
        (
            *("--pod", ARGUMENT, "--benchmark", ARGUMENT, "--metric", ARGUMENT),
            *("--profile", "profiles/odd.toml", *SETTINGS),
        ),
    ],
    "train synthesize": [("bundle.gz",), (ARGUMENT,), ("bundle.gz", "--cpu-request", ARGUMENT)],
    "wakes": [(*SETTINGS, "--seconds", "5"), (*SETTINGS, "--seconds", "5", "--thread", "e")],
}
"""Arguments of each command that shows data. NAME stands for a pod of the list."""

SHOW_NO_DATA = {
    "agent": "its log is tested in test_streams.py",
    "completion": "prints a constant script",
    "dashboard serve": "logs as the agent does",
    "overcommit authority": "prints an authority that it makes",
    "overcommit serve": "logs as the agent does",
    "placement serve": "logs as the agent does",
    "power crds": "prints constant definitions",
    "power extender": "logs as the agent does",
    "power operator": "logs as the agent does",
    "power simulate": "shows numbers of its own",
    "profiles schema": "prints a constant schema",
    "trace flight-recorder stop": "prints a constant line",
    "train relay": "speaks JSON with kubectl temper train alone",
}

OWN_PROGRESS = re.compile(r"\r(asked [0-9]+ of [0-9]+ agents|[0-9]+ containers)")
"""Lines that Temper draws over its own."""

SILENT = {
    "engine check 1", "k8s doctor 0", "k8s restore 0", "overcommit report 0", "placement score 0",
    "plan 2", "plan 3", "plan 5", "plan 7", "plugins list 0", "power classify 5", "power dialect 0",
    "profiles check 0", "profiles explain 0", "profiles test 0", "safe-mode 1", "settings 0",
    "simulate 0",
}  # fmt: skip
"""Calls that show none of the text that they read."""

CASES = [
    pytest.param(command, arguments, id=f"{command} {number}")
    for command, calls in COMMANDS.items()
    for number, arguments in enumerate(calls)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory, forks):
    """A folder with an agent, a cluster and files, all of hostile text."""
    folder = tmp_path_factory.mktemp("hostile")
    write_files(folder)
    cluster = a_cluster(folder)
    serving = HostileAgent(folder / "agent.sock")
    record(forks, folder)
    yield folder
    serving.shutdown()
    serving.server_close()
    cluster.close()


def a_cluster(folder):
    """Serve nodes and pods of hostile text, and write the kubeconfig that leads there."""
    server, poison = MadeServer(), Poison(("kind", "apiVersion", "resourceVersion", "continue"))
    sneaky = {key: poison.text() for key in ("agent_message", "restore_left", "restored")}
    odd = node("odd", agent_status=f"safe_mode:{poison.text()}", **sneaky)
    odd["metadata"]["labels"] = {poison.text("k"): poison.text("v")}
    server.answers["/api/v1/nodes"] = in_pages([odd, node(poison.text("n"), agent_status="x")])
    pods = [agent("odd"), *poison.document(make_podlist(5)["items"])]
    server.answers["/api/v1/pods"] = in_pages(pods)
    server.answers["/api/v1/namespaces/temper/pods"] = in_pages(pods)
    asked = "/api/v1/namespaces/temper/pods/temper-agent-odd:9100/proxy/rightsize"
    server.answers[asked] = a_demand()
    replicaset = {"metadata": {"name": poison.text("r"), "namespace": "shop"}}
    for path in ("/apis/apps/v1/replicasets", "/apis/batch/v1/jobs"):
        server.answers[path] = in_pages([replicaset])
    space = {"metadata": {"name": poison.text("n"), "labels": {poison.text("k"): "v"}}}
    server.answers["/api/v1/namespaces"] = in_pages([space])
    deployment = {"metadata": {"name": poison.text("d"), "annotations": {RECORD: poison.text()}}}
    server.answers["/apis/apps/v1/deployments"] = in_pages([deployment])
    group = "/apis/joulie.io/v1alpha1"
    server.answers[f"{group}/workloadprofiles"] = in_pages([a_power_profile(poison)])
    twin = {"metadata": {"name": poison.text("n")}, "status": {"schedulableClass": poison.text()}}
    server.answers[f"{group}/nodetwins"] = in_pages([twin])
    server.answers["/api/v1/nodes/odd"] = 403, {"kind": "Status", "message": poison.text("no")}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    (folder / "kubeconfig").write_text(json.dumps(config))
    return server


def record(forks, folder):
    """Record this machine, and give its threads, pods and layers hostile names."""
    (folder / "plain.toml").write_text(f'[server]\nlisten = ""\nsocket = "{folder}/none"\n')
    ran(forks, folder, "observe", "--record", "plain", "--looks", "2", "--settings", "plain.toml")
    poison = Poison(most=1)
    with (folder / "live-recording").open("w") as file:
        for line in (folder / "plain").read_text().splitlines():
            file.write(json.dumps(with_hostile_names(json.loads(line), poison)) + "\n")


def with_hostile_names(value, poison):
    if isinstance(value, list):
        return [with_hostile_names(inner, poison) for inner in value]
    if not isinstance(value, dict):
        return value
    named = {"comm", "reason", "message", "node", "description"}
    return {
        key: poison.text(inner)
        if key in named and isinstance(inner, str)
        else with_hostile_names(inner, poison)
        for key, inner in value.items()
    }


def environment(folder):
    return {**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), "TERM": "xterm-256color"}


@pytest.fixture(scope="module")
def forks():
    forks = Forks()
    yield forks
    forks.close()


def ran(forks, folder, *arguments):
    """Run a command on a pipe. Return its exit code, and what it wrote there."""
    leader, follower = os.pipe()
    forks.start(arguments, folder, environment(folder), follower)
    os.close(follower)
    written = all_of(leader)
    return forks.wait(), written


def on_a_terminal(forks, folder, *arguments):
    """Run a command on a terminal of its own. Return what it wrote there."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 200, 0, 0))
    coloured = {key: value for key, value in environment(folder).items() if key != "NO_COLOR"}
    forks.start(arguments, folder, coloured, follower)
    os.close(follower)
    written = all_of(leader)
    assert forks.wait() in (0, 1, 2, 3)
    return written


def all_of(leader):
    written = b""
    with suppress(OSError):  # the terminal has closed
        while part := os.read(leader, 65_536):
            written += part
    os.close(leader)
    return written.decode()


def of(folder, arguments):
    pods = json.loads((folder / "pods.json").read_text())["items"]
    metadata = pods[0]["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    return [argument.replace("NAME", name) for argument in arguments]


@pytest.mark.parametrize(("command", "arguments"), CASES)
def test_no_text_from_outside_controls_what_reads_a_pipe(
    command, arguments, folder, forks, request
):
    code, output = ran(forks, folder, *command.split(), *of(folder, arguments))

    assert code in (0, 1, 2, 3), output
    assert "Traceback" not in output
    assert leaks(output) == []
    assert has_arrived(output) or request.node.callspec.id in SILENT, output


@pytest.mark.parametrize(("command", "arguments"), CASES)
def test_no_text_from_outside_controls_the_terminal(command, arguments, folder, forks):
    output = on_a_terminal(forks, folder, *command.split(), *of(folder, arguments))

    assert output
    shown = OWN_PROGRESS.sub(r"\1", output.replace("\r\n", "\n"))
    assert leaks(shown, is_screen=command == "top") == []


def test_every_command_is_in_one_of_the_tables():
    """A new command belongs in ``COMMANDS``, or in ``SHOW_NO_DATA`` with the reason."""
    named = {*COMMANDS, *SHOW_NO_DATA}

    assert {" ".join(path) for path in leaves(temper)} == named
    assert not set(COMMANDS) & set(SHOW_NO_DATA)


def leaves(group, path=(), parent=None):
    context = click.Context(group, info_name=path[-1] if path else "temper", parent=parent)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name), context)
        else:
            yield *path, name
