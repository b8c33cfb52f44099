import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Address, InputError, MachineError, listen_on, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9100", Address("127.0.0.1", 9100)),
        ("0.0.0.0:8443", Address("0.0.0.0", 8443)),
        ("[::1]:9100", Address("::1", 9100)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        ("localhost:0", Address("localhost", 0)),
        ("node-1.example:65535", Address("node-1.example", 65_535)),
    ],
)
def test_an_address_is_read_and_written_the_same_way(text, address):
    assert parse_address(text, "--listen") == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "9100", ":9100", "::1:9100", "[::1]", "host:", "host:65536", "host:-1", "host:9100 "),
        *("http://host:1", "host:1\n", "host:٣", "[host]:1", "host:1:2", "[]:1", "*:9100"),
        *("a b:1", "host:0x1", "host:x"),
    ],
)
def test_what_is_no_address_is_refused_by_its_name_with_an_example(text):
    expected = r"^--observe: must be an address and a port such as '127\.0\.0\.1:9100' or "

    with pytest.raises(InputError, match=expected) as caught:
        parse_address(text, "--observe")

    assert str(caught.value).endswith(f"'[::1]:9100', not {text!r}")


def test_what_may_be_written_instead_is_told_too():
    with pytest.raises(InputError, match=r"'\[::1\]:9100', or 'none' for none, not 'x'$"):
        parse_address("x", "listen", or_else="'none' for none")


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text):
    try:
        address = parse_address(text, "--listen")
    except InputError:
        return
    assert parse_address(str(address), "--listen") == address
    assert 0 <= address.port <= 65_535


@pytest.mark.parametrize(
    ("listen", "call"), [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("a:1", "a:1")]
)
def test_who_listens_everywhere_is_called_at_home(listen, call):
    assert str(parse_address(listen, "--listen").reachable) == call


def test_who_listens_on_every_address_of_ipv6_is_reached_by_ipv4_too():
    with (
        listen_on(Address("::", 0), "--listen") as listening,
        socket.create_connection(("127.0.0.1", listening.getsockname()[1])) as calling,
    ):
        assert calling.getpeername()[0] == "127.0.0.1"


def test_who_listens_on_every_address_is_reached_by_ipv4_whatever_the_host_has_as_its_default():
    code = (
        "import socket\n"
        "from temper_core import Address, listen_on\n"
        "from pathlib import Path\n"
        "Path('/proc/sys/net/ipv6/bindv6only').write_text('1')\n"
        "with listen_on(Address('::', 0), '--listen') as listening:\n"
        "    print(listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))\n"
    )
    apart = ["unshare", "--net", sys.executable, "-c", code]

    told = subprocess.run(apart, capture_output=True, text=True, check=False)

    if told.returncode:
        pytest.skip(f"no network of its own can be had here: {told.stderr.splitlines()[-1]}")
    assert told.stdout == "0\n"


def test_answers_are_not_held_back_until_the_last_one_was_acknowledged():
    with (
        listen_on(Address("127.0.0.1", 0), "--listen") as listening,
        socket.create_connection(listening.getsockname()),
    ):
        accepted, _ = listening.accept()

        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize(
    ("rivals", "said"),
    [("", "another process does;"), ("a cat", r"another process does \(a cat\);")],
)
def test_a_port_that_is_taken_is_told_with_its_remedy(rivals, said):
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = Address(*other.getsockname())

        with pytest.raises(MachineError, match=f"{said} set --observe to a free port$"):
            listen_on(taken, "--observe", rivals=rivals)


@pytest.mark.parametrize("host", ["203.0.113.1", f"{'a' * 70}.b"])
def test_an_address_that_is_not_here_is_one_line(host):
    with pytest.raises(MachineError, match=r"^cannot listen on .*; see --listen$"):
        listen_on(Address(host, 0), "--listen")
