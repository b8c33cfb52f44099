"""What labels of a node say of its hardware."""

from datetime import UTC, datetime

import pytest

from temper_plugin_power.controller.hardware_writing import HardwareWriter, hardware_status
from temper_plugin_power.controller.twins import hardware_of, hardware_record
from temper_plugin_power.resources.kinds import NODE_HARDWARE
from tests.power.test_node_plans import a_node
from tests.power.test_resources import misfits

CPU = "feature.node.kubernetes.io/cpu-model.name"
SOCKETS = "feature.node.kubernetes.io/cpu-sockets"
GPU, GPUS = "nvidia.com/gpu.product", "joulie.io/hw.gpu-count"
EPYC = {CPU: "AMD EPYC 9654 96-Core Processor", SOCKETS: "2"}
H100 = {GPU: "NVIDIA-H100-80GB-HBM3", GPUS: "8"}
OWN = {GPU: "own-gpu", GPUS: "2"}


@pytest.mark.parametrize("labels", [EPYC, H100, EPYC | H100, OWN, {CPU: "odd"}])
def test_a_status_fits_the_schema_and_says_what_the_labels_say(labels):
    node, products = a_node("n1", **labels), {"own-gpu": 300.0}

    status = hardware_status(node, products)

    assert list(misfits({"status": status}, NODE_HARDWARE)) == []
    record = hardware_record({"status": status})
    assert record.hardware == hardware_of(node, None, products)


def test_a_model_that_the_catalogue_has_is_named_by_its_key():
    status = hardware_status(a_node("n1", **EPYC, **OWN), {})

    resolved = status["inventoryResolution"]
    assert resolved["hardwareCatalogKey"] == {"cpu": "EPYC 9654", "gpu": ""}
    assert resolved["exactness"] == {"cpu": "exact", "gpu": "generic"}
    assert status["cpu"]["landmarks"] == {"maxBoostMHz": 3700}
    assert "capRangePerGpu" not in status["gpu"]


def test_a_node_without_labels_of_its_hardware_has_none():
    assert hardware_status(a_node("n1"), {}) == {}


class Server:
    """An API server that keeps the names of the objects that are made."""

    def __init__(self):
        self.made = []

    def post(self, _path, document):
        self.made.append(document["metadata"]["name"])

    def patch(self, _path, _change):
        return {}


def test_what_is_not_written_in_time_is_left_to_the_next_cycle():
    server, times = Server(), iter([0.0, 1.0, 19.0, 20.0])
    nodes = [a_node(name, **EPYC) for name in ("n1", "n2", "n3", "n4")]

    writer = HardwareWriter(
        server, lambda: datetime.now(UTC), lambda _: None, {}, lambda: next(times)
    )
    writer.write(nodes, {})

    assert server.made == ["n1", "n2"]
