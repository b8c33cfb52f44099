"""The ``[traits]`` of a pod's thread profile as hints."""

import json

import pytest
from attrs import evolve
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from temper_core import Container, DocumentError, Pod, parse_profile
from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.signals import Signals
from temper_plugin_power.classifier.traits import NO_TRAITS, ThreadTraits
from temper_plugin_power.commands.power import command
from temper_plugin_power.controller.chosen import profiling_choices
from temper_plugin_power.controller.hysteresis import differs_by_hints
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.pods import pod_reader
from temper_plugin_power.settings.classifier import ClassifierSettings
from temper_plugin_power.settings.power import PowerSettings
from temper_plugin_power.workloads.profile_files import read_profile_files
from temper_plugin_power.workloads.profiling import newest_hints
from temper_plugin_power.workloads.thread_profiles import ThreadProfiles

ALL = ThreadTraits("db", "performance", True, "low", "memory", "low", "memory")
SIGNALS = Signals(cpu_util_pct=90, gpu_util_pct=80)
BUSY = Signals(cpu_util_pct=90)
DOCUMENT = """
id = "{id}"
{more}
[fingerprint]
images = ["{image}:*"]
[traits]
{traits}
[[thread_groups]]
name = "rest"
"""


def document(name="db", *traits, image="example/db", more=""):
    return DOCUMENT.format(id=name, image=image, more=more, traits="\n".join(traits))


def a_pod(image="example/db:1", **annotations):
    known = {f"temper.codes/{key}": value for key, value in annotations.items()}
    return Pod(
        uid="1",
        namespace="shop",
        name="db-0",
        annotations={key.replace("_", "-"): value for key, value in known.items()},
        containers=(Container("app", image=image),),
    )


def profiles_of(*texts):
    return ThreadProfiles(tuple(parse_profile(text, "a test") for text in texts))


def test_traits_take_the_place_of_what_was_measured_and_are_named():
    profile = classify(Hints(), SIGNALS, traits=ALL)

    assert (profile.workload_class, profile.reschedulable) == ("performance", True)
    assert (profile.cpu.intensity, profile.cpu.bound, profile.cpu.cap_sensitivity) == (
        *("low", "memory", "low"),
    )
    assert profile.gpu.bound == "memory"
    assert profile.hints == ALL.paths
    assert "cpu-bound=memory (traits of profile db)" in profile.reason.split("; ")


def test_annotations_come_before_traits():
    hints = Hints(workload_class="standard", reschedulable=False, cpu_sensitivity="high")

    profile = classify(hints, SIGNALS, traits=ALL)

    assert (profile.workload_class, profile.reschedulable) == ("standard", False)
    assert profile.cpu.cap_sensitivity == "high"
    assert set(ALL.evidence(hints)["traits"]) == {"cpu.intensity", "cpu.bound", "gpu.bound"}


def test_a_label_of_the_pod_comes_before_traits():
    assert classify(Hints(label_class="standard"), None, traits=ALL).workload_class == "standard"


def test_traits_come_before_a_derived_class():
    traits = ThreadTraits("db", workload_class="standard")

    derived = classify(Hints(), BUSY, derives_class=True)
    kept = classify(Hints(), BUSY, derives_class=True, traits=traits)

    assert (derived.workload_class, kept.workload_class) == ("performance", "standard")


@pytest.mark.parametrize(
    ("signals", "bound", "demand"),
    [
        (BUSY, "compute", ("medium", "compute", "medium")),
        (BUSY, "none", ("none", "none", "none")),
        (SIGNALS, "memory", ("high", "memory", "high")),
        (None, "mixed", ("medium", "mixed", "medium")),
    ],
)
def test_a_bound_of_gpus_tells_of_gpu_work(signals, bound, demand):
    gpu = classify(Hints(), signals, traits=ThreadTraits("db", gpu_bound=bound)).gpu

    assert (gpu.intensity, gpu.bound, gpu.cap_sensitivity) == demand


@given(st.sampled_from([None, BUSY, SIGNALS]), st.booleans())
def test_without_traits_nothing_changes(signals, derives_class):
    plain = classify(Hints(), signals, derives_class=derives_class)

    assert classify(Hints(), signals, derives_class=derives_class, traits=NO_TRAITS) == plain


def test_traits_raise_no_confidence():
    assert classify(Hints(), None, traits=ALL).confidence == 0.3
    assert classify(Hints(), BUSY, traits=ALL).confidence == 0.5


@pytest.mark.parametrize(
    ("pod", "bound"),
    [
        (a_pod(), "memory"),
        (a_pod("other:1"), None),
        (a_pod("other:1", workload_profile="db"), "memory"),
        (a_pod(workload_profile="net"), "io"),
        (a_pod(workload_profile="gone"), None),
        (a_pod(workload_profile="mysql"), "memory"),
        (a_pod("example/net:1"), "io"),
    ],
)
def test_the_profile_is_that_of_the_annotation_else_of_the_image(pod, bound):
    mysql = document("db", 'cpu_bound = "memory"').replace(
        "images", 'annotations = ["mysql"]\nimages'
    )
    known = profiles_of(mysql, document("net", 'cpu_bound = "io"', image="example/net"))

    assert known.traits_of(pod).cpu_bound == bound


