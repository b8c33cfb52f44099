"""What the objects of tenants take of the views of a cluster."""

import json

import pytest
from click.testing import CliRunner

from temper_plugin_power.commands.power import command
from tests.kube_client.large_lists import MANY, MOST_HELD, large, many, peak_of, written_kubeconfig
from tests.kube_client.scripted import Scripted
from tests.power.views.test_recommend import moving
from tests.power.views.test_views import pod, profile

LONG = "x" * 600_000
PROFILE = large(profile(classificationReason=LONG, evidence={"pods": 3, "traits": [LONG]}))


@pytest.fixture
def run(tmp_path):
    server = Scripted()

    def running(name, lists, *options):
        server.lists = lists
        path = written_kubeconfig(tmp_path, server.access)
        words = [name, *options, "--kubeconfig", str(path), "--output", "json"]
        peak, done = peak_of(lambda: CliRunner().invoke(command, words, standalone_mode=False))
        assert done.exception is None
        assert peak < MOST_HELD
        return json.loads(done.stdout)

    yield running
    server.close()


def test_a_status_holds_one_object(run):
    shown = run("status", [many(large(moving())), many(PROFILE), many(large(pod()))])

    assert shown["totals"]["nodes"] == MANY
    assert len(shown["suggestions"]) == 1


def test_profiles_are_shown_with_a_part_of_a_large_reason(run):
    shown = run("profiles", [many(PROFILE)])

    assert [each["reason"] for each in shown["profiles"]] == [LONG[:4096]] * MANY


def test_an_explanation_holds_one_object(run):
    other = 200, {}, {"items": [profile(evidence={"pods": 3, "threadProfile": LONG})]}

    shown = run("explain", [other, many(large(pod(annotations={"a": LONG})))], "shop/solver")

    assert shown["evidence"] == {"pods": 3, "threadProfile": LONG[:254]}
    assert len(shown["suggestions"]) == 1


def test_advice_holds_one_object(run):
    shown = run("recommend", [many(large(moving())), many(PROFILE), many(large(pod()))])

    kinds = [each["kind"] for each in shown["recommendations"]]
    assert kinds == ["reschedule"] * MANY + ["tier"]
