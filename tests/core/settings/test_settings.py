import json
import os

import attrs
import pytest

from temper_core import settings
from temper_core.errors import DocumentError
from temper_core.records.tiers import LayerKind, Tier
from temper_core.settings.models import Settings

WORKLOAD = "[[workloads]]\nname = 'a'\nunit = 'a'\n"
PIN = "must be an absolute path in a directory of its own"
PATH = "must be an absolute path without needless slashes"
TIER_TABLE = {
    Tier.CRITICAL: (LayerKind.CONFINED, True, False, 5_000, 1000),
    Tier.HIGH: (LayerKind.GROUPED, True, True, 10_000, 500),
    Tier.NORMAL: (LayerKind.GROUPED, False, False, 20_000, 100),
    Tier.LOW: (LayerKind.OPEN, False, False, 30_000, 50),
    Tier.BACKGROUND: (LayerKind.OPEN, False, False, 5_000, 10),
}


@pytest.mark.parametrize("tier", Tier)
def test_every_promised_default_of_a_tier_holds(tier):
    made_of = Settings().tiers.of(tier)

    assert TIER_TABLE[tier] == (
        made_of.kind,
        made_of.protected,
        made_of.preempt,
        made_of.slice_us,
        made_of.weight,
    )


def test_the_promised_thresholds_and_reload_policy_hold():
    found = Settings()

    assert attrs.astuple(found.priority_mapping) == (1_000_000, 100_000, 0, -100, 2_000_000_000)
    assert found.plan.reserve_cores == 1
    assert (found.scheduler.quiet_s, found.scheduler.min_interval_s) == (2.0, 30.0)
    assert (found.scheduler.reloads_per_hour, found.scheduler.crash_budget) == (20, 5)
    assert found.server.listen == "127.0.0.1:9100"
    assert (found.lint.windows, found.lint.fire_after, found.lint.clear_after) == (5, 3, 5)


