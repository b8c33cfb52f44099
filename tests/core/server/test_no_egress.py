"""The agent with all first-party plugins sends to no address but those that its settings name.

strace(1) writes down every address that a thread or a child of the agent sends to. The host has a
default route, so that no call is missing for want of one.
"""

import json
import re
import shutil
import subprocess
import time

import pytest

from tests.own_host import ENVIRONMENT, NO_OWN_HOSTS, OwnHost, has_own_hosts

pytestmark = [
    pytest.mark.skipif(not has_own_hosts(), reason=NO_OWN_HOSTS),
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

CALLS = "connect,sendto,sendmsg,sendmmsg"
ROUTE = "ip address add 198.51.100.2/24 dev lo && ip route add default dev lo"
API_SERVER, KUBELET = "198.51.100.7:6443", "198.51.100.8:10255"
ADDRESS = re.compile(
    r"sin6?_port=htons\((?P<port>\d+)\).*?"
    r'(?:inet_addr\(|inet_pton\(AF_INET6, )"(?P<host>[^"]+)"'
)
PATHS = (
    *("/", "/dashboard/files/app.js", "/metrics", "/wakes", "/rightsize", "/traces", "/plugins"),
    *("/violations", "/checks", "/events", "/openapi.json"),
)
WORKED_S = 10.0
OBSERVING = """
[observe]
period_s = 1.0
[server]
listen = "127.0.0.1:9100"
"""
KUBERNETES = f"""
[pods]
source = "kubernetes"
[plugins.kubernetes]
kubeconfig = "{{folder}}/kubeconfig"
node = "here"
kubelet = "http://{KUBELET}"
"""


@pytest.fixture
def host(tmp_path):
    made = OwnHost(tmp_path)
    made.shell(ROUTE)
    yield made
    made.close()


def addresses_called(host, more):
    """Run an agent for a while and read its pages. Return the addresses that it sent to."""
    folder = host.folder / "agent"
    folder.mkdir()
    settings, calls = folder / "agent.toml", folder / "calls"
    settings.write_text(
        f'run_directory = "{folder}/run"\nstate_directory = "{folder}/state"\n'
        f"{OBSERVING}{more.format(folder=host.folder)}"
    )
    watched = ("strace", "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(calls))
    agent = host.start(settings, under=watched)
    try:
        read_pages(host)
        time.sleep(WORKED_S)
    finally:
        host.shell(f"kill {host.pid_of_agent()}")
        agent.wait()
    return {f"{found['host']}:{found['port']}" for found in ADDRESS.finditer(calls.read_text())}


def read_pages(host):
    for path in PATHS:
        subprocess.run(
            host.command("curl", "-sf", "-o", "/dev/null", f"http://127.0.0.1:9100{path}"),
            check=True,
            env=ENVIRONMENT,
        )


def test_an_agent_as_it_comes_sends_to_no_address(host):
    assert addresses_called(host, "") == set()


def test_an_agent_of_a_cluster_calls_its_api_server_and_its_kubelet_alone(host):
    cluster = {"name": "c", "cluster": {"server": f"https://{API_SERVER}"}}
    user = {"name": "u", "user": {"token": "t"}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
    (host.folder / "kubeconfig").write_text(json.dumps(config))

    assert addresses_called(host, KUBERNETES) == {API_SERVER, KUBELET}
