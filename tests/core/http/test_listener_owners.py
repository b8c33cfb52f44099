import os
import socket
import sys

import pytest

from temper_core.http.listener_owners import listener_owners


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_the_owner_of_a_listener_is_found_by_its_port(family, host):
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        assert listener_owners(port) == {os.geteuid()}

    assert listener_owners(port) == frozenset()


def test_a_connection_is_no_listener():
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as connected,
    ):
        assert listener_owners(connected.getsockname()[1]) == frozenset()


def test_a_kernel_without_ipv6_has_no_second_table(tmp_path):
    (tmp_path / "tcp").write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "   0: 0100007F:238C 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 0 7 1\n"
        "   1: 0200007F:238C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 8 1\n"
    )

    assert listener_owners(9100, net=tmp_path) == {1000, 0}
    assert listener_owners(9100, "127.0.0.1", tmp_path) == {1000}
    assert listener_owners(9100, "127.0.0.2", tmp_path) == {0}
    assert listener_owners(9100, "127.0.0.3", tmp_path) == frozenset()


V4 = "   0: {}:238C 00000000:0000 0A 00000000:00000000 00:00000000 00000000 {:5} 0 7 1\n"
V6 = "   0: {}:238C 00000000000000000000000000000000:0000 0A 0:0 00:0 0 {:5} 0 7 1\n"
ALL6, LOOPBACK6 = "0" * 32, "00000000000000000000000001000000"
MAPPED = "0000000000000000FFFF00000100007F"


@pytest.mark.skipif(sys.byteorder != "little", reason="the rows are of a little-endian machine")
@pytest.mark.parametrize(
    ("v4", "v6", "host", "owners"),
    [
        ({"0100007F": 0}, {LOOPBACK6: 1, ALL6: 2}, "127.0.0.1", {0}),
        ({"00000000": 0, "0200007F": 1}, {LOOPBACK6: 2}, "127.0.0.1", {0}),
        ({"00000000": 0, "0100007F": 1}, {}, "127.0.0.1", {1}),
        ({"0200007F": 1}, {MAPPED: 2, ALL6: 0}, "127.0.0.1", {2}),
        ({"0200007F": 1}, {ALL6: 0}, "127.0.0.1", {0}),
        ({"0100007F": 1}, {ALL6: 0}, "::ffff:127.0.0.1", {1}),
        ({"0100007F": 1}, {ALL6: 0}, "::1", {0}),
        ({"0100007F": 1}, {LOOPBACK6: 0, ALL6: 2}, "::1", {0}),
        ({"0100007F": 1}, {LOOPBACK6: 0}, "localhost", {0, 1}),
        ({"0100007F": 1}, {LOOPBACK6: 0}, "0.0.0.0", {0, 1}),
    ],
)
def test_listeners_that_a_connection_cannot_reach_do_not_count(tmp_path, v4, v6, host, owners):
    (tmp_path / "tcp").write_text("head\n" + "".join(V4.format(*row) for row in v4.items()))
    (tmp_path / "tcp6").write_text("head\n" + "".join(V6.format(*row) for row in v6.items()))

    assert listener_owners(9100, host, tmp_path) == owners


def test_a_listener_at_another_address_of_the_port_is_not_this_ones():
    with socket.create_server(("127.0.0.1", 0)) as first:
        port = first.getsockname()[1]
        assert listener_owners(port, "127.0.0.1") == {os.geteuid()}
        assert listener_owners(port, "127.0.0.2") == frozenset()
        assert listener_owners(port, "::1") == frozenset()