def test_one_key_of_a_tier_changes_that_key_only(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("[tiers.critical]\nslice_us = 3000\n")

    critical = settings.load(path).settings.tiers.critical

    assert critical == attrs.evolve(Settings().tiers.critical, slice_us=3000)


def test_every_value_says_where_it_came_from(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text("node = 'n1'\n[tiers.critical]\nslice_us = 3000\n")

    sources = {origin.path: origin.source for origin in settings.load(path).origins()}

    assert sources["node"] == str(path)
    assert sources["tiers.critical.slice_us"] == str(path)
    assert sources["tiers.critical.weight"] == "default"
    assert sources["server.listen"] == "default"


def test_without_a_file_the_defaults_are_in_force(tmp_path, monkeypatch):
    monkeypatch.setattr("temper_core.settings.reader.DEFAULT_PATH", tmp_path / "agent.toml")

    effective = settings.load(None)

    assert effective.settings == Settings()
    assert {origin.source for origin in effective.origins()} == {"default"}


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
def test_a_default_file_that_may_not_be_looked_at_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("temper_core.settings.reader.DEFAULT_PATH", tmp_path / "agent.toml")
    tmp_path.chmod(0o700)

    os.seteuid(65534)
    try:
        with pytest.raises(DocumentError, match=r"agent\.toml: Permission denied"):
            settings.load(None)
    finally:
        os.seteuid(0)


def test_a_file_that_was_named_must_be_there(tmp_path):
    with pytest.raises(DocumentError, match="No such file"):
        settings.load(tmp_path / "agent.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[priority_mapping]\nhigh = 2000000", "priority_mapping: must fall from system"),
        ("[tiers.low]\nutil_range = [0.8, 0.2]", "tiers.low: util_range must be [low, high]"),
        ("[scheduler]\nwatchdog_ms = 90000", "scheduler.watchdog_ms: must be <= 30000"),
        ("[scheduler]\nloop_deadline_s = 1e-10", "scheduler.loop_deadline_s: must be >= 0.1"),
        ("[scheduler]\nloop_deadline_s = 1e18", "scheduler.loop_deadline_s: must be <= 86400"),
        ("[plugin_host]\ndeadline_s = 1e12", "plugin_host.deadline_s: must be <= 86400"),
        ("[scheduler]\nsteer_s = 1e-9", "scheduler.steer_s: must be >= 0.1"),
        ("[scheduler]\nsteering_pin = 'hints'", f"scheduler.steering_pin: {PIN}, not 'hints'"),
        ("[scheduler]\nsteering_pin = '/hints'", f"scheduler.steering_pin: {PIN}"),
        ('[scheduler]\nsteering_pin = "/a\\u0000/b"', f"scheduler.steering_pin: {PIN}"),
        ("[observe]\nperiod_s = 61", "observe.period_s: must be <= 60"),
        ("[pods]\ncgroup_driver = 'x'", "must be one of 'auto', 'systemd', 'cgroupfs', not 'x'"),
        (
            "[[workloads]]\nname = 'a b'\nunit = 'x'",
            "workloads[0].name: must be 1 to 63 letters",
        ),
        ("[observe]\ntier = 'bpf_iter'", "'proc', not 'bpf_iter'; did you mean 'bpf-iter'?"),
        ("run_directory = 'run'", f"run_directory: {PATH}, not 'run'"),
        ("state_directory = '/a/'", f"state_directory: {PATH}, not '/a/'"),
        ("[plugin_host]\ndirectory = 'p'", f"plugin_host.directory: {PATH}, or empty, not 'p'"),
        ("[server]\nhosts = ['a', 'b c']", "server.hosts: must be the name of a host, such a"),
        ("[plan]\nheadroom_cores = 4097", "plan.headroom_cores: must be <= 4096: 4097"),
        ("[plan]\nsystem_process_cgroups = ['a']", "plan.system_process_cgroups: must be '/', or"),
        ("[[workloads]]\nname = 'a'", "needs one of cgroup, unit, process"),
        ("[[workloads]]\nname = 'a'\nprocess = '*-b'", "must begin with a character of the name"),
        ("[[workloads]]\nname = 'a'\nprocess = ''", "must begin with a character of the name"),
        ("[lint]\nwindows = 2\nfire_after = 9", "lint: fire_after, 9, must be at most windows, 2"),
        ("[server]\nlisten = 9100", "server.listen: must be a string, not 9100"),
        ("[server]\nlisten = 'localhost'", "server.listen: must be an address and a port such as"),
        ("[server]\nlisten = '127.0.0.1:99999'", "or '' for the socket only, not '127."),
        ("[server]\nlisten = ''\nsocket = ''", "server: listen and socket are both empty"),
        ("[pods]\nsource = 'file'", "pods: file must name a PodList where source is 'file'"),
        (WORKLOAD + "cpu_request = '2x'", "workloads[0].cpu_request: '2x' is no CPU quantity such"),
        (WORKLOAD + "cpu_limit = '-1'", "workloads[0].cpu_limit: '-1' is negative"),
        ("[tiers.urgent]\nweight = 1", "tiers: unknown key 'urgent'"),
        ("[tiers.low]\nslice_us = 3000", "tiers.low.slice_us: has no effect while the kind is"),
        ("[tiers.background]\nweight = 5", "tiers.background.weight: has no effect while"),
        ("[tiers.high]\nkind = 'Open'\npreempt = true", "tiers.high.preempt: has no effect"),
        ("[tiers.high]\nisolation = 'loose'", "tiers.high.isolation: must be"),
        ("[observe]\nedges = false", "observe.edges: is now [plugins.tracer] edges"),
    ],
)
def test_a_wrong_value_is_named_with_file_path_and_what_is_allowed(tmp_path, text, problem):
    path = tmp_path / "agent.toml"
    path.write_text(text)

    with pytest.raises(DocumentError) as caught:
        settings.load(path)

    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("named", "environment", "expected"),
    [
        ("said", "worker-3", "said"),
        ("", "worker-3", "worker-3"),
        ("", "", os.uname().nodename),
        ("", None, os.uname().nodename),
    ],
)
def test_a_node_is_called_by_its_setting_then_by_the_environment_then_by_the_host(
    named, environment, expected, monkeypatch
):
    monkeypatch.delenv("NODE_NAME", raising=False)
    if environment is not None:
        monkeypatch.setenv("NODE_NAME", environment)

    assert Settings(node=named).node_name == expected


def test_fire_after_follows_windows_where_it_is_not_given(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text("lint.windows = 2\n")

    found = settings.load(file).settings.lint

    assert (found.windows, found.fire_after, found.clear_after) == (2, 2, 5)


SHARED = ("safe_mode.file", "safe_mode.state", "server.socket")


@pytest.mark.parametrize("key", SHARED)
@pytest.mark.parametrize("path", ["safe-mode", "./safe-mode", "/", "/x/", "/x/.", "/x/..", "/\x00"])
def test_a_file_that_several_processes_share_has_an_absolute_path(tmp_path, key, path):
    file = tmp_path / "agent.toml"
    file.write_text(f"{key} = {json.dumps(path)}\n")

    with pytest.raises(DocumentError) as refused:
        settings.load(file)

    empty = ", or empty" if key == "server.socket" else ""
    assert refused.value.problems == (
        f"{key}: must be the absolute path of a file{empty}, not {path!r}",
    )


@pytest.mark.parametrize(
    "key", ["scheduler.engine", "pods.file", "server.token_file", "profiles.directory"]
)
def test_a_path_without_nul_may_be_relative(tmp_path, key):
    file = tmp_path / "agent.toml"
    file.write_text(f'{key} = "a/b"\n')
    settings.load(file)
    file.write_text(f'{key} = "a\\u0000b"\n')

    with pytest.raises(DocumentError) as refused:
        settings.load(file)

    assert refused.value.problems == (f"{key}: must be a path without NUL, not 'a\\x00b'",)
