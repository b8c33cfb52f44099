"""What the agent tells of the caps of its NodeTwin."""

import pytest

from temper_core.testing import MadeContext, make_snapshot
from temper_plugin_power.node.actions import Action
from temper_plugin_power.node.control import Control
from temper_plugin_power.node.control_status import Device, control_status
from temper_plugin_power.node.zones import find_packages
from temper_plugin_power.settings.node import NodeSettings
from tests.power.node.rapl_tree import RaplTree, put

NOW = 1_800_000_000.0
NO_GPUS = Device("host-nvidia", "pynvml is not installed")
SAID_AT = "2027-01-15T08:00:00Z"


def a_twin(**spec):
    named = {"nodeName": "node-1", "profile": "eco"}
    return {
        "kind": "NodeTwin",
        "spec": {**named, **spec},
        "status": {"lastUpdated": SAID_AT},
    }


class Node:
    """A node whose agent follows a NodeTwin that was read."""

    def __init__(self, folder):
        self.tree = RaplTree(folder / "sys", packages=1)
        self.context = MadeContext(folder=folder)

    def told(self, twin, why_none="", *, gpus=NO_GPUS, **settings):
        """Return the status after one turn."""
        packages = find_packages(self.tree.powercap).packages
        given = NodeSettings(**{"actuate": True, **settings})
        found = (twin, why_none)
        control = Control(
            *(given, self.context, packages),
            found=lambda: found,
            why_no_gpus=lambda: gpus.why_none,
        )
        control.turn(NOW, make_snapshot())
        why_none = "" if packages else "there is no package"
        cpus = Device("rapl", why_none, control.capping.caps_watts, control.capping.last)
        status = control_status(control, control.message, cpus, gpus)
        control.close()
        return status.parts


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def capped(**cpu):
    return a_twin(cpu=cpu)


def test_a_cap_in_force_is_applied_with_what_was_read_back(node):
    told = node.told(capped(packagePowerCapWatts=100))

    assert told["cpu"] == {
        "backend": "rapl",
        "result": "applied",
        "message": "package-0: asked 100.0 W, read back 100.0 W",
    }


def test_without_a_cap_there_is_none(node):
    assert node.told(a_twin())["cpu"]["result"] == "none"


def test_a_cap_above_the_limit_is_none(node):
    told = node.told(capped(packagePowerCapPctOfMax=100))["cpu"]

    assert (told["result"], told["message"]) == ("none", "the limit without a cap is as low")


def test_an_agent_that_may_not_act_says_so(node):
    told = node.told(capped(packagePowerCapWatts=100), actuate=False)["cpu"]

    assert (told["result"], told["message"]) == ("none", "actuate is off")


def test_a_package_without_a_maximum_is_blocked(node):
    put(node.tree.at("intel-rapl:0", "constraint_0_max_power_uw"), 0)

    assert node.told(capped(packagePowerCapPctOfMax=60))["cpu"]["result"] == "blocked"


def test_a_limit_that_cannot_be_written_is_an_error(node):
    link = node.tree.limit(0)
    link.rename(link.with_name("elsewhere"))
    link.symlink_to("elsewhere")

    assert node.told(capped(packagePowerCapWatts=100))["cpu"]["result"] == "error"


@pytest.mark.parametrize(
    ("twin", "message"),
    [
        ({**a_twin(), "status": {"lastUpdated": "2027-01-15T07:54:59Z"}}, "spec_timeout is over"),
        ({**a_twin(), "status": {}}, "status.lastUpdated: must be a time"),
        ({**a_twin(), "spec": {"nodeName": "other"}}, "spec.nodeName: must be 'node-1'"),
        (None, "the cluster has no NodeTwin node-1"),
    ],
)
def test_a_twin_that_cannot_be_followed_is_blocked_with_the_reason(node, twin, message):
    told = node.told(twin, "the cluster has no NodeTwin node-1")["cpu"]

    assert told["result"] == "blocked"
    assert message in told["message"]


def test_a_machine_without_packages_has_no_backend(node, tmp_path):
    node.tree.powercap = tmp_path / "empty"

    told = node.told(capped(packagePowerCapWatts=100))["cpu"]

    assert (told["backend"], told["result"]) == ("none", "blocked")


def test_a_cap_of_gpus_is_told_apart_from_that_of_cpus(node):
    gpus = Device("host-nvidia", "", {"gpu-0": 210.0}, {"gpu-0": Action("applied", "gpu-0", "so")})

    told = node.told(a_twin(gpu={"powerCap": {"capPctOfMax": 60}}), gpus=gpus)

    assert told["cpu"]["result"] == "none"
    assert told["gpu"] == {"backend": "host-nvidia", "result": "applied", "message": "gpu-0: so"}


def test_a_cap_of_gpus_that_are_not_here_is_blocked_with_the_reason(node):
    told = node.told(a_twin(gpu={"powerCap": {"capWattsPerGpu": 200}}))["gpu"]

    assert told == {"backend": "none", "result": "blocked", "message": "pynvml is not installed"}


def test_a_status_is_the_same_whenever_it_was_written(node):
    packages = find_packages(node.tree.powercap).packages
    control = Control(NodeSettings(), node.context, packages)
    status = control_status(control, "actuate is off", NO_GPUS, NO_GPUS)
    written = {part: {**fields, "updatedAt": SAID_AT} for part, fields in status.parts.items()}

    assert status.equals(written)
    assert not status.equals({**written, "cpu": {**written["cpu"], "result": "applied"}})
    assert not any(map(status.equals, ({}, None, [], {"cpu": 1})))


def test_a_node_without_packages_follows_nothing_once_its_gpus_do_not_answer(node):
    problems = [""]
    control = Control(
        *(NodeSettings(actuate=True), node.context, ()),
        found=lambda: (a_twin(gpu={"powerCap": {"capWattsPerGpu": 250}}), ""),
        why_no_gpus=lambda: problems[0],
    )
    control.turn(NOW, make_snapshot())
    assert control.spec is not None

    problems[0] = "NVML has not answered for more than 3 s"
    control.turn(NOW, make_snapshot())

    assert control.spec is None
    assert control.message.endswith("no GPU can be capped: NVML has not answered for more than 3 s")
    control.close()
