"""A server's certificate in two files, as a mounted Secret has them."""

import asyncio
import os
import socket
import ssl
import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from cryptography.hazmat.primitives import serialization
from prometheus_client import CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from temper_core import BoundedServer, Bounds, InputError, MetricFamily
from temper_plugin_density.overcommit import certificates, material
from temper_serving.certificate_files import CertificateFiles
from temper_serving.certificate_metrics import CertificateExpiry
from temper_serving.observed import observed_routes

TERMS = material.Terms(frozenset({"127.0.0.1"}))


@pytest.fixture
def files(tmp_path):
    return tmp_path / "tls.crt", tmp_path / "tls.key"


def written(files, now=None):
    """Write a new certificate and its key. Return the certificate and a client's context."""
    key, now = certificates.make_key(), now or datetime.now(UTC)
    period = certificates.ValidityPeriod(now, now + timedelta(days=1))
    authority = material.Authority(certificates.make_authority(key, period), key)
    made = material.signed(authority, TERMS, now)
    files[0].write_bytes(certificates.written(made.chain))
    files[1].write_bytes(certificates.written_key(made.key))
    pem = certificates.written([authority.certificate]).decode()
    return made.certificate, ssl.create_default_context(cadata=pem)


@contextmanager
def serving(context):
    async def answer(_):
        return PlainTextResponse("ok")

    listener = socket.create_server(("127.0.0.1", 0))
    server = BoundedServer(Starlette(routes=[Route("/", answer)]), Bounds(), context=context)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve([listener]),))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        loop.call_soon_threadsafe(server.tell_to_stop)
        thread.join(30)
        loop.close()


def presented(port, context):
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        return connection.getpeercert(binary_form=True)


def der(certificate):
    return ssl.PEM_cert_to_DER_cert(certificates.written([certificate]).decode())


def test_changed_files_are_served_from_the_next_handshake_on(files):
    first, trusting_first = written(files)
    loaded = CertificateFiles.load(*files)

    with serving(loaded.context) as port:
        assert presented(port, trusting_first) == der(first)
        assert loaded.take_up() is False

        second, trusting_second = written(files)
        assert loaded.take_up() is True
        assert presented(port, trusting_second) == der(second)


def test_files_that_do_not_fit_leave_the_last_certificate_in_force(files):
    first, trusting = written(files)
    loaded = CertificateFiles.load(*files)
    key = files[1].read_bytes()
    written(files)
    files[1].write_bytes(key)

    with serving(loaded.context) as port:
        with pytest.raises(InputError, match="hold no certificate with its key"):
            loaded.take_up()

        assert presented(port, trusting) == der(first)


def test_an_encrypted_key_is_refused_without_a_question(files):
    """OpenSSL would ask for the password on the terminal, in the middle of the loop."""
    first, trusting = written(files)
    loaded = CertificateFiles.load(*files)
    encryption = serialization.BestAvailableEncryption(b"secret")
    files[1].write_bytes(
        serialization.load_pem_private_key(files[1].read_bytes(), None).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        )
    )

    with serving(loaded.context) as port:
        with pytest.raises(InputError, match="hold no certificate with its key, unencrypted"):
            loaded.take_up()

        assert presented(port, trusting) == der(first)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_file_is_named(files, missing):
    written(files)
    files[missing].unlink()

    with pytest.raises(InputError, match=f"{files[missing].name}: No such file"):
        CertificateFiles.load(*files)


def test_keeping_goes_on_after_a_file_that_cannot_be_used(files):
    written(files)
    loaded = CertificateFiles.load(*files)

    async def run(events):
        keeping = asyncio.create_task(loaded.keep(0.01))
        files[0].write_text("none")
        await heard("certificate_not_taken_up", events)
        written(files)
        await heard("certificate_taken_up", events)
        keeping.cancel()

    with capture_logs() as events:
        asyncio.run(asyncio.wait_for(run(events), 30))

    assert events[-1]["event"] == "certificate_taken_up"


async def heard(event, events):
    while event not in {entry["event"] for entry in events}:  # noqa: ASYNC110 - a log has no event
        await asyncio.sleep(0.01)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(files):
    written(files)
    held = CertificateFiles.load(*files)
    files[0].unlink()
    os.mkfifo(files[0])

    refused = []
    taking = threading.Thread(target=lambda: refused.append(_refusal_of(held)), daemon=True)
    taking.start()
    taking.join(30)

    assert refused == [f"{files[0]}, {files[1]}: hold no certificate with its key, unencrypted"]


def _refusal_of(held):
    with pytest.raises(InputError) as error:
        held.take_up()
    return str(error.value)


@pytest.fixture
def clock(files):
    """Return a clock that can be set, at the beginning of a certificate in the files."""
    start = datetime(2026, 11, 30, 12, tzinfo=UTC)
    written(files, start)
    return Clock(start)


class Clock:
    def __init__(self, at):
        self.at = at

    def __call__(self):
        return self.at


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (timedelta(), ""),
        (timedelta(days=1, seconds=-1), ""),
        (timedelta(days=1), "was valid until 2026-12-01T12:00:00+00:00"),
        (-timedelta(hours=1), "is valid only from 2026-11-30T11:55:00+00:00 on"),
    ],
)
def test_a_certificate_that_clients_refuse_is_served_with_the_reason(files, clock, after, why):
    clock.at += after

    loaded = CertificateFiles.load(*files, clock)

    assert loaded.why_invalid() == (why and f"the certificate that is served {why}")


def test_the_next_certificate_ends_the_reason(files, clock):
    clock.at += timedelta(days=2)
    loaded = CertificateFiles.load(*files, clock)
    written(files, clock.at)

    assert loaded.take_up()

    assert loaded.why_invalid() == ""
    assert loaded.period.end == clock.at + timedelta(days=1)


def test_the_log_tells_once_that_a_certificate_is_not_valid(files, clock):
    clock.at += timedelta(days=2)
    loaded = CertificateFiles.load(*files, clock)

    async def kept():
        keeping = asyncio.create_task(loaded.keep(0))
        for _ in range(20):
            await asyncio.sleep(0)
        keeping.cancel()

    with capture_logs() as logs:
        asyncio.run(kept())

    assert [entry["event"] for entry in logs] == ["certificate_not_valid"]
    assert "was valid until" in logs[0]["reason"]


def test_a_server_is_not_ready_and_tells_the_expiry_of_its_certificate(files, clock):
    loaded = CertificateFiles.load(*files, clock)
    registry = CollectorRegistry()
    registry.register(CertificateExpiry(MetricFamily("temper_expiry", "When it ends."), loaded))
    routes = observed_routes(lambda: "", lambda: generate_latest(registry), loaded)
    client = TestClient(Starlette(routes=routes))
    assert client.get("/readyz").status_code == 200

    clock.at += timedelta(days=1)

    answer = client.get("/readyz")
    assert (answer.status_code, "was valid until" in answer.text) == (503, True)
    told = float(client.get("/metrics").text.splitlines()[-1].split()[-1])
    assert told == clock.at.timestamp()
