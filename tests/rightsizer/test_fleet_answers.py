"""What a hostile or broken server answers."""

import json
import ssl
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from temper_core import InputError, MachineError
from temper_plugin_rightsizer.fleet.queries import Scope
from temper_plugin_rightsizer.fleet.reading import Fleet
from temper_plugin_rightsizer.fleet.report import report
from temper_plugin_rightsizer.fleet.windows import Window
from temper_prometheus.access import Access, access
from temper_prometheus.answers import parse
from temper_prometheus.client import Prometheus

TEMPER = str(Path(sys.executable).with_name("temper"))
HOSTILE = 'x\x1b]0;owned\x07\x9b31m\r\n"}{'
TOKEN = "a-secret-token-of-some-length"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def an_answer(result, kind="vector"):
    return {"status": "success", "data": {"resultType": kind, "result": result}}


def a_value(value, **labels):
    return {"metric": labels, "value": [1_764_140_400, value]}


@contextmanager
def answering(reply, tls=None):
    """Serve ``reply(handler, form)`` on a port of this machine, and give its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                reply(self, form)
            except OSError:
                self.close_connection = True  # the client went away, as it should

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def saying(content, status=200, **headers):
    """Return a reply with *content*, bytes or a document."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def reply(handler, _):
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def asked(address, **bounds):
    with Prometheus(Access(address), **bounds) as prometheus:
        return prometheus.at("up", 1_764_140_400)


def whole(address, **bounds):
    with Prometheus(Access(address), **bounds) as prometheus:
        return report(Fleet(prometheus, Scope(), Window(1_764_140_400, 60, 10)))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b'{"status": "success", "data": {"resultType": "vec',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"status": "success", "data": {"resultType": "vector", "result": ' + b"9" * 5000 + b"}}",
        [],
        {"status": "success"},
        {"status": "success", "data": []},
        {"status": "error", "error": "no"},
        an_answer([], "matrix"),
        an_answer([], "scalar"),
        an_answer({}),
        an_answer([1]),
        an_answer([{"metric": {"a": 1}, "value": [1, "1"]}]),
        an_answer([{"metric": {}}]),
        an_answer([{"metric": {}, "value": "1"}]),
        an_answer([{"metric": {}, "value": [1, "1", 2]}]),
    ],
)
def test_an_answer_that_is_not_prometheus_own_is_one_error(content):
    with (
        answering(saying(content)) as address,
        pytest.raises(MachineError, match="as a Prometheus"),
    ):
        asked(address)


@pytest.mark.parametrize("value", [1, None, [], "", "x", {"a": 1}, "1" * 4000 + "x"], ids=repr)
def test_a_count_that_is_no_number_in_text_is_one_error(value):
    reply = saying(an_answer([a_value(value, namespace="shop")]))

    with answering(reply) as address, pytest.raises(MachineError, match="as a Prometheus"):
        whole(address)


@given(JSON)
def test_any_json_is_an_answer_or_a_value_error(document):
    content = json.dumps(document).encode()

    with pytest.raises(ValueError, match=r"."):
        parse(content, "vector")


@given(JSON, JSON, JSON)
def test_any_series_is_read_or_a_value_error(labels, at, value):
    content = json.dumps(an_answer([{"metric": labels, "value": [at, value]}])).encode()

    try:
        found = [each for series in parse(content, "vector").series for each in series.values()]
    except ValueError:
        return
    assert all(0 <= number <= 1e18 for _, number in found)


@pytest.mark.parametrize("at", ["NaN", "Infinity", "-1", "1e400", "9" * 400, "true", '"1"'])
def test_a_time_that_is_none_is_an_error(at):
    content = json.dumps(an_answer([{"metric": {}, "value": ["TIME", "1"]}]))
    (series,) = parse(content.replace('"TIME"', at).encode(), "vector").series

    with pytest.raises(ValueError, match="a time is no number"):
        list(series.values())


def test_samples_of_another_time_are_an_error():
    def reply(handler, form):
        series = {"metric": {"namespace": "a", "pod": "b", "container": "c"}}
        if "step=" in form:
            result = an_answer([{**series, "values": [[12.5, "1"]]}], "matrix")
        else:
            result = an_answer([{**series, "value": [1, "1"]}])
        saying(result)(handler, form)

    with answering(reply) as address, pytest.raises(MachineError, match="of another time"):
        whole(address)


@pytest.mark.parametrize(
    ("status", "error", "said"),
    [
        (400, InputError, r"status 400 \(bad query\)"),
        (401, InputError, "--prometheus-token-file"),
        (403, InputError, "may not ask"),
        (404, InputError, "prefix"),
        (422, InputError, "smaller"),
        (500, MachineError, "fails with status 500"),
        (503, MachineError, "bad query"),
    ],
)
def test_a_refusal_is_told_with_its_reason(status, error, said):
    reply = saying({"status": "error", "error": "bad query"}, status)

    with answering(reply) as address, pytest.raises(error, match=said):
        asked(address)


def test_a_redirect_is_not_followed():
    visited = []
    with answering(lambda handler, _: visited.append(handler.path)) as elsewhere:
        reply = saying(b"", 307, Location=f"{elsewhere}/api/v1/query")
        with answering(reply) as address, pytest.raises(InputError, match="redirect"):
            asked(address)

    assert visited == []


