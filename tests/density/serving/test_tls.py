"""Who may take up a server by TLS: the core's server with the webhook's own certificates."""

import asyncio
import gc
import logging
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from temper_core import Address, BoundedServer, Bounds, listen_on
from temper_plugin_density.overcommit import certificates, material
from temper_plugin_density.overcommit.presenting import present
from temper_serving.tls import server_context
from tests.core.http.dialling import (
    ASKED,
    ASKED_THEN,
    answering,
    answering_then,
    head_of,
    is_ended,
    served,
)

TERMS = material.Terms(frozenset({"127.0.0.1"}))


@pytest.fixture(scope="module")
def authority():
    key, now = certificates.make_key(), datetime.now(UTC)
    period = certificates.ValidityPeriod(now, now + timedelta(days=1))
    return material.Authority(certificates.make_authority(key, period), key)


@pytest.fixture(scope="module")
def made(authority):
    return material.signed(authority, TERMS, datetime.now(UTC))


@pytest.fixture
def context(made):
    """Return the context of the server."""
    context = server_context()
    present(context, made)
    return context


@pytest.fixture
def trusting(authority):
    """Return the context of a client."""
    return ssl.create_default_context(cadata=certificates.written([authority.certificate]).decode())


def test_a_handshake_that_never_begins_is_not_waited_for(context, trusting):
    async def run():
        async with served(answering(), Bounds(handshake_s=0.2), context=context) as connected:
            silent, _ = await connected()
            ended = await is_ended(silent)
            reader, _ = await connected(ASKED, ssl=trusting)
            return ended, await head_of(reader)

    ended, head = asyncio.run(run())

    assert ended
    assert head.startswith("HTTP/1.1 200 ")


def test_handshakes_that_never_end_keep_nobody_from_theirs(context, trusting):
    few = Bounds(most_shaking=4, handshake_s=60)

    async def run():
        async with served(answering(), few, context=context) as connected:
            silent = [await connected() for _ in range(20)]
            reader, _ = await connected(ASKED, ssl=trusting)
            return await head_of(reader), [await is_ended(each) for each, _ in silent[:16]]

    head, ended = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert ended == [True] * 16


def test_handshakes_of_one_address_end_none_of_another(context, trusting):
    few = Bounds(most_shaking=4, handshake_s=60)

    async def run():
        async with served(answering(), few, context=context) as connected:
            _, slow = await connected(local_addr=("127.0.0.9", 0))
            silent = [await connected() for _ in range(20)]
            ended = [await is_ended(each) for each, _ in silent[:16]]
            await slow.start_tls(trusting, server_hostname="127.0.0.1")
            return ended, slow.get_extra_info("cipher")

    ended, cipher = asyncio.run(run())

    assert ended == [True] * 16
    assert cipher is not None


def test_handshakes_that_never_end_take_no_room_from_connections_that_rest(context, trusting):
    async def run():
        async with served(answering(), Bounds(most_open=2), context=context) as connected:
            reader, writer = await connected(ASKED, ssl=trusting)
            first = await head_of(reader)
            await reader.readline()
            for _ in range(20):
                await connected()
            writer.write(ASKED)
            return first, await head_of(reader)

    first, second = asyncio.run(run())

    assert first.startswith("HTTP/1.1 200 ")
    assert second == first


def test_a_newcomer_is_refused_after_its_handshake_where_all_are_being_answered(context, trusting):
    async def run():
        may_answer, bounds = asyncio.Event(), Bounds(most_open=2, wait_s=0.2)
        async with served(answering_then(may_answer), bounds, context=context) as connected:
            asking = [await connected(ASKED_THEN, ssl=trusting) for _ in range(2)]
            await asyncio.sleep(0.1)
            reader, _ = await connected(ASKED, ssl=trusting)
            refused = await head_of(reader)
            may_answer.set()
            return refused, [await head_of(reader) for reader, _ in asking]

    with capture_logs() as logs:
        refused, heads = asyncio.run(run())

    assert refused.startswith("HTTP/1.1 503 ")
    assert all(head.startswith("HTTP/1.1 200 ") for head in heads)
    assert [each["event"] for each in logs] == ["request_refused"]


def test_a_client_that_sends_no_more_and_is_owed_many_answers_is_no_news(context, trusting, caplog):
    async def run():
        async with served(answering(), Bounds(), context=context) as connected:
            for _ in range(5):
                reader, writer = await connected(ASKED * 3000, ssl=trusting)
                # Beneath TLS, of which nothing is told.
                writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
                await is_ended(reader)
            last, _ = await connected(ASKED, ssl=trusting)
            return await head_of(last)

    assert asyncio.run(run()).startswith("HTTP/1.1 200 ")
    assert [each.message for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_a_stop_waits_for_no_handshake(context):
    async def run():
        listening = listen_on(Address("127.0.0.1", 0), "--listen")
        server = BoundedServer(answering(), Bounds(handshake_s=60), context=context)
        serving = asyncio.create_task(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        await asyncio.sleep(0.1)
        server.tell_to_stop()
        async with asyncio.timeout(20):
            await serving
        ended = await is_ended(reader)
        writer.close()
        return ended

    assert asyncio.run(run())


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"])
def test_a_handshake_that_fails_leaves_nothing_for_the_garbage_collector(context, said):
    async def run():
        async with served(answering(), Bounds(), context=context) as connected:
            gc.collect()
            gc.disable()
            for _ in range(10):
                reader, writer = await connected(said)
                writer.close()
                with suppress(ConnectionError):
                    await reader.read()
            await asyncio.sleep(0.2)
            return sum(isinstance(each, SSLProtocol) for each in gc.get_objects())

    try:
        assert asyncio.run(run()) == 0
    finally:
        gc.enable()
