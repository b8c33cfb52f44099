import json
import subprocess
import sys
from pathlib import Path

import pytest

import temper_plugin_shop_profiles
from temper_core import WorkloadProfile
from temper_core.testing import assert_keeps_contract

ROOT = Path(__file__).parents[1]
PROFILE = Path(temper_plugin_shop_profiles.__file__).with_name("shop-search.toml")
RECORDING = ROOT / "recordings" / "shop-search-3.1.json"


@pytest.fixture(scope="module")
def judged():
    """Return what the profile makes of the recording, with all that it takes from its parent."""
    temper = Path(sys.executable).with_name("temper")
    command = (temper, "profiles", "test", PROFILE, "--threads", RECORDING, "--output", "json")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    [recording] = json.loads(done.stdout)["recordings"]
    return recording


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_shop_profiles, "shop-profiles")


def test_each_file_is_contributed(host):
    host.add(temper_plugin_shop_profiles, "shop-profiles")

    found = host.gather("temper_profiles", WorkloadProfile)

    assert [each.record.id for each in found] == ["shop-search"]


def test_the_groups_take_nearly_all_of_the_cpu_time(judged):
    assert judged["coverage"] > 0.95
    assert judged["hot_unmatched"] == []


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("requests", {"HTTP-Dispatcher", "query-1", "query-2", "query-3", "query-4"}),
        ("merges", {"merge-1"}),
        ("compilers", {"C1 CompilerThre", "C2 CompilerThre"}),
    ],
)
def test_a_group_takes_its_threads(judged, group, names):
    [found] = [each for each in judged["groups"] if each["name"] == group]

    assert set(found["names"]) == names


def test_it_is_for_the_version_that_was_recorded(judged):
    assert judged["is_about_version"] is True
