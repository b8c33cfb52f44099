"""A private pack as its owner gets it: installed beside the agent, and chosen for own pods."""

import json
import re
import shutil

import pytest

from tests.installed.wheels import ROOT, environment_by_uv, run

PACK = ROOT / "examples" / "temper-plugin-shop-profiles"
PROFILE = PACK / "temper_plugin_shop_profiles" / "shop-search.toml"
RECORDING = PACK / "recordings" / "shop-search-3.1.json"
MACHINE = ROOT / "examples" / "machines" / "16-cores.toml"


@pytest.fixture(scope="module")
def environment(wheel_of, tmp_path_factory):
    """Return an environment with the agent, the builtin profiles, the trainer and the pack."""
    plugins, kube = ROOT / "plugins", ROOT / "libs/temper_kube"
    parts = (ROOT, plugins / "builtin_profiles", plugins / "trainer", kube, PACK)
    return environment_by_uv(["pytest", *map(wheel_of, parts)], tmp_path_factory.mktemp("pack"))


@pytest.fixture
def temper(environment, tmp_path):
    def call(*arguments, check=True):
        return run(environment / "bin" / "temper", *arguments, check=check, cwd=tmp_path)

    return call


def pod_of(image):
    """Return a pod with a request of two CPUs, as a Kubernetes API server tells of it."""
    requests = {"resources": {"requests": {"cpu": "2"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "search-0",
            "namespace": "shop",
            "uid": "5f3f4b1e-3a9f-4d3b-9a53-0a1b",
        },
        "spec": {"priority": 100000, "containers": [{"name": "main", "image": image, **requests}]},
    }


def test_it_is_listed_beside_what_ships(temper):
    listed = json.loads(temper("profiles", "list", "--output", "json").stdout)

    sources = {each["id"]: each["source"] for each in listed["profiles"]}
    assert sources["shop-search"] == "shop-profiles"
    assert sources["jvm"] == "builtin-profiles"
    assert not listed["failures"]


def test_it_is_shown_with_what_it_takes_from_its_parent(temper):
    [shown] = json.loads(temper("profiles", "show", "shop-search", "--output", "json").stdout)

    groups = {each["name"]: each for each in shown["thread_groups"]}
    assert list(groups) == ["requests", "merges", "collection", "compilers", "warm-up", "rest"]
    assert groups["requests"]["treatment"] == "latency"
    assert groups["requests"]["match"][0]["comm_prefix"] == "query-"


def test_the_linter_misses_a_measurement_and_tells_what_needs_steering(temper):
    linted = temper("profiles", "lint", PROFILE, "--output", "json", check=False)

    [document] = json.loads(linted.stdout)
    assert {each["code"] for each in document["remarks"]} == {"no_evidence", "needs_steering"}
    assert linted.returncode == 1


def test_it_covers_its_recording(temper):
    tested = temper("profiles", "test", PROFILE, "--threads", RECORDING)

    assert "covered by shop-search" in tested.stdout
    assert "unmatched" not in tested.stdout


@pytest.mark.parametrize(
    ("tag", "profile"), [("3.1", "shop-search"), ("4.0", None)], ids=["its", "another"]
)
def test_a_pod_of_the_version_that_it_is_for_is_planned_by_it(temper, tmp_path, tag, profile):
    pods = tmp_path / "pods.json"
    pods.write_text(json.dumps(pod_of(f"registry.example/shop/search:{tag}")))

    planned = json.loads(
        temper("plan", "--pods", pods, "--machine", MACHINE, "--output", "json").stdout
    )

    [assignment] = planned["assignments"]
    assert assignment["profile"] == profile
    subjects = {note["subject"] for note in planned["notes"]}
    assert ("shop-search.requests.high" in subjects) is (profile is not None)


def test_its_own_tests_pass_where_it_is_installed(environment, tmp_path):
    copy = tmp_path / "pack"
    shutil.copytree(PACK, copy, ignore=shutil.ignore_patterns("temper_plugin_*", "__pycache__"))

    done = run(environment / "bin" / "pytest", "-q", "-p", "no:cacheprovider", copy, cwd=tmp_path)

    assert " passed" in done.stdout


def test_its_module_is_the_one_that_the_page_on_profiles_shows():
    page = (ROOT / "docs" / "profiles.md").read_text()
    module = (PACK / "temper_plugin_shop_profiles" / "__init__.py").read_text()

    [shown] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    without_words = re.sub(r'^ *""".*"""\n+', "", module, flags=re.MULTILINE)
    assert without_words == shown
