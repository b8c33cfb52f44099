"""A node's history that is filled in from a real Prometheus, and what the agent refuses."""

import json
import os
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError
from temper_plugin_rightsizer.demand.interval import IntervalDemand
from temper_plugin_rightsizer.demand.waits import GroupTime
from temper_plugin_rightsizer.node.collector import Collector
from temper_plugin_rightsizer.node.filling import as_row, fill_in
from temper_plugin_rightsizer.store.history import HOUR_S, History
from temper_plugin_rightsizer.store.keeper import Keeper
from temper_plugin_rightsizer.store.packing import pack
from tests.patience import PATIENCE_S
from tests.rightsizer.fleet_series import Container, Series, make_blocks, serving

TEMPER = str(Path(sys.executable).with_name("temper"))
NOW = 1_800_000_000 // HOUR_S * HOUR_S
MIB = 1024 * 1024
SETTINGS = """
node = "node-1"
run_directory = "{folder}/run"
state_directory = "{folder}/state"
[server]
listen = ""
[scheduler]
enforce = false
[observe]
period_s = 1.0
budget_cpu_ratio = 1.0
[pods]
source = "file"
file = "{folder}/pods.json"
"""


def pod_list(uid):
    """Return a PodList of one pod whose uid is in the path of a cgroup."""
    container = {"name": "app", "resources": {"requests": {"cpu": "500m"}}}
    return {
        "kind": "List",
        "items": [
            {
                "metadata": {"uid": uid, "name": "web-0", "namespace": "shop"},
                "spec": {"nodeName": "node-1", "containers": [container]},
                "status": {"phase": "Running", "qosClass": "Burstable"},
            }
        ],
    }


@pytest.fixture
def collector(tmp_path):
    lookup = type("Lookup", (), {"plan": None, "pods": lambda _: ()})()
    return Collector(Keeper(History(lambda: tmp_path, 4 * MIB, clock=lambda: float(NOW))), lookup)


def an_hour(**different):
    demand = IntervalDemand()
    demand.cpu.add(0.5, HOUR_S)
    return {**as_row("shop", "web-0", "app", NOW - 2 * HOUR_S, demand), **different}


def lasting(seconds):
    demand = IntervalDemand()
    demand.cpu.add(0.5, seconds)
    return b64encode(pack(demand)).decode()


def with_more(change):
    demand = IntervalDemand()
    demand.cpu.add(0.5, HOUR_S)
    change(demand)
    return b64encode(pack(demand)).decode()


