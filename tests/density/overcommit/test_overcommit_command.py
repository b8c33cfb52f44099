import json
import subprocess
import sys
from base64 import b64decode
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest
import yaml
from attrs import frozen
from click.testing import CliRunner

import temper_plugin_density
from temper_core import TemperError
from temper_core.testing import assert_keeps_contract
from temper_plugin_density.overcommit.certificates import begun
from temper_plugin_density.overcommit.command import overcommit
from temper_plugin_density.overcommit.material import read_authority
from temper_plugin_density.overcommit.reporting import (
    ClusterView,
    freed_millis,
    obstacles_of,
    stand,
)
from tests.control_plane.cluster import wait_until
from tests.density.overcommit.objects import ORIGINALS, container, decided, patched, pod
from tests.density.overcommit.shop import free_port

DAY = timedelta(days=1)
TEMPER = str(Path(sys.executable).with_name("temper"))


@frozen
class Said:
    """What a command said, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def ask(*words, text=None):
    """Run the command in this process, and end as ``temper`` does."""
    result = CliRunner().invoke(overcommit, words, input=text)
    if isinstance(result.exception, TemperError):
        told = "".join(f"temper: {line}\n" for line in str(result.exception).splitlines())
        return Said(result.exception.exit_code, result.stdout, told)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return Said(result.exit_code, result.stdout, result.stderr)


def preview(*documents, options=()):
    """Return what the preview says of documents on its standard input, as JSON."""
    said = ask(
        "preview", "-f", "-", "--output", "json", *options, text=yaml.safe_dump_all(documents)
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)


def test_the_command_is_one_of_tempers():
    said = subprocess.run([TEMPER, "overcommit"], check=False, capture_output=True, text=True)

    assert "preview" in said.stdout + said.stderr


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_density, "density")


def test_a_pod_is_previewed_as_it_would_be_admitted():
    document = pod(container(cpu="1"), container("side", cpu="10m"))

    (said,) = preview(document)

    assert said["patch"] == json.loads(json.dumps(decided(document).patch))
    assert said["containers"] == [
        {"name": "app", "original": "1", "before": "1", "after": "700m"},
        {"name": "side", "original": "10m", "before": "10m", "after": "10m"},
    ]
    assert said["freed_millis"] == 300


def test_the_table_says_why_of_every_container():
    document = pod(container(cpu="1"), container("side", cpu="10m"))
    critical = pod(priorityClassName="temper-critical")

    said = ask("preview", "-f", "-", text=yaml.safe_dump_all([document, critical]))

    assert [line.split(maxsplit=5) for line in said.stdout.splitlines()] == [
        ["pod", "container", "before", "after", "why"],
        ["Pod", "default/web-", "app", "1", "700m", WHY],
        ["side", "10m", "10m", "not", "above", "10m"],
        ["Pod", "default/web-", "app", "1", "1", WHY_CRITICAL],
    ]


WHY = "1 of 2 CPU requests lowered to 0.7: 300m freed"
WHY_CRITICAL = (
    "its tier is critical: priority 1000000 (temper-critical) >= critical threshold 1000000"
)


def test_a_name_that_is_no_text_or_steers_the_terminal_is_shown_without_that():
    document = pod(container("\ud800\x1b[2J", cpu="1"))

    said = ask("preview", "-f", "-", text=json.dumps(document))

    assert said.returncode == 0
    assert "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[2J" in said.stdout


def test_what_makes_pods_is_previewed_by_its_template():
    template = {"spec": pod()["spec"]}
    named = {"name": "web", "namespace": "shop"}
    deployment = {"kind": "Deployment", "metadata": named, "spec": {"template": template}}
    job = {"spec": {"template": template}}
    cron = {"kind": "CronJob", "metadata": named, "spec": {"jobTemplate": job}}

    said = preview(deployment, {"kind": "List", "items": [cron]}, {"kind": "ConfigMap"})

    assert [(each["pod"], each["freed_millis"]) for each in said] == [
        ("Deployment shop/web", 300),
        ("CronJob shop/web", 300),
    ]


def test_lists_in_lists_which_could_hold_billions_of_pods_are_refused():
    lists = ["a0: &a0 {kind: Pod}"]
    lists += [f"a{n}: &a{n} {{kind: List, items: [{f'*a{n - 1}, ' * 10}]}}" for n in range(1, 10)]

    said = ask("preview", "-f", "-", text="\n".join([*lists, "kind: List", "items: [*a9]"]))

    assert said.returncode == 2
    assert said.stderr == "temper: -: has a List in a List, which is not read\n"


def test_pods_that_take_all_memory_end_the_preview_in_one_line(tmp_path):
    containers = ", ".join(f"{{name: c{n}, image: i}}" for n in range(256))
    pods = f"a: &a [{containers}]\nb: &b {{spec: {{containers: *a}}}}\nkind: List\nitems: "
    manifest = tmp_path / "wide.yaml"
    manifest.write_text(f"{pods}[{'*b, ' * 100_000}]")
    limited = f"ulimit -d 300000; exec {TEMPER} overcommit preview -f {manifest}"

    said = subprocess.run(["bash", "-c", limited], check=False, capture_output=True, text=True)

    assert said.returncode == 2
    assert said.stderr.startswith("temper: the pods take more than ")
    assert said.stderr.count("\n") == 1


def test_a_list_as_the_api_server_answers_it_needs_no_kinds():
    item = pod()
    del item["kind"]

    assert len(preview({"kind": "PodList", "items": [item, item]})) == 2


def test_a_limit_stands_for_a_missing_request_as_in_the_cluster():
    (said,) = preview(pod(container(cpu_limit="2")))

    assert said["containers"][0]["after"] == "1400m"


def test_another_factor_is_exact():
    (said,) = preview(pod(container(cpu="3")), options=["--factor", "0.333333"])

    assert said["containers"][0]["after"] == "1000m"


def test_thresholds_are_those_of_the_settings(tmp_path):
    settings = tmp_path / "agent.toml"
    settings.write_text("[priority_mapping]\ncritical = 200000\n")

    (said,) = preview(pod(priority=200_000), options=["--settings", str(settings)])

    assert said["outcome"] == "critical"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "-: has neither a Pod nor a pod template"),
        ("{", "-: is neither JSON nor YAML"),
        ("a: [", "-: is neither JSON nor YAML"),
        ("[" * 100_000, "-: is neither JSON nor YAML"),
        ("a: &a [*a]", "-: has neither a Pod"),
        ("kind: Pod", "-: Pod default/unnamed: metadata: must be an object"),
        (yaml.safe_dump(pod(container(cpu="one"))), "'one' is no CPU quantity"),
    ],
)
def test_what_cannot_be_previewed_is_told_in_one_line(text, problem):
    said = ask("preview", "-f", "-", text=text)

    assert (said.returncode, said.stdout) == (2, "")
    assert problem in said.stderr
    assert len(said.stderr.splitlines()) == 1


def test_a_file_with_a_bad_quantity_is_named(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(pod(container(cpu="one"))))

    said = ask("preview", "-f", str(path))

    assert said.stderr.startswith(f"temper: {path}: Pod ")


def test_an_authority_is_printed_with_all_that_a_cluster_needs():
    said = ask("authority", "--namespace", "ours", "--life", "10d")

    secret, configuration = yaml.safe_load_all(said.stdout)
    authority = read_authority(decoded(secret["data"]))
    (webhook,) = configuration["webhooks"]
    assert webhook["clientConfig"]["caBundle"] == secret["data"]["ca.crt"]
    assert webhook["clientConfig"]["service"]["namespace"] == "ours"
    assert secret["metadata"] == {"name": "temper-webhook-tls", "namespace": "ours"}
    assert authority.certificate.not_valid_after_utc - begun(authority.certificate) == 10 * DAY


def test_an_authority_that_is_replaced_stays_trusted(tmp_path):
    earlier, _ = yaml.safe_load_all(ask("authority").stdout)
    path = tmp_path / "ca.crt"
    path.write_bytes(b64decode(earlier["data"]["ca.crt"]))

    said = ask("authority", "--trust-too", str(path))

    secret, configuration = yaml.safe_load_all(said.stdout)
    bundle = b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
    assert bundle == b64decode(secret["data"]["ca.crt"]) + path.read_bytes()


@pytest.mark.parametrize("content", [None, b"rubbish"])
def test_an_authority_that_cannot_be_read_is_named_in_one_line(tmp_path, content):
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_bytes(content)

    said = ask("authority", "--trust-too", str(path))

    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr.startswith(f"temper: {path}: ")
    assert len(said.stderr.splitlines()) == 1


def decoded(data):
    return {key: b64decode(value) for key, value in data.items()}


@pytest.mark.parametrize(
    "options",
    [
        ["--factor", "0"],
        ["--factor", "1.5"],
        ["--factor", "7e-1"],
        ["--certificate-life", "90"],
        ["--certificate-life", "0s"],
        ["--certificate-life", "99999d"],
        ["--overlap", "1w"],
        ["--listen", "8443"],
        ["--listen", "0.0.0.0:99999"],
        ["--kubeconfig", "/nowhere"],
    ],
)
def test_options_that_make_no_sense_are_refused(options, kubeconfig):
    said = ask("serve", "--kubeconfig", str(kubeconfig), *options)

    assert said.returncode == 2
    assert "Traceback" not in said.stderr


@pytest.fixture
def kubeconfig(tmp_path):
    """A kubeconfig of a cluster that does not answer."""
    path = tmp_path / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "current-context": "here",
                "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}],
                "users": [{"name": "me", "user": {"token": "none"}}],
                "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
            }
        )
    )
    return path


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is not a kubeconfig: it has no keys"),
        ("x: 1", "no current-context"),
        ("[", "cannot be read as a kubeconfig"),
        ("[]", "is not a kubeconfig: it has no keys"),
        ("current-context: a\nclusters: 3", "clusters: an entry needs 'name' and 'cluster'"),
        ("\xff", "cannot be read as a kubeconfig"),
        ("a: {b: {", "cannot be read as a kubeconfig"),
    ],
)
def test_what_is_no_kubeconfig_is_told_in_one_line(tmp_path, text, problem):
    path = tmp_path / "kubeconfig"
    path.write_text(text, encoding="latin-1")

    for command in ("report", "serve"):
        said = ask(command, "--kubeconfig", str(path))

        assert said.returncode == 2
        assert len(said.stderr.splitlines()) == 1
        assert f"{path}: {problem}" in said.stderr


def test_without_the_cluster_a_report_says_so_in_one_line(kubeconfig):
    said = ask("report", "--kubeconfig", str(kubeconfig))

    assert said.returncode == 3
    assert len(said.stderr.splitlines()) == 1


def test_without_the_cluster_the_webhook_waits_unready_and_can_be_stopped(kubeconfig, tmp_path):
    port, log = free_port(), tmp_path / "log"
    options = ["--listen", "127.0.0.1:0", "--observe", f"127.0.0.1:{port}"]
    asking = [TEMPER, "overcommit", "serve", *options, "--kubeconfig", str(kubeconfig)]
    with log.open("wb") as stderr, subprocess.Popen(asking, stderr=stderr) as process:
        try:
            answer = wait_until(lambda: answer_of(port), "it says why", 60.0)
        finally:
            process.terminate()
            code = process.wait(30)

    assert (answer.status_code, code) == (503, 0)
    assert json.loads(log.read_text().splitlines()[-1])["event"] == "webhook_stopped"


def answer_of(port):
    """Return the answer about readiness once it gives a reason."""
    with suppress(httpx2.HTTPError):
        answer = httpx2.get(f"http://127.0.0.1:{port}/readyz", trust_env=False)
        return answer if "refused" in answer.text else None
    return None


def test_an_address_that_is_taken_is_told_in_one_line(kubeconfig):
    given = ["--listen", "192.0.2.1:8443", "--observe", "127.0.0.1:0"]

    said = ask("serve", "--kubeconfig", str(kubeconfig), *given)

    assert said.returncode == 3
    assert said.stderr.splitlines()[-1].startswith("temper: cannot listen on 192.0.2.1:8443")


def running(name="a", namespace="shop", phase="Running", document=None):
    document = document or patched(pod(), decided(pod()).patch)
    metadata = {**document["metadata"], "name": name, "namespace": namespace}
    return {**document, "metadata": metadata, "status": {"phase": phase}}


def test_a_pod_frees_what_the_webhook_took_from_it():
    assert freed_millis(running()) == 300
    assert freed_millis(running(document=pod())) == 0


@pytest.mark.parametrize("claim", ['{"app":"500m"}', '{"ghost":"9"}', "rubbish", '{"app":"x"}'])
def test_a_claim_that_cannot_be_frees_nothing(claim):
    assert freed_millis(pod(annotations={ORIGINALS: claim})) == 0


@pytest.mark.parametrize("limit", [None, "2"])
def test_a_claim_that_no_node_or_limit_allows_frees_nothing(limit):
    claims = {"app": "1E"} if limit is None else {"app": "2001m"}
    asked = pod(container(cpu="1m", cpu_limit=limit), annotations={ORIGINALS: json.dumps(claims)})

    assert freed_millis(asked) == 0


def seen(*pods, labelled=("shop",), limit_ranges=()):
    return stand(ClusterView(frozenset(labelled), pods, tuple(map(obstacles_of, limit_ranges))))


def test_lowered_pods_are_counted_by_namespace_until_they_end():
    standings = seen(
        running("a"),
        running("b"),
        running("c", phase="Succeeded"),
        running("d", document=pod()),
        running("e", namespace="unlabelled"),
        running("f", namespace="elsewhere", document=pod()),
    )

    counted = [(each.namespace, each.pods, each.lowered, each.freed_millis) for each in standings]
    assert counted == [("shop", 3, 2, 600), ("unlabelled", 1, 1, 300)]
    assert [each.is_labelled for each in standings] == [True, False]


def limit_range(**limit):
    return {
        "metadata": {"name": "least", "namespace": "shop"},
        "spec": {"limits": [{"type": "Container", **limit}]},
    }


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        ({"min": {"cpu": "100m"}}, 1),
        ({"min": {"cpu": "10m"}}, 0),
        ({"min": {"memory": "1Gi"}}, 0),
        ({"max": {"cpu": "1"}}, 0),
        ({"maxLimitRequestRatio": {"cpu": "2"}}, 1),
    ],
)
def test_a_limit_range_that_refuses_lowered_requests_is_a_finding(limit, found):
    (standing,) = seen(limit_ranges=[limit_range(**limit)])

    assert len(standing.findings) == found


def test_a_limit_range_of_a_namespace_without_the_label_is_none():
    assert seen(labelled=(), limit_ranges=[limit_range(min={"cpu": "1"})]) == ()
