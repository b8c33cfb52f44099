"""In which order the operator handles workloads, where a tenant changes pods without end."""

import pytest

from temper_plugin_power.controller.classifier import MOST_URGENT, Classifier, Cluster, Timing
from temper_plugin_power.controller.known_objects import KnownObjects
from temper_plugin_power.controller.pod_table import PodTable
from temper_plugin_power.controller.stored_profiles import stored_profile
from temper_plugin_power.workloads.profiling import ProfilingChoices
from tests.power.test_node_plans import a_pod

FLOOD = [f"flood-{number}" for number in range(20)]


class Written:
    """Keeps the names of the workloads whose profiles are written."""

    def __init__(self):
        self.names = []

    def write(self, profile, _stored, _pods):
        self.names.append(profile.workload.name)


@pytest.fixture
def writer():
    return Written()


@pytest.fixture
def classifier(writer):
    pods = PodTable()
    for name in ("quiet", *FLOOD):
        pods.noted(None, a_pod(name))
    cluster = Cluster(pods, KnownObjects(stored_profile), lambda: frozenset({"n0"}))
    made = Classifier(cluster, writer, ProfilingChoices(), Timing())
    made.measured(None)
    return made


def changed(classifier, pods):
    """Have all *pods* of the tenant changed, as often as one workload is handled."""
    for name in pods:
        classifier.note(a_pod(name).workload)


def test_pods_that_change_without_end_keep_no_other_workload_from_its_turn(classifier, writer):
    for _ in range(10 * MOST_URGENT):
        changed(classifier, FLOOD)
        classifier.step(0.0)

    assert "quiet" in writer.names


def test_new_pods_come_before_most_workloads_that_are_due(classifier, writer):
    changed(classifier, ["flood-7", "flood-8", "flood-9"])
    for _ in range(4):
        classifier.step(0.0)

    assert writer.names == ["flood-7", "flood-8", "flood-9", "quiet"]
