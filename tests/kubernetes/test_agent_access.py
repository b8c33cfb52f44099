"""Which API server an agent asks."""

import pytest

from temper_core import MachineError
from temper_plugin_kubernetes.access import find_access


def test_outside_of_a_cluster_it_is_said_what_is_missing():
    with pytest.raises(MachineError, match="KUBERNETES_SERVICE_HOST is not set"):
        find_access("", {})
