"""``temper rightsize --prometheus`` against a real Prometheus with generated series."""

import csv
import io
import json
import subprocess
import sys
import time
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

from temper_plugin_rightsizer.backtest.fleet_demands import demands_of_fleet
from temper_plugin_rightsizer.backtest.samples import steps_of_demands
from temper_plugin_rightsizer.commands.rightsize import command
from temper_plugin_rightsizer.fleet.queries import Scope
from temper_plugin_rightsizer.fleet.reading import Fleet
from temper_plugin_rightsizer.fleet.report import report
from temper_plugin_rightsizer.fleet.windows import Window
from temper_prometheus.access import Access
from temper_prometheus.client import Prometheus
from tests.patience import PATIENCE_S
from tests.rightsizer.fleet_series import (
    MIB,
    SCRAPE_S,
    Container,
    Series,
    deployed,
    make_blocks,
    owned,
    serving,
)

TEMPER = str(Path(sys.executable).with_name("temper"))
DAY_S = 24 * 3600


def shop(series):
    """Add programs that agents watch."""
    for name, hottest in (("busy", 1.0), ("easy", 0.3)):
        deployed(series, "shop", f"{name}-7c9f-x1", name)
        container = Container(series, "shop", f"{name}-7c9f-x1").uses(1.2).pauses()
        container.hottest(hottest).sized(cpu_request=0.5, memory_request=128 * MIB)


def plain(series):
    """Add the same programs on nodes without agents, and an idle one."""
    for name, used in (("busy", 1.2), ("easy", 1.2), ("idle", 0.2)):
        deployed(series, "plain", f"{name}-7c9f-x1", name)
        Container(series, "plain", f"{name}-7c9f-x1").uses(used).sized(cpu_request=0.5)


def scaled(series):
    """Add a Deployment with three replicas, of which one is busier."""
    for number, used in enumerate((0.1, 0.2, 0.6)):
        pod = f"web-7c9f-x{number}"
        deployed(series, "scaled", pod, "web")
        Container(series, "scaled", pod).uses(used, (100 + number) * MIB).sized(cpu_request=0.1)
    # A replica that agents watch, of a Deployment whose other one they do not.
    for number in range(2):
        deployed(series, "scaled", f"half-7c9f-x{number}", "half")
        half = Container(series, "scaled", f"half-7c9f-x{number}").uses(1.2)
        if number:
            half.hottest(1.0)


def limited(series):
    """Add containers with limits that they ran into."""
    slow = Container(series, "limited", "slow").uses(0.4).throttled(0.2)
    slow.sized(cpu_request=0.25, cpu_limit=0.5)
    told = Container(series, "limited", "told").uses(0.1, 250 * MIB)
    told.grows("container_oom_events_total", told.labels)
    told.sized(memory_request=256 * MIB, memory_limit=256 * MIB)
    missed = Container(series, "limited", "missed").uses(0.1, 250 * MIB)
    missed.grows("kube_pod_container_status_restarts_total", missed.state)
    reason = "kube_pod_container_status_last_terminated_reason"
    series.gauge(reason, 1, series.times[-100:], reason="OOMKilled", **missed.state)
    missed.sized(memory_request=256 * MIB, memory_limit=256 * MIB)
    fine = Container(series, "limited", "fine").uses(0.4).throttled(0.001)
    fine.sized(cpu_request=0.5, cpu_limit=1)
    old = Container(series, "limited", "old").uses(0.1, 100 * MIB)
    times = range(series.now - 10 * DAY_S, series.now - 10 * DAY_S + 600, 60)
    series.gauge("container_memory_working_set_bytes", 900 * MIB, times, **old.labels)
    series.gauge(
        "container_memory_working_set_bytes",
        MIB,
        range(series.now - 13 * DAY_S, series.now, 6 * 3600),
        namespace="limited",
        pod="other",
        container="app",
    )


def counted(samples, step_s):
    """Return the counter of CPU seconds whose use in each step is in *samples*, by its time."""
    total = 0.0
    counter = {}
    for at, used in samples.items():
        total += used * step_s
        counter[at] = f"{total:.4f}"
    return counter