@pytest.mark.parametrize(
    "change",
    [
        lambda demand: setattr(demand.counts, "oom", 2**62),
        lambda demand: demand.names.update(worker=2**62),
        lambda demand: demand.run_delay.add(0.5, 2**62),
        lambda demand: setattr(demand.waits, "seconds", 2**62),
        lambda demand: demand.waits.ranked.append(2.0**62),
        lambda demand: demand.waits.groups.update(worker=GroupTime(0.0, 2.0**62)),
        lambda demand: setattr(demand, "startup", IntervalDemand(names={"worker": 2**62})),
    ],
)
def test_counters_that_no_hours_have_are_refused(collector, change):
    """The sum of many such hours could not be read back, and the history would be damaged."""
    content = json.dumps({"hours": [an_hour(demand=with_more(change))]}).encode()

    with pytest.raises(InputError, match=r"hours\[0\]: demand has a counter or a time"):
        fill_in(collector, content, float(NOW))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is no JSON"),
        (b"[" * 100_000, "the body is no JSON"),
        (b"[]", "must have a list: hours"),
        (b'{"hours": 3}', "must have a list: hours"),
        (b'{"hours": [3]}', "hours: each must be an object"),
        ({"at": NOW - 2 * HOUR_S + 1}, r"hours\[0\]: at must be the begin of an hour"),
        ({"at": NOW}, "at must be the begin of an hour that is over"),
        ({"at": NOW - 400 * 24 * HOUR_S}, "of the last 14 days"),
        ({"at": "yesterday"}, "at must be"),
        ({"demand": "!"}, r"hours\[0\]: demand is damaged"),
        ({"demand": ""}, "demand is damaged"),
        ({"demand": lasting(3 * HOUR_S)}, "demand must be of up to 7200 s"),
        ({"demand": lasting(0)}, "demand must be of up to 7200 s, not 0 s"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_in_one_line(collector, body, said):
    content = body if isinstance(body, bytes) else json.dumps({"hours": [an_hour(**body)]}).encode()

    with pytest.raises(InputError, match=said) as refused:
        fill_in(collector, content, float(NOW))

    assert str(refused.value).isprintable()


def test_an_hour_of_a_container_that_is_not_here_is_left_out(collector):
    body = json.dumps({"hours": [an_hour()]}).encode()

    assert fill_in(collector, body, float(NOW)) == {"kept": 0, "left_out": 1}


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_body_is_taken_or_refused(content):
    lookup = type("Lookup", (), {"plan": None, "pods": lambda _: ()})()
    collector = Collector(Keeper(History(lambda: Path("/nowhere"), MIB)), lookup)

    with pytest.raises(InputError):
        fill_in(collector, content, float(NOW))


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """Give the address of a Prometheus with a day of the pod, and of another pod."""
    folder = tmp_path_factory.mktemp("prometheus")
    series = Series(int(time.time()))
    Container(series, "shop", "web-0").uses(0.8, 300 * MIB).hottest(0.6)
    Container(series, "shop", "elsewhere-0").uses(3.0)
    make_blocks(folder, series.lines())
    with serving(folder) as address:
        yield address


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    """Run an agent whose only pod has a real process, and give its settings."""
    folder = tmp_path_factory.mktemp("agent")
    root = next(
        (each for each in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if _is_v2(each)), None
    )
    if os.geteuid() != 0 or root is None:
        pytest.skip("only root can make a cgroup v2 of a pod")
    uid = f"0c5a1b1e-0000-4000-8000-{os.getpid():012d}"
    cgroup = Path(root, "kubepods", "burstable", f"pod{uid}")
    made = [each for each in (*reversed(cgroup.parents), cgroup) if not each.exists()]
    cgroup.mkdir(parents=True)
    program = subprocess.Popen(["sleep", "1000"])
    (cgroup / "cgroup.procs").write_text(str(program.pid))
    (folder / "pods.json").write_text(json.dumps(pod_list(uid)))
    settings = folder / "agent.toml"
    settings.write_text(SETTINGS.format(folder=folder))
    with (folder / "log").open("w") as log:
        running = subprocess.Popen([TEMPER, "agent", "--settings", str(settings)], stderr=log)
    try:
        yield settings
    finally:
        running.terminate()
        running.wait(PATIENCE_S)
        program.kill()
        program.wait()
        for directory in reversed(made):
            directory.rmdir()


def _is_v2(root):
    return Path(root, "cgroup.controllers").exists() and os.access(root, os.W_OK)


def temper(*words):
    return subprocess.run(
        [TEMPER, *map(str, words)], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def report(settings, *options):
    done = temper("rightsize", "--settings", settings, "--output", "json", *options)
    found = json.loads(done.stdout)["containers"] if done.returncode == 0 else []
    return [row for row in found if row["namespace"] == "shop"]


def test_a_new_agent_has_the_history_of_a_prometheus(agent, prometheus):
    end = time.monotonic() + PATIENCE_S
    while not report(agent) and time.monotonic() < end:
        time.sleep(0.5)
    (before,) = report(agent)
    options = ("--prometheus", prometheus, "--settings", agent)

    done = temper("rightsize", "backfill", *options, "--output", "json")

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["containers"] == 1
    assert document["kept"] == document["hours"] >= 5
    (after,) = report(agent, "--hours", "24")
    assert before["learned_s"] < HOUR_S <= after["learned_s"]
    assert after["used"]["cpu_mean"] == pytest.approx(0.8, rel=0.06)
    assert after["recommended"]["cpu_request_millis"] == pytest.approx(1000, rel=0.1)
    assert after["recommended"]["memory_request_bytes"] >= 300 * MIB

    again = temper("rightsize", "backfill", *options)
    assert again.returncode == 0, again.stderr
    assert "0 were filled in" in again.stdout


def test_backfill_needs_a_prometheus_and_says_so(agent):
    done = temper("rightsize", "backfill", "--settings", agent)

    assert (done.returncode, done.stdout) == (2, "")
    assert "backfill needs --prometheus" in done.stderr
