"""``temper power extender`` as a process: its options, TLS, and its end."""

import json
import signal
import socket
import ssl
import subprocess
import sys
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from tests.control_plane.cluster import wait_until
from tests.power.extender.certificate_pair import certificate_pair
from tests.power.extender.serving import asked

TEMPER = str(Path(sys.executable).with_name("temper"))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


@pytest.fixture
def environment(tmp_path):
    """Return an environment in which no cluster is known."""
    return {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}


@pytest.fixture
def started(environment, tmp_path):
    """Start the extender with options. Yield its address, then its log lines and exit code."""

    @contextmanager
    def start(*options, context=None):
        address = f"127.0.0.1:{free_port()}"
        scheme = "https" if context else "http"
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(
                [TEMPER, "power", "extender", "--listen", address, *options],
                env=environment,
                stdout=log,
                stderr=log,
            )
            ended = {}
            try:
                with httpx2.Client(
                    base_url=f"{scheme}://{address}", verify=context or True, trust_env=False
                ) as client:
                    wait_until(lambda: _answers(client), "the extender", 60)
                    yield client, ended
            finally:
                process.send_signal(signal.SIGTERM)
                ended["code"] = process.wait(30)
        lines = (tmp_path / "log").read_text().splitlines()
        ended["events"] = [json.loads(line)["event"] for line in lines]

    return start


def _answers(client):
    try:
        return client.get("/healthz").text == "ok\n"
    except httpx2.TransportError:
        return False


def test_without_a_cluster_every_score_is_neutral(started):
    with started("--score-scale", "10") as (client, ended):
        scores = client.post("/prioritize", json=asked("a", "b")).json()
        ready = client.get("/readyz").text

    assert [each["score"] for each in scores] == [5, 5]
    assert ready == "ok\n"
    assert ended["code"] == 0
    assert ended["events"] == [
        "cluster_not_known",
        "power_extender_served",
        "power_extender_ended",
    ]


def test_it_serves_tls_by_two_files(started, tmp_path):
    options, authority = certificate_pair(tmp_path)
    context = ssl.create_default_context(cadata=authority.decode())

    with started(*options, context=context) as (client, ended):
        answer = client.post("/filter", json=asked("a")).json()
        plain = str(client.base_url).replace("https", "http")
        with pytest.raises(httpx2.TransportError):
            httpx2.get(f"{plain.rstrip('/')}/healthz", trust_env=False)

    assert answer == {"nodenames": ["a"]}
    assert ended["code"] == 0


def test_an_expired_certificate_is_served_and_the_extender_is_not_ready(started, tmp_path):
    """The scheduler skips it then, and a refused connection is quicker than a handshake."""
    options, _ = certificate_pair(tmp_path, age=timedelta(days=2))
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    with started(*options, context=context) as (client, ended):
        ready, page = client.get("/readyz"), client.get("/metrics").text

    assert ready.status_code == 503
    assert "the certificate that is served was valid until" in ready.text
    assert "temper_power_extender_certificate_expiry_timestamp_seconds 1." in page
    assert "certificate_not_valid" in ended["events"]


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        (["--listen", "here"], "", "--listen: must be an address and a port"),
        ([], 'listen = "here"', "[plugins.power.extender] listen: must be an address and a port"),
        ([], "score_scale = 7", "extender.score_scale"),
        (["--certificate", "tls.crt"], "", "--certificate, --key: TLS needs both"),
        (["--certificate", "no", "--key", "no"], "", "no: No such file or directory"),
        (["--score-scale", "7"], "", "'7' is not one of '10', '100'"),
        (["--kubeconfig", "no"], "", "no"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(environment, tmp_path, options, settings, said):
    (tmp_path / "agent.toml").write_text(f"[plugins.power.extender]\n{settings}\n")

    done = subprocess.run(
        [TEMPER, "power", "extender", "--settings", "agent.toml", *options],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