def begun(series, pod, age_s, startup, steady):
    """Add a pod that began *age_s* ago. Its CPUs and MiB are *startup* for 4 minutes."""
    own = Container(series, "begun", pod)
    start = series.now - age_s
    times = range(start, series.now + 1, SCRAPE_S)
    uses = {at: startup if at <= start + 240 else steady for at in times}
    cpus = counted({at: used for at, (used, _) in uses.items()}, SCRAPE_S)
    series.add("container_cpu_usage_seconds_total", {"cpu": "total", **own.labels}, cpus)
    sizes = {at: size * MIB for at, (_, size) in uses.items()}
    series.add("container_memory_working_set_bytes", own.labels, sizes)
    series.gauge("container_start_time_seconds", start, times, **own.labels)
    return own.sized(cpu_request=1)


def starting(series):
    """Add containers that started in the window, and one that runs for four minutes only."""
    begun(series, "slow-start", 3 * 3600, (2.5, 900), (0.3, 300))
    begun(series, "brief", 240, (0.9, 200), (0.9, 200)).hottest(0.9)


def by_day(series):
    """Add a container that rests in the window, and was busy a day ago, and its replaced twin."""
    for name, labelled_as in (("day", "day-7c9f-x1"), ("new", "new-5b8d-x2")):
        deployed(series, "daily", labelled_as, name)
        Container(series, "daily", labelled_as).uses(0.2).sized(cpu_request=0.25)
    for name, pod in (("day", "day-7c9f-x1"), ("new", "new-7c9f-x1")):
        deployed(series, "daily", pod, name)
        own = Container(series, "daily", pod)
        times = range(series.now - 26 * 3600, series.now - 16 * 3600, SCRAPE_S)
        cpus = counted(dict.fromkeys(times, 1.6), SCRAPE_S)
        own_labels = {"cpu": "total", **own.labels, "id": f"/yesterday/{pod}"}
        series.add("container_cpu_usage_seconds_total", own_labels, cpus)
        owner = {"namespace": "daily", "pod": pod, "owner_kind": "ReplicaSet"}
        owner |= {"owner_name": f"{name}-7c9f", "owner_is_controller": "true"}
        series.gauge("kube_pod_owner", 1, times, **owner)
        series.gauge(
            "kube_replicaset_owner",
            1,
            times,
            namespace="daily",
            replicaset=f"{name}-7c9f",
            owner_kind="Deployment",
            owner_name=name,
            owner_is_controller="true",
        )