@pytest.mark.parametrize(("pod", "is_meant"), [(a_pod(), False), (a_pod(workload_profile="db"), 1)])
def test_a_disabled_profile_is_chosen_by_the_annotation_only(pod, is_meant):
    known = profiles_of(document("db", 'cpu_bound = "memory"', more="enabled = false"))

    assert bool(known.traits_of(pod).paths) == is_meant


@pytest.mark.parametrize(("tag", "is_meant"), [("7.9", False), ("8.0", True)])
def test_a_profile_of_another_version_gives_no_traits(tag, is_meant):
    text = document("db", 'cpu_bound = "memory"').replace("images", 'versions = [">=8"]\nimages')

    assert bool(profiles_of(text).traits_of(a_pod(f"example/db:{tag}")).paths) == is_meant


def test_another_value_of_the_same_trait_is_news():
    before, after = (
        classify(Hints(), BUSY, traits=ThreadTraits("db", cpu_bound=bound))
        for bound in ("memory", "io")
    )

    assert differs_by_hints(before, after)
    assert not differs_by_hints(before, evolve(before, confidence=0.9))


def test_a_directory_gives_its_profiles_and_those_that_extend_them(tmp_path):
    (tmp_path / "a.toml").write_text(document("db", 'cpu_bound = "memory"'))
    child = 'id = "db-big"\nextends = "db"\n[traits]\nreschedulable = true'
    (tmp_path / "b.toml").write_text(child)
    (tmp_path / ".hidden.toml").write_text("nothing")
    (tmp_path / "broken.toml").write_text(document("broken", 'cpu_bound = "disk"'))

    read = read_profile_files(tmp_path)

    traits = read.profiles.traits_of(a_pod(workload_profile="db-big"))
    assert (traits.cpu_bound, traits.reschedulable) == ("memory", True)
    (line,) = read.left_out
    assert "broken.toml" in line
    assert "cpu_bound" in line


def test_a_directory_that_cannot_be_listed_is_named(tmp_path):
    with pytest.raises(DocumentError, match="gone: cannot be listed: No such file"):
        read_profile_files(tmp_path / "gone")


def classified(tmp_path, *profiles):
    directory = tmp_path / "profiles"
    directory.mkdir()
    for number, text in enumerate(profiles):
        (directory / f"{number}.toml").write_text(text)
    pods = {
        "kind": "Pod",
        "metadata": {"name": "db-0", "namespace": "shop", "uid": "1"},
        "spec": {"containers": [{"name": "app", "image": "example/db:1"}]},
    }
    (tmp_path / "pods.json").write_text(json.dumps(pods))
    arguments = ["--pods", str(tmp_path / "pods.json"), "--thread-profiles", str(directory)]
    return CliRunner().invoke(command, ["classify", *arguments], standalone_mode=False)


def test_the_command_names_the_thread_profile_as_evidence(tmp_path):
    done = classified(tmp_path, document("db", 'cpu_bound = "memory"'))

    (item,) = json.loads(done.stdout)["items"]
    assert item["status"]["cpu"]["bound"] == "memory"
    assert item["status"]["hints"] == ["cpu.bound"]
    assert item["status"]["evidence"]["threadProfile"] == "db"
    assert item["status"]["evidence"]["traits"] == ["cpu.bound"]
    assert done.return_value == 0


def test_an_invalid_thread_profile_is_told_and_left_out(tmp_path):
    done = classified(tmp_path, "id = 1")

    assert "0.toml" in done.stderr
    assert "threadProfile" not in done.stdout
    assert done.return_value == 1


def known_pod(**annotations):
    metadata = {"name": "db-0", "namespace": "shop", "uid": "1", "annotations": annotations}
    item = {"metadata": metadata, "spec": {"containers": [{"name": "app", "image": "x"}]}}
    return pod_reader(("joulie.io", "temper.codes"))(item)


def test_the_operator_reads_the_profiles_of_its_settings(tmp_path):
    (tmp_path / "db.toml").write_text(document("db", 'cpu_bound = "memory"'))
    (tmp_path / "odd.toml").write_text("id = 1")
    settings = PowerSettings(classifier=ClassifierSettings(traits_directory=str(tmp_path)))
    pod = known_pod(**{"temper.codes/workload-profile": "db"})

    with capture_logs() as logs:
        choices = profiling_choices(settings, "temper")

    assert newest_hints([pod.measured], choices)[1].cpu_bound == "memory"
    assert [each["event"] for each in logs] == ["thread_profile_left_out"]


def test_another_annotation_of_the_thread_profile_is_news_for_the_operator():
    told = []
    table = PodTable(told.append)
    plain, named = known_pod(), known_pod(**{"temper.codes/workload-profile": "db"})

    table.noted(None, plain)
    table.noted(plain, plain)
    table.noted(plain, named)

    assert len(told) == 2
