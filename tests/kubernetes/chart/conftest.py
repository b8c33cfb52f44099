import os
import subprocess
from pathlib import Path

import pytest

from tests.kubernetes.chart.charts import BUILD, CHART, Helm


@pytest.fixture(scope="session")
def helm(request, tmp_path_factory):
    """Helm without a cluster; it keeps its caches to itself."""
    found = subprocess.run(
        [str(BUILD), "--where", "helm"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        assert not request.config.getoption("--kube", default=False), found.stderr
        pytest.skip(f"needs helm: {found.stderr.strip()}")
    home = str(tmp_path_factory.mktemp("helm"))
    environment = {"HOME": home, "PATH": os.environ["PATH"], "KUBECONFIG": os.devnull}
    return Helm(Path(found.stdout.strip()) / "helm", environment)


@pytest.fixture(scope="session")
def everything():
    """Options that turn on all there is."""
    return ("--values", str(CHART / "ci/everything-values.yaml"))
