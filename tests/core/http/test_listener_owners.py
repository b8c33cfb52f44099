import os
import socket

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

    assert listener_owners(9100, tmp_path) == {1000, 0}