def moved(series):
    """Add lazy threads of agents that are new, that are gone, or whose address has changed."""
    yesterday = range(series.now - 26 * 3600, series.now - 16 * 3600, SCRAPE_S)
    day = Container(series, "moved", "day").uses(0.3).hottest(0.3, instance="10.0.0.2:9797")
    cpus = counted(dict.fromkeys(yesterday, 1.2), SCRAPE_S)
    labels = {"cpu": "total", **day.labels, "id": "/yesterday/day"}
    series.add("container_cpu_usage_seconds_total", labels, cpus)
    hottest, address = "temper_container_hottest_thread_cpus", "10.0.0.1:9797"
    series.gauge(hottest, 0.3, yesterday, instance=address, **day.state)
    early = series.times[: -3 * 3600 // SCRAPE_S]
    Container(series, "moved", "ended").uses(1.2)
    named = {"namespace": "moved", "pod": "ended", "container": "app"}
    series.gauge(hottest, 0.3, early, instance="10.0.0.3:9797", **named)
    lately = series.times[-900 // SCRAPE_S :]
    young = {"namespace": "moved", "pod": "young", "container": "app"}
    cpus = counted(dict.fromkeys(lately, 1.2), SCRAPE_S)
    series.add("container_cpu_usage_seconds_total", {"cpu": "total", **young}, cpus)
    series.gauge(hottest, 0.3, lately, instance="10.0.0.4:9797", **young)


def leaking(series):
    """Add two replicas that leak, and a container whose cache fills."""
    for number in range(2):
        deployed(series, "leaking", f"leaky-7c9f-x{number}", "leaky")
        leaky = Container(series, "leaking", f"leaky-7c9f-x{number}").uses(0.1)
        leaky.sized(memory_request=150 * MIB, memory_limit=512 * MIB)
        begin = series.times[0]
        sizes = {at: 200 * MIB + (at - begin) * 20 * MIB // 3600 for at in series.times}
        series.add("container_memory_working_set_bytes", leaky.labels, sizes)
    cache = Container(series, "leaking", "cache").uses(0.1)
    sizes = {at: int(300 * MIB - 200 * MIB / (1 + (at - begin) / 600)) for at in series.times}
    series.add("container_memory_working_set_bytes", cache.labels, sizes)


def surrounded(series):
    """Add a workload with an autoscaler and init containers, in a namespace with bounds."""
    deployed(series, "around", "web-7c9f-x1", "web")
    for name in ("app", "setup", "proxy"):
        own = Container(series, "around", "web-7c9f-x1", name).uses(0.3)
        own.sized(cpu_request=0.1, memory_request=100 * MIB)
    state = {"namespace": "around", "pod": "web-7c9f-x1"}
    series.gauge("kube_pod_init_container_info", 1, **state, container="setup")
    proxy = {**state, "container": "proxy", "restart_policy": "Always"}
    series.gauge("kube_pod_init_container_info", 1, **proxy)
    scaler = {"namespace": "around", "horizontalpodautoscaler": "scaler"}
    target = {"scaletargetref_kind": "Deployment", "scaletargetref_name": "web"}
    series.gauge("kube_horizontalpodautoscaler_info", 1, **scaler, **target)
    by_use = {**scaler, "metric_name": "cpu", "metric_target_type": "utilization"}
    series.gauge("kube_horizontalpodautoscaler_spec_target_metric", 70, **by_use)
    bound = {"namespace": "around", "limitrange": "bounds", "type": "Container"}
    least = 200 * MIB
    series.gauge("kube_limitrange", least, **bound, resource="memory", constraint="min")
    quota = {"namespace": "around", "resourcequota": "tight", "resource": "requests.memory"}
    series.gauge("kube_resourcequota", 400 * MIB, **quota, type="hard")
    series.gauge("kube_resourcequota", 300 * MIB, **quota, type="used")


def bounded(series):
    """Add a workload in a namespace with a ratio of limits, and bounds of pods."""
    own = Container(series, "bounded", "web-7c9f-x1", "app").uses(0.3)
    own.sized(cpu_request=2, cpu_limit=4, memory_request=100 * MIB, memory_limit=200 * MIB)
    bounds = {"namespace": "bounded", "limitrange": "bounds"}
    ratio = {**bounds, "type": "Container", "constraint": "maxLimitRequestRatio"}
    series.gauge("kube_limitrange", 4, **ratio, resource="cpu")
    pods = {**bounds, "type": "Pod", "constraint": "min"}
    series.gauge("kube_limitrange", 128 * MIB, **pods, resource="memory")


def owners(series):
    """Add a pod of each kind of owner."""
    for pod, kind, name in (
        ("db-0", "StatefulSet", "db"),
        ("logs-x1", "DaemonSet", "logs"),
        ("once-x1", "Job", "once"),
        ("tidy-29012345-x1", "Job", "tidy-29012345"),
        ("sweep-now-x1", "Job", "sweep-now"),
        ("etcd-node-1", "Node", "node-1"),
        ("lonely-rs-x1", "ReplicaSet", "lonely-rs"),
        ("bare", "<none>", "<none>"),
    ):
        owned(series, "owners", pod, kind, name)
        Container(series, "owners", pod).uses(0.1)
    job = {"job_name": "sweep-now", "owner_kind": "CronJob", "owner_name": "sweep"}
    series.gauge("kube_job_owner", 1, namespace="owners", **job)


def labels(series):
    """Add containers whose series have other labels."""
    Container(series, "ancient", "web", names=("pod_name", "container_name")).uses(0.3)
    odd = Container(series, "odd", "web").uses(1.2)
    late = Container(series, "late", "web").uses(1.2)
    recent = series.times[-24:]
    series.gauge("temper_container_hottest_thread_cpus", 1.0, recent, **late.state)
    odd.sized(prefix="exported_", cpu_request=0.7)
    exported = {f"exported_{name}": value for name, value in odd.state.items()}
    target = {"namespace": "temper", "pod": "temper-agent-x", "container": "agent"}
    series.gauge("temper_container_hottest_thread_cpus", 1.0, **target, **exported)
    # An old kubelet's series by CPU, and the cgroup of a predecessor that ended.
    web = Container(series, "cpus", "web")
    for cpu in ("cpu00", "cpu01"):
        series.counter("container_cpu_usage_seconds_total", 0.2, cpu=cpu, **web.labels)
    series.counter("container_cpu_usage_seconds_total", 0.1, **{**web.labels, "id": "/before"})
    rare = range(series.times[0], series.now, 300)
    named = {"namespace": "rare", "pod": "web", "container": "app"}
    name = "container_cpu_usage_seconds_total"
    series.add(name, named, {at: 0.2 * (at - rare[0]) for at in rare})
    for cluster in ("east", "west"):
        twin = {"namespace": "twins", "pod": "web", "container": "app", "cluster": cluster}
        used = 0.1 if cluster == "east" else 0.4
        series.counter("container_cpu_usage_seconds_total", used, **twin)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Return the address of a Prometheus that knows all these containers."""
    folder = tmp_path_factory.mktemp("fleet")
    series = Series(int(time.time()))
    for add in (
        shop,
        plain,
        scaled,
        limited,
        starting,
        by_day,
        moved,
        leaking,
        surrounded,
        bounded,
        owners,
        labels,
    ):
        add(series)
    make_blocks(folder, series.lines())
    with serving(folder) as address:
        yield address


def rightsize(address, *options):
    words = [TEMPER, "rightsize", "--prometheus", address, *options]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)


@cache
def written(address, *options):
    """Return the report in JSON. It is asked for once: what this Prometheus knows stays."""
    words = ["--prometheus", address, "--output", "json", *options]
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def document(address, *options):
    return json.loads(written(address, *options))


def by_owner(address, namespace, *options):
    found = document(address, "--namespace", namespace, *options)["containers"]
    assert len({row["owner"] for row in found}) == len(found)
    return {row["owner"]: row for row in found}


def test_one_hot_thread_gets_a_core_and_four_lazy_ones_share(address):
    rows = by_owner(address, "shop")

    busy, easy = rows["Deployment/busy"], rows["Deployment/easy"]
    assert (busy["verdict"], busy["degraded"]) == ("exclusive", False)
    assert 1200 <= busy["recommended"]["cpu_request_millis"] <= 1330
    assert (easy["verdict"], easy["degraded"]) == ("shared", False)
    assert 1500 <= easy["recommended"]["cpu_request_millis"] <= 1580
    assert busy["used"]["hottest_thread"] == pytest.approx(1.0, rel=0.05)
    assert busy["current"]["cpu_request_millis"] == 500
    assert busy["current"]["memory_request_bytes"] == 128 * MIB
    assert busy["recommended"]["memory_request_bytes"] == 128 * MIB
    assert busy["confidence"] == "high"
    assert busy["learned_s"] == 6 * 3600


def test_without_thread_data_both_are_shared_and_the_report_says_what_it_cannot_know(address):
    report = document(address, "--namespace", "plain")
    rows = {row["owner"]: row for row in report["containers"]}

    for owner in ("Deployment/busy", "Deployment/easy"):
        assert (rows[owner]["verdict"], rows[owner]["degraded"]) == ("shared", True)
        assert rows[owner]["not_known"] == ["threads"]
        assert "no thread data" in rows[owner]["reasons"][0]
        assert rows[owner]["used"]["hottest_thread"] is None
    assert any("temper_container_hottest_thread_cpus" in note for note in report["notes"])


def test_a_container_that_uses_less_than_a_hot_thread_has_none(address):
    idle = by_owner(address, "plain")["Deployment/idle"]

    assert (idle["verdict"], idle["degraded"]) == ("shared", False)
    assert "no thread is hot" in idle["reasons"][0]


def test_replicas_of_a_deployment_are_one_row(address):
    web = by_owner(address, "scaled")["Deployment/web"]

    assert web["replicas"] == 3
    assert web["learned_s"] == 6 * 3600
    # A third of the time is that of the busiest replica, so it is the P95 of all.
    assert web["used"]["cpu_percentile"] == pytest.approx(0.6, rel=0.06)
    assert web["used"]["cpu_mean"] == pytest.approx(0.3, rel=0.06)
    assert web["used"]["memory_peak_bytes"] == 102 * MIB


def test_threads_of_one_replica_stand_for_all_and_the_reason_says_so(address):
    half = by_owner(address, "scaled")["Deployment/half"]

    assert half["verdict"] == "exclusive"
    assert "threads are known of 1 of 2 replicas" in half["reasons"]


def test_a_limit_that_throttles_is_raised_and_another_stays(address):
    rows = by_owner(address, "limited")

    slow, fine = rows["Pod/slow"], rows["Pod/fine"]
    assert slow["current"]["cpu_limit_millis"] == 500
    assert slow["recommended"]["cpu_limit_millis"] == 750
    assert any("throttled in 20.0%" in reason for reason in slow["reasons"])
    assert slow["used"]["throttled_s"] == pytest.approx(6 * 3600 / 100, rel=0.02)
    assert fine["recommended"]["cpu_limit_millis"] == 1000


@pytest.mark.parametrize("pod", ["told", "missed"])
def test_an_oom_kill_raises_the_memory_limit(address, pod):
    row = by_owner(address, "limited")[f"Pod/{pod}"]

    assert row["current"]["memory_limit_bytes"] == 256 * MIB
    assert row["recommended"]["memory_limit_bytes"] == 384 * MIB
    assert any("1 OOM kills" in reason for reason in row["reasons"])


def test_a_peak_of_memory_ten_days_ago_counts(address):
    old = by_owner(address, "limited")["Pod/old"]

    assert old["used"]["memory_peak_bytes"] == 900 * MIB
    assert old["recommended"]["memory_request_bytes"] == 1080 * MIB


def test_a_start_up_sets_no_request(address):
    row = by_owner(address, "begun")["Pod/slow-start"]
    whole = by_owner(address, "begun", "--startup", "0s")["Pod/slow-start"]

    assert row["recommended"]["cpu_request_millis"] in range(370, 420)
    assert row["recommended"]["memory_request_bytes"] == 360 * MIB
    assert row["used"]["startup_cpu_peak"] == pytest.approx(2.5, rel=0.06)
    assert row["used"]["startup_memory_peak_bytes"] == 900 * MIB
    assert any("of start-up used up to 2." in reason for reason in row["reasons"])
    assert whole["recommended"]["memory_request_bytes"] == 1080 * MIB
    assert whole["used"]["startup_s"] == 0


@pytest.mark.parametrize("name", ["day", "new"])
def test_the_hours_to_come_of_the_day_before_set_the_request(address, name):
    row = by_owner(address, "daily")[f"Deployment/{name}"]
    of_a_day = by_owner(address, "daily", "--hours", "48")[f"Deployment/{name}"]

    assert row["recommended"]["cpu_request_millis"] == pytest.approx(2000, rel=0.06)
    assert row["reasons"][1].startswith("a day ago the hours after this time of day needed more: ")
    assert row["used"]["cpu_percentile"] == pytest.approx(0.2, rel=0.06)
    assert not any("a day ago" in reason for reason in of_a_day["reasons"])


@pytest.mark.parametrize("owner", ["Pod/day", "Pod/ended", "Pod/young"])
def test_lazy_threads_of_an_agent_that_came_or_went_are_not_hot(address, owner):
    row = by_owner(address, "moved")[owner]

    assert (row["verdict"], row["hot_cores"]) == ("shared", 0)
    assert row["recommended"]["cpu_request_millis"] == pytest.approx(1500, rel=0.06)


def test_a_container_that_only_starts_is_judged_by_that(address):
    row = by_owner(address, "begun")["Pod/brief"]

    assert row["verdict"] == "exclusive"
    assert any("it counts" in reason for reason in row["reasons"])


def test_a_leak_is_named_with_its_rate_and_raises_nothing(address):
    row = by_owner(address, "leaking")["Deployment/leaky"]

    assert row["leak"]["bytes_per_hour"] == pytest.approx(20 * MIB, rel=0.1)
    assert row["leak"]["until_limit_s"] == pytest.approx((512 - 340) / 20 * 3600, rel=0.1)
    assert row["recommended"]["memory_request_bytes"] == 150 * MIB
    assert row["recommended"]["memory_limit_bytes"] == 512 * MIB
    assert "the memory of 2 of 2 replicas grows without end" in row["reasons"]


def test_a_cache_that_fills_is_no_leak(address):
    assert by_owner(address, "leaking")["Pod/cache"]["leak"] is None


def test_without_the_time_of_starts_a_note_says_what_is_not_known(address):
    unknown = document(address, "--namespace", "shop")
    known = document(address, "--namespace", "begun")

    assert any("container_start_time_seconds" in note for note in unknown["notes"])
    assert not any("container_start_time_seconds" in note for note in known["notes"])


def test_the_ratio_and_the_bounds_of_pods_decide(address):
    (app,) = document(address, "--namespace", "bounded")["containers"]

    assert app["recommended"]["cpu_request_millis"] == 1000
    assert app["recommended"]["memory_request_bytes"] == 100 * MIB
    told = "\n".join(app["reasons"])
    assert "with the limit 4 the CPU request is 1 in place of" in told
    assert "the LimitRange wants 128Mi for a pod, and 120Mi is advised" in told


def test_what_kube_state_metrics_tells_of_the_surroundings_decides(address):
    report = document(address, "--namespace", "around")
    rows = {row["container"]: row for row in report["containers"]}

    kinds = {name: row["container_kind"] for name, row in rows.items()}
    assert kinds == {"app": "app", "setup": "init", "proxy": "sidecar"}
    app = rows["app"]
    assert app["recommended"]["cpu_request_millis"] == 100
    assert app["recommended"]["memory_request_bytes"] == 200 * MIB
    told = "\n".join(app["reasons"])
    assert "the HPA scaler aims at 70 % of the CPU request: the request stays" in told
    assert "the LimitRange allows at least 200Mi in place of 120Mi" in told
    assert "the quota tight leaves 100Mi of memory requests" in told
    assert any("not known by a Prometheus: VPA" in note for note in report["notes"])


def test_each_kind_of_owner_is_told(address):
    assert set(by_owner(address, "owners")) == {
        "StatefulSet/db",
        "DaemonSet/logs",
        "Job/once",
        "CronJob/tidy",
        "CronJob/sweep",
        "Pod/etcd-node-1",
        "ReplicaSet/lonely-rs",
        "Pod/bare",
    }


def test_the_labels_of_an_old_kubelet_are_understood(address):
    (row,) = by_owner(address, "ancient").values()

    assert (row["pod"], row["container"]) == ("web", "app")
    assert row["not_known"] == ["threads", "resources"]
    assert "requests and limits are not known" in row["reasons"]


def test_labels_that_a_scrape_renamed_are_understood(address):
    (row,) = by_owner(address, "odd").values()

    assert row["verdict"] == "exclusive"
    assert row["current"]["cpu_request_millis"] == 700


def test_a_step_shorter_than_the_scrapes_is_told(address):
    short = rightsize(address, "--namespace", "rare")
    (row,) = by_owner(address, "rare", "--step", "5m").values()

    assert short.returncode == 2
    assert "give a --step" in short.stderr
    assert row["used"]["cpu_percentile"] == pytest.approx(0.2, rel=0.06)


def test_threads_that_an_agent_knows_since_some_minutes_are_judged_by_that_time(address):
    (row,) = by_owner(address, "late").values()

    assert row["verdict"] == "exclusive"
    assert row["used"]["hottest_thread"] == pytest.approx(1.0, rel=0.06)
    assert any("of the measured time" in reason for reason in row["reasons"])


def test_cpus_of_one_cgroup_add_up_and_cgroups_of_one_container_do_not(address):
    (row,) = by_owner(address, "cpus").values()

    assert row["used"]["cpu_percentile"] == pytest.approx(0.4, rel=0.06)


def test_clusters_that_are_merged_are_told_and_can_be_told_apart(address):
    both = document(address, "--namespace", "twins")
    east = document(address, "--namespace", "twins", "--selector", "cluster=east")

    assert any(note.startswith("2 clusters") for note in both["notes"])
    assert not any("clusters" in note for note in east["notes"])
    assert east["containers"][0]["used"]["cpu_percentile"] == pytest.approx(0.1, rel=0.06)


def test_a_report_of_all_namespaces_has_each_container_once(address):
    report = document(address)

    places = [(row["namespace"], row["owner"], row["container"]) for row in report["containers"]]
    assert places == sorted(set(places))
    assert {"shop", "plain", "scaled", "limited", "owners"} <= {place[0] for place in places}
    assert report["source"] == "prometheus"


def test_the_numbers_of_the_rule_can_be_chosen(address):
    (usual,) = by_owner(address, "cpus").values()
    (wide,) = by_owner(address, "cpus", "--margin", "2").values()

    assert usual["recommended"]["cpu_request_millis"] == pytest.approx(500, rel=0.06)
    assert wide["recommended"]["cpu_request_millis"] == pytest.approx(800, rel=0.06)


def test_small_pieces_of_time_and_namespaces_tell_the_same(address):
    window = Window(int(time.time()), 60, 300)
    with Prometheus(Access(address)) as prometheus:
        at_once = report(Fleet(prometheus, Scope(), window))
        asked = prometheus.asked
        pieces = report(Fleet(prometheus, Scope(), window, most_containers=1, most_samples=400))

    assert pieces == at_once
    assert prometheus.asked - asked > 3 * asked


def test_a_coarser_step_and_less_time_tell_the_same(address):
    rows = by_owner(address, "shop", "--hours", "2", "--step", "5m")

    assert rows["Deployment/busy"]["verdict"] == "exclusive"
    assert rows["Deployment/busy"]["learned_s"] == 2 * 3600


def test_the_table_names_workload_replicas_and_degraded_verdicts(address):
    table = rightsize(address, "--namespace", "scaled", "--no-explain").stdout
    degraded = rightsize(address, "busy", "--namespace", "plain").stdout

    assert "scaled/web/app x3" in table
    assert "shared (degraded)" in degraded


def test_csv_has_the_owner_and_the_replicas(address):
    done = rightsize(address, "shop/busy", "--namespace", "shop", "--output", "csv")

    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["owner"], row["replicas"], row["degraded"]) == ("Deployment/busy", "1", "False")


def test_a_change_that_is_due_fails_on_request(address):
    assert rightsize(address, "--namespace", "shop", "--fail-on-change").returncode == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--namespace", "nowhere"), "has no container_cpu_usage_seconds_total"),
        (("nothing", "--namespace", "shop"), "known are: shop/busy, shop/easy"),
        (("--selector", "cluster"), "must be a label and its value"),
        (("--selector", "a=1", "--selector", "a=2"), "a is given twice"),
        (("--step", "5"), "must be a duration"),
        (("--step", "5h"), "must be from 10s to 3600s"),
        (("--prometheus-ca-file", "/dev/null"), "needs an address with https"),
    ],
)
def test_a_wrong_option_gets_one_line(address, options, said):
    done = rightsize(address, *options)

    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_options_of_a_fleet_need_its_address():
    done = subprocess.run(
        [TEMPER, "rightsize", "--namespace", "shop"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "needs --prometheus" in done.stderr


def backtested(address, *namespaces):
    """Return the steps of containers by name, as a backtest reads them."""
    way = Access(address)
    window = Window(int(time.time()), 60, 24 * 60)
    with Prometheus(way, smaller="less") as prometheus:
        scope = Scope(namespaces=namespaces)
        return steps_of_demands(demands_of_fleet(Fleet(prometheus, scope, window)))


def test_a_backtest_reads_each_hour_of_a_fleet(address):
    steps = backtested(address, "shop", "scaled")

    busy = steps["shop/Deployment/busy/app"]
    whole = [step for step in busy if step.merged().cpu.seconds == 3600]
    assert len(whole) >= 5
    for step in whole:
        demand = step.merged()
        assert demand.cpu.percentile(0.95) == pytest.approx(1.2, rel=0.06)
        assert demand.ranks[0].percentile(0.95) == pytest.approx(1.0, rel=0.06)
        assert demand.counts.peak_bytes == 100 * MIB
    assert all(b.at - a.at == 3600 for a, b in pairwise(busy))
    assert {len(step.replicas) for step in steps["scaled/Deployment/web/app"]} == {3}


def test_a_backtest_reads_throttling_and_kills_by_the_hour(address):
    steps = backtested(address, "limited")

    throttled = [step.merged().counts.throttled_s for step in steps["limited/Pod/slow/app"]]
    assert max(throttled) == pytest.approx(36, rel=0.05)
    assert sum(step.merged().counts.oom_kill for step in steps["limited/Pod/told/app"]) >= 1
    assert not sum(step.merged().counts.oom_kill for step in steps["limited/Pod/fine/app"])


def test_a_backtest_of_a_fleet_compares_the_rules(address):
    options = ["--prometheus", address, "--namespace", "shop", "--days", "1", "--output", "json"]
    done = subprocess.run(
        [TEMPER, "rightsize", "backtest", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    containers = document["equal_budget"]["temper"]["containers"]
    assert set(containers) == {"shop/Deployment/busy/app", "shop/Deployment/easy/app"}
    assert document["alone"]["temper"]["throttled_s"] == 0
    assert document["alone"]["percentile"]["throttled_s"] >= 0


def test_a_backtest_needs_an_address_for_the_options_of_a_fleet():
    done = subprocess.run(
        [TEMPER, "rightsize", "backtest", "--namespace", "shop"],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )

    assert done.returncode == 2
    assert "needs --prometheus" in done.stderr