def test_a_head_that_comes_byte_by_byte_ends_at_the_limit():
    def reply(handler, _):
        for _ in range(600):
            handler.wfile.write(b"H")
            handler.wfile.flush()
            time.sleep(0.05)

    with (
        answering(reply) as address,
        pytest.raises(MachineError, match="does not answer within 1 s"),
    ):
        asked(address, timeout_s=1.0)


def test_an_answer_that_is_too_large_ends_the_query():
    reply = saying(b" " * (3 << 20))

    with answering(reply) as address, pytest.raises(MachineError, match="more than 1 MiB"):
        asked(address, largest_bytes=1 << 20)


def test_an_answer_of_many_small_values_ends_the_query():
    """A parsed list takes twenty times its text."""
    answer = {"status": "success", "more": [[]] * 1000, "data": {}}

    with answering(saying(answer)) as address, pytest.raises(MachineError, match="than 900 values"):
        asked(address, most_values=900)


def test_nobody_at_the_address_is_one_error():
    with pytest.raises(MachineError, match="cannot be asked"):
        asked("http://127.0.0.1:1")


def test_an_error_of_a_server_is_shortened():
    reply = saying({"status": "error", "error": "x" * 10_000}, 500)

    with answering(reply) as address, pytest.raises(MachineError) as told:
        asked(address)
    assert len(str(told.value)) < 500


def test_the_token_and_the_tenant_are_sent_and_never_told(tmp_path):
    heads = []
    (tmp_path / "token").write_text(f"{TOKEN}\n")

    def reply(handler, form):
        heads.append(dict(handler.headers))
        saying(b"", 401)(handler, form)

    with answering(reply) as address:
        way = access(address, tmp_path / "token", tenant="team-a")
        with Prometheus(way) as prometheus, pytest.raises(InputError) as told:
            prometheus.at("up", 1)
    assert heads[0]["Authorization"] == f"Bearer {TOKEN}"
    assert heads[0]["X-Scope-OrgID"] == "team-a"
    assert TOKEN not in f"{told.value}{way!r}"


def test_warnings_of_a_partial_answer_are_kept():
    reply = saying({**an_answer([]), "warnings": ["one store is down", 3]})

    with answering(reply) as address, Prometheus(Access(address)) as prometheus:
        prometheus.at("up", 1)

    assert list(prometheus.warnings) == ["one store is down"]


def test_the_environment_gives_no_proxy_and_no_password(monkeypatch, tmp_path):
    heads = []
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")

    def reply(handler, form):
        heads.append(dict(handler.headers))
        saying(an_answer([]))(handler, form)

    with answering(reply) as address:
        asked(address)
    assert "Authorization" not in heads[0]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the path of a certificate of 127.0.0.1, which holds its key as well."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "prometheus")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), False
        )
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + made.public_bytes(Encoding.PEM))
    return path


@contextmanager
def answering_by_tls(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with answering(saying(an_answer([])), context) as address:
        yield address.replace("http:", "https:")


def test_a_certificate_of_the_given_authority_is_trusted(certificate):
    with (
        answering_by_tls(certificate) as address,
        Prometheus(access(address, ca_file=certificate)) as prometheus,
    ):
        assert prometheus.at("up", 1).series == []


def test_a_certificate_of_another_authority_is_refused(certificate):
    with (
        answering_by_tls(certificate) as address,
        Prometheus(access(address)) as prometheus,
        pytest.raises(MachineError, match=r"cannot be asked: .*certificate"),
    ):
        prometheus.at("up", 1)


def saying_that_all_use(cpus, **labels):
    """Return a reply in which each series is one container that uses *cpus*."""

    def reply(handler, form):
        asked_for = {name: values[0] for name, values in parse_qs(form).items()}
        if "step" in asked_for:
            times = range(int(asked_for["start"]), int(asked_for["end"]) + 1, 60)
            series = {"metric": labels, "values": [[at, cpus] for at in times]}
            result = an_answer([series], "matrix")
        else:
            result = an_answer([a_value(cpus, **labels)])
        saying(result)(handler, form)

    return reply


@pytest.mark.parametrize("output", ["table", "json", "csv", "markdown"])
def test_names_of_a_hostile_server_cannot_drive_a_terminal(output):
    names = dict.fromkeys(("namespace", "pod", "container", "owner_kind", "owner_name"), HOSTILE)
    asked_for = {"constraint": "min"}  # any other is refused

    with answering(saying_that_all_use("1", **names, **asked_for)) as address:
        options = ["--prometheus", address, "--hours", "1", "--output", output]
        done = subprocess.run([TEMPER, "rightsize", *options], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr
    assert not set(b"\x1b\x07\x9b\r") & set(done.stdout + done.stderr)


@pytest.mark.parametrize("number", ["NaN", "+Inf", "-1", "1e300"])
def test_samples_without_use_are_left_out(number):
    names = {"namespace": "shop", "pod": "web", "container": "app"}

    reply = saying_that_all_use(number, **names)
    with answering(reply) as address, pytest.raises(InputError, match="two samples"):
        whole(address)
