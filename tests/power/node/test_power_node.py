"""The instrument: what it publishes, when it caps, and how every limit comes back."""

import os
import subprocess
import sys

import pytest

from temper_core import CheckState, KernelValues, Mode, PodSample, Status, Tier
from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_power.node.families import FAMILIES
from temper_plugin_power.node.instrument import PowerNode
from temper_plugin_power.settings.node import NodeSettings
from tests.power.node.rapl_tree import RaplTree, put
from tests.power.node.twin_file import TwinFile

ACTING = {"actuate": True, "interval": "1s"}


class Node:
    """A node whose agent looks at a made tree, with a file of its specification."""

    def __init__(self, folder, packages=2):
        self.tree = RaplTree(folder / "sys", packages)
        self.folder = folder
        self.spec = folder / "spec/twin.json"
        self.say = TwinFile(self.spec).say
        self.context = MadeContext(folder=folder)
        self.at_s = 100.0

    def opened(self, **settings):
        paths = {"spec_file": str(self.spec), "powercap_path": str(self.tree.powercap)}
        given = NodeSettings(**{**paths, **settings})
        return PowerNode.of(given, self.context, lambda: self.at_s)

    def look(self, node, **changes):
        """Let the instrument see a window. Return its section."""
        self.at_s += 5
        snapshot = make_snapshot(monotonic_s=self.at_s, **changes)
        section = node.section(snapshot)
        node.tell(snapshot)
        return section

    def limits(self):
        return [self.tree.limit_watts(number) for number in (0, 1)]


@pytest.fixture
def made(tmp_path):
    return Node(tmp_path)


def samples(node):
    return {
        (metric.name.removeprefix("temper_power_"), *sample.labels.values()): sample.value
        for metric in node.metrics()
        for sample in metric.samples
    }


def test_the_section_and_the_metrics_have_packages_tiers_and_limits(made):
    node = made.opened()
    made.look(node)
    made.tree.use(500)
    pods = (PodSample("shop", "web", "u", Tier.HIGH, threads=1, cpu_used=2.0),)

    section = made.look(node, pods=pods)

    assert section["backends"] == ["rapl"]
    assert (section["package_watts"], section["dram_watts"]) == (100.0, 0.0)
    assert section["tier_watts"]["high"] == 100.0
    assert samples(node)["tier_watts", "node-1", "high"] == 100.0
    assert samples(node)["cap_watts", "node-1", "package-1"] == 150.0
    assert section["caps"]["message"] == "actuate is off"


def test_a_machine_without_any_meter_says_what_is_not_here(made, tmp_path):
    node = made.opened(powercap_path=str(tmp_path / "empty"))

    section = made.look(node)
    (check,) = node.checks()

    assert section["backends"] == ["none"]
    assert "does not exist" in section["not_here"]["rapl"]
    assert (section["package_watts"], section["tier_watts"]) == (None, {})
    assert samples(node)["backend", "node-1", "none"] == 1.0
    assert (check.name, check.state) == ("power readings", CheckState.UNKNOWN)
    assert check.detail.startswith("not here: ")


def test_every_metric_is_declared(made):
    assert [metric.name for metric in made.opened().metrics()] == [each.name for each in FAMILIES]


def test_without_actuate_no_limit_changes_and_nothing_is_kept(made):
    made.say(packagePowerCapPctOfMax=60)

    made.look(made.opened())

    assert made.limits() == [150.0, 150.0]
    assert not (made.folder / "temper").exists()


def test_a_cap_is_set_read_back_told_and_given_back_at_the_end(made):
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)

    made.look(node)
    section = made.look(node)
    during = made.limits()
    node.close()

    assert (during, made.limits()) == ([123.0, 123.0], [150.0, 150.0])
    assert section["caps"]["watts"] == {"package-0": 123.0, "package-1": 123.0}
    assert made.context.recorded == [
        ("power_cap_applied", "package-0", "asked 123.0 W, read back 123.0 W"),
        ("power_cap_applied", "package-1", "asked 123.0 W, read back 123.0 W"),
        ("power_cap_restored", "package-0", "the former limit: the agent stops"),
        ("power_cap_restored", "package-1", "the former limit: the agent stops"),
    ]
    assert samples(node)["actions_total", "node-1", "applied"] == 2.0


def test_another_cap_is_set_and_the_first_limit_comes_back(made):
    node = made.opened(**ACTING)
    made.say(packagePowerCapWatts=100)
    made.look(node)
    made.say(packagePowerCapWatts=80)
    made.look(node)
    during = made.limits()
    made.say(packagePowerCapPctOfMax=100)
    made.look(node)

    assert (during, made.limits()) == ([80.0, 80.0], [150.0, 150.0])


@pytest.mark.parametrize(("age_s", "expected"), [(290, 123.0), (310, 150.0)])
def test_a_specification_that_is_too_old_lifts_the_caps(made, age_s, expected):
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)
    made.say(packagePowerCapPctOfMax=60, age_s=age_s)

    made.look(node)

    assert made.limits() == [expected, expected]


def test_an_agent_that_only_observes_lifts_the_caps(made):
    status = Status(Mode.OBSERVE_ONLY, "not_asked")
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)

    made.look(node, status=status)

    assert made.limits() == [150.0, 150.0]
    assert made.look(node, status=status)["caps"]["message"] == "the agent only observes"


