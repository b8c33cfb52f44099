"""Which clients count as one, and the places that they share."""

import asyncio

import pytest

from temper_core import Bounds, client_network
from temper_core.http.admission import Admission
from tests.core.http.dialling import ASKED, answering, head_of, served


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.2", "10.0.0.2"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"),
        ("2001:db8:0:2::1", "2001:db8:0:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_ipv6_clients_count_by_their_64_bits_of_prefix(address, network):
    assert client_network(address) == network


class IdleClient:
    silent_since = 0.0
    is_gone = False
    is_idle = True
    is_owed = False

    def __init__(self, address):
        self.address, self.network = address, client_network(address)

    def hang_up(self):
        self.is_gone = True

    def extend(self, within_s):
        pass


def test_one_host_with_many_ipv6_addresses_takes_no_place_from_another():
    async def run():
        admission = Admission(Bounds(most_open=4))
        honest = IdleClient("2001:db8:0:2::1")
        flood = [IdleClient(f"2001:db8:0:1::{number:x}") for number in range(1, 20)]
        for client in (honest, *flood):
            admission.arrive(client)
            assert await admission.get_place(client)
        return honest, flood

    honest, flood = asyncio.run(run())

    assert not honest.is_gone
    assert sum(not each.is_gone for each in flood) == 3


def test_one_host_with_many_ipv6_addresses_closes_no_waiting_client_of_another():
    admission = Admission(Bounds(most_waiting=4))
    honest = IdleClient("10.0.0.1")

    for client in (honest, *(IdleClient(f"2001:db8::{number:x}") for number in range(1, 20))):
        admission.arrive(client)

    assert not honest.is_gone


def test_a_server_counts_its_clients_by_their_network(monkeypatch):
    counted, arrive = [], Admission.arrive
    monkeypatch.setattr(
        Admission, "arrive", lambda *here: (counted.append(here[1].network), arrive(*here))
    )
    monkeypatch.setattr("temper_core.http.protocol.client_network", lambda text: f"net of {text}")

    async def run():
        async with served(answering(), Bounds()) as connected:
            reader, _ = await connected(ASKED, local_addr=("127.0.0.2", 0))
            return await head_of(reader)

    head = asyncio.run(run())

    assert head.startswith("HTTP/1.1 200 ")
    assert counted == ["net of 127.0.0.2"]
