import subprocess
import sys
from pathlib import Path

import pytest

import temper_plugin_kubernetes
from temper_core import DocumentError, Instrument, PodSource
from temper_core.plugin_host import PluginHost
from temper_core.settings.models import PluginHostSettings, Settings
from temper_core.testing import assert_keeps_contract

TEMPER = str(Path(sys.executable).with_name("temper"))
STRICT = PluginHostSettings(strict=True)


@pytest.fixture(autouse=True)
def outside(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def host_with(**table):
    host = PluginHost(Settings(plugins={"kubernetes": table}, plugin_host=STRICT))
    host.add(temper_plugin_kubernetes, "kubernetes")
    return host


def test_the_plugin_keeps_its_contract():
    with pytest.warns(UserWarning, match="pod source kubernetes was not tried: no API server"):
        assert_keeps_contract(temper_plugin_kubernetes, "kubernetes")


def test_the_source_is_there_although_no_api_server_is_known():
    (contribution,) = host_with().gather("temper_pod_sources", PodSource)

    assert contribution.record.name == "kubernetes"


def test_outside_of_a_cluster_there_is_no_instrument():
    assert host_with().gather("temper_instruments", Instrument) == []


def test_in_a_cluster_there_is_one(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    (contribution,) = host_with().gather("temper_instruments", Instrument)

    assert contribution.record.name == "kubernetes"


def test_a_setting_that_there_is_not_is_refused_by_its_name():
    with pytest.raises(DocumentError, match="events_per_second"):
        temper_plugin_kubernetes.temper_pod_sources({"events_per_second": 3})


def agent_with(directory, plugin_settings=""):
    path = directory / "agent.toml"
    path.write_text(
        f'run_directory = "{directory}"\nstate_directory = "{directory}"\n'
        f'[pods]\nsource = "kubernetes"\n{plugin_settings}[server]\nlisten = ""\n'
        "[scheduler]\nenforce = false\n"
    )
    command = [TEMPER, "agent", "--settings", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize(
    ("plugin_settings", "code", "told"),
    [
        ("", 3, "no API server is known: KUBERNETES_SERVICE_HOST is not set"),
        ('[plugins.kubernetes]\nkubeconfig = "/nowhere/config"\n', 2, "/nowhere/config: cannot be"),
        ("[plugins.kubernetes]\nevery_s = 3\n", 2, "unknown key 'every_s'"),
    ],
)
def test_an_agent_that_cannot_know_its_pods_ends_with_one_clear_line(
    tmp_path, plugin_settings, code, told
):
    done = agent_with(tmp_path, plugin_settings)

    assert done.returncode == code
    assert told in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