@pytest.mark.parametrize(
    "status", [Status(Mode.SAFE_MODE, "requested"), Status(Mode.OBSERVE_ONLY, "no_sched_ext")]
)
def test_a_request_for_safe_mode_lifts_the_caps_whatever_the_mode(made, status):
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)
    made.context.has_request = True

    made.look(node, status=status)
    during = made.limits(), made.look(node, status=status)["caps"]["message"]
    made.context.has_request = False
    made.look(node, status=status)

    assert during == ([150.0, 150.0], "safe mode is requested")
    assert made.limits() == [123.0, 123.0]


def test_a_node_without_sched_ext_is_capped_all_the_same(made):
    made.say(packagePowerCapPctOfMax=60)

    made.look(made.opened(**ACTING), status=Status(Mode.OBSERVE_ONLY, "no_sched_ext"))

    assert made.limits() == [123.0, 123.0]


def test_a_file_that_vanishes_lifts_the_caps(made):
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)
    made.spec.unlink()

    made.look(node)

    assert made.limits() == [150.0, 150.0]
    assert "No such file" in made.look(node)["caps"]["message"]


@pytest.mark.parametrize("settings", [{}, ACTING])
def test_the_next_agent_gives_back_what_a_crash_has_left(made, settings):
    KernelValues(made.context.state).change(made.tree.limit(0), "90000000")
    node = made.opened(**settings)

    made.look(node)

    assert made.limits() == [150.0, 150.0]
    ((kind, _, reason),) = made.context.recorded
    assert (kind, reason) == ("power_cap_restored", "left by an agent that crashed")


def test_a_second_agent_leaves_the_limits_of_the_first_alone(made):
    made.say(packagePowerCapPctOfMax=60)
    first, second = made.opened(**ACTING), made.opened(**ACTING)
    made.look(first)

    made.look(second)
    second.close()

    assert made.limits() == [123.0, 123.0]
    assert "another process" in made.look(second)["caps"]["message"]


LOCKS = """
import fcntl, os, sys
os.setuid(65534)
for path in sys.argv[1:]:
    try:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pass
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the rights of another user")
def test_a_user_without_rights_keeps_no_agent_from_the_limits(made):
    """Everybody may read the kernel's limits, and so lock their files. Energy is root's."""
    paths = sorted(path for path in made.tree.devices.rglob("*") if path.is_file())
    for path in paths:
        path.chmod(0o400 if path.name == "energy_uj" else 0o644)
    made.say(packagePowerCapPctOfMax=60)
    # A user without rights reaches the files by the folders above, as on a machine.
    for folder in (*made.tree.devices.parents, *made.tree.devices.rglob("*/")):
        if folder.is_relative_to(made.folder.parent.parent):
            folder.chmod(0o755)

    with subprocess.Popen(
        [sys.executable, "-c", LOCKS, *map(str, paths)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as user:
        assert user.stdout.readline() == "locked\n"
        node = made.opened(**ACTING)
        said = made.look(node), made.look(node)
        node.close()

    assert said[1]["caps"]["message"] == ""
    assert ("power_cap_applied", "package-0") in [each[:2] for each in made.context.recorded]


def test_a_limit_that_somebody_else_has_set_stays_at_the_end(made):
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)
    put(made.tree.limit(0), 70_000_000)

    node.close()

    assert made.limits() == [70.0, 150.0]
    assert "left as another process has set it" in made.context.recorded[-2][2]


def test_a_package_without_a_maximum_is_blocked_once(made):
    put(made.tree.at("intel-rapl:0", "constraint_0_max_power_uw"), 0)
    made.say(packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)

    made.look(node)
    made.look(node)

    assert made.limits() == [150.0, 123.0]
    blocked = [each for each in made.context.recorded if each[0] == "power_cap_blocked"]
    assert blocked == [
        ("power_cap_blocked", "package-0", "the kernel names no maximum of the package")
    ]


def test_a_limit_that_cannot_be_written_is_an_error_and_named_by_doctor(made):
    made.say(packagePowerCapPctOfMax=60)
    link = made.tree.limit(0)
    link.rename(link.with_name("elsewhere"))
    link.symlink_to("elsewhere")
    node = made.opened(**ACTING)

    made.look(node)

    assert made.context.recorded[0][:2] == ("power_cap_error", "package-0")
    assert samples(node)["errors_total", "node-1"] == 1.0


def test_doctor_says_whether_caps_are_followed(made):
    made.say("another-node", packagePowerCapPctOfMax=60)
    node = made.opened(**ACTING)
    made.look(node)
    wrong = {check.name: check for check in node.checks()}["power caps"]
    made.say(packagePowerCapPctOfMax=60)
    made.look(node)
    right = {check.name: check for check in node.checks()}["power caps"]

    assert (wrong.state, right.state) == (CheckState.WARNING, CheckState.OK)
    assert "must be 'node-1'" in wrong.detail


def test_doctor_warns_where_caps_are_asked_for_and_there_is_no_package(made, tmp_path):
    node = made.opened(**ACTING, powercap_path=str(tmp_path / "empty"))
    made.look(node)

    states = {check.name: check.state for check in node.checks()}

    assert states == {
        "power readings": CheckState.UNKNOWN,
        "power caps": CheckState.WARNING,
        "GPU power caps": CheckState.UNKNOWN,
    }
