"""A replica of the webhook while the Secret behind it changes."""

import asyncio
import os
import signal
import socket
import ssl
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric import rsa
from structlog.testing import capture_logs

from temper_core import Bounds
from temper_plugin_density.overcommit import certificates, serving
from temper_plugin_density.overcommit.certificates import ValidityPeriod
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.serving import ServingPeriods, Webhook
from tests.density.overcommit.objects import POLICY
from tests.density.overcommit.test_overcommit_keeping import DAY, TERMS, Memory, authority
from tests.patience import PATIENCE_S

OFTEN = ServingPeriods(check_every=timedelta(seconds=0.05), drain=timedelta(0))
REFUSED = "OpenSSL refuses the certificate"


def given(signer, bits):
    """Return the entries of a Secret with a certificate from elsewhere, for an RSA key."""
    now = datetime.now(UTC)
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    span = ValidityPeriod(now - DAY, now + DAY)
    own = certificates.make_certificate(key, ["webhook"], span, signer.certificate, signer.key)
    chain = certificates.written([own, signer.certificate])
    return {"tls.crt": chain, "tls.key": certificates.written_key(key)}


def listening():
    opened = socket.create_server(("127.0.0.1", 0))
    opened.setblocking(False)
    return opened


async def served_by(address, signer):
    """Return the certificate that is served, verified by *signer*."""
    context = ssl.create_default_context(cadata=certificates.written([signer.certificate]).decode())
    _, writer = await asyncio.open_connection(*address, ssl=context, server_hostname="webhook")
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - nothing of the webhook tells
            await asyncio.sleep(0.02)


def refusals(logs):
    return sum(REFUSED in str(entry.get("reason")) for entry in logs)


async def rotate(memory, logs):
    """Serve while a weak certificate replaces a good one, and a better one replaces that."""
    keeper = CertificateKeeper(memory, TERMS, lambda: datetime.now(UTC))
    webhook, port, observed = Webhook(POLICY, keeper, OFTEN), listening(), listening()
    running = asyncio.create_task(webhook.run(port, observed))
    await until(lambda: not webhook.why_unready())
    first = await served_by(port.getsockname(), memory.signer)
    memory.held = given(memory.signer, 1024)
    await until(lambda: refusals(logs) > 1)
    assert not running.done()
    assert await served_by(port.getsockname(), memory.signer) == first
    memory.held = given(memory.signer, 2048)
    async with asyncio.timeout(PATIENCE_S):
        while (last := await served_by(port.getsockname(), memory.signer)) == first:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    return first, last


def test_a_certificate_that_openssl_refuses_leaves_the_last_one_in_force():
    memory = Memory(authority(datetime.now(UTC) - DAY))
    memory.held = given(memory.signer, 2048)

    with capture_logs() as logs:
        first, last = asyncio.run(rotate(memory, logs))

    assert first != last


async def wait_for_better(memory, logs):
    keeper = CertificateKeeper(memory, TERMS, lambda: datetime.now(UTC))
    webhook = Webhook(POLICY, keeper, OFTEN)
    running = asyncio.create_task(webhook.run(listening(), listening()))
    await until(lambda: refusals(logs) > 1)
    unready = webhook.why_unready()
    memory.held = given(memory.signer, 2048)
    await until(lambda: not webhook.why_unready())
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    return unready


def test_a_start_with_a_certificate_that_openssl_refuses_waits_for_another():
    memory = Memory(authority(datetime.now(UTC) - DAY))
    memory.held = given(memory.signer, 1024)

    with capture_logs() as logs:
        unready = asyncio.run(wait_for_better(memory, logs))

    assert unready.startswith(REFUSED)


async def ask_over_tls(address, signer):
    """Return the head of the answer to a request, verified by *signer*."""
    context = ssl.create_default_context(cadata=certificates.written([signer.certificate]).decode())
    reader, writer = await asyncio.open_connection(*address, ssl=context, server_hostname="webhook")
    writer.write(b"POST /mutate HTTP/1.1\r\nhost: webhook\r\ncontent-length: 0\r\n\r\n")
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    return head


async def page_of(address):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: webhook\r\nconnection: close\r\n\r\n")
    page = await reader.read()
    writer.close()
    return page


async def ask_without_places(memory):
    """Return the head of the answer and the metrics after it."""
    keeper = CertificateKeeper(memory, TERMS, lambda: datetime.now(UTC))
    webhook, port, observed = Webhook(POLICY, keeper, OFTEN), listening(), listening()
    running = asyncio.create_task(webhook.run(port, observed))
    await until(lambda: not webhook.why_unready())
    head = await ask_over_tls(port.getsockname(), memory.signer)
    page = await page_of(observed.getsockname())
    os.kill(os.getpid(), signal.SIGTERM)
    await running
    return head, page


def test_a_request_that_finds_no_place_is_counted(monkeypatch):
    monkeypatch.setattr(serving, "WEBHOOK_BOUNDS", Bounds(most_open=0, wait_s=0.01))
    memory = Memory(authority(datetime.now(UTC) - DAY))
    memory.held = given(memory.signer, 2048)

    head, page = asyncio.run(ask_without_places(memory))

    assert head.startswith(b"HTTP/1.1 503 ")
    assert b'temper_overcommit_admissions_total{outcome="refused"} 1.0' in page
