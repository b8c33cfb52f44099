import os
import subprocess
from pathlib import Path

import pytest

from tests.control_plane.cluster import Cluster
from tests.kubernetes.chart.charts import BUILD, CHART, Helm
from tests.kubernetes.chart.releases import (
    NAMESPACE,
    OVERCOMMITTED,
    Release,
    await_nothing_new,
    everything_in,
)


@pytest.fixture(scope="session")
def helm(tmp_path_factory):
    """Helm without a cluster; it keeps its caches to itself."""
    found = subprocess.run(
        [str(BUILD), "--where", "helm"], capture_output=True, text=True, check=False
    )
    assert not found.returncode, found.stderr
    home = str(tmp_path_factory.mktemp("helm"))
    environment = {"HOME": home, "PATH": os.environ["PATH"], "KUBECONFIG": os.devnull}
    return Helm(Path(found.stdout.strip()) / "helm", environment)


@pytest.fixture(scope="session")
def everything():
    """Options that turn on all there is."""
    return ("--values", str(CHART / "ci/everything-values.yaml"))


@pytest.fixture(scope="package")
def plane(tmp_path_factory):
    """A control plane of its own, as the chart brings the rights that the other one has already."""
    # It calls a webhook by its Service as it does everywhere, but without a kube-proxy's help.
    routing = "--api=--enable-aggregator-routing=true"
    plane = Cluster(tmp_path_factory.mktemp("plane"), routing)
    try:
        plane.make({"kind": "Namespace", "metadata": {"name": NAMESPACE}})
        # Without controllers a namespace is never quite deleted: these stay as long as the plane.
        for level in ("baseline", "restricted"):
            labels = {"pod-security.kubernetes.io/enforce": level}
            plane.make({"kind": "Namespace", "metadata": {"name": level, "labels": labels}})
        labels = {"temper.codes/overcommit": "enabled"}
        plane.make({"kind": "Namespace", "metadata": {"name": OVERCOMMITTED, "labels": labels}})
        yield plane
    finally:
        plane.down()


@pytest.fixture
def release(helm, plane):
    """A release; whatever the test did with it, uninstalling leaves nothing."""
    before = everything_in(plane)
    release = Release(Helm(helm.program, {**helm.environment, **plane.environment}))
    yield release
    # Nothing runs pods here, so a hook would be waited for in vain.
    release.uninstalled("--no-hooks")
    await_nothing_new(plane, before)
