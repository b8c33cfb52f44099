"""The webhook's life against a real API server: stops, restarts, replicas, rotations, accidents."""

import base64
import signal
import ssl
import threading
import time

import pytest
from cryptography import x509

from temper_core import MachineError
from temper_plugin_density.overcommit import certificates
from tests.control_plane.cluster import wait_until
from tests.density.overcommit.shop import (
    CONFIGURATIONS,
    RIGHTS,
    SECRETS,
    free_port,
    pod,
    request_of,
    without,
)

STAYS = {"cpu": "1"}


def versions(shop):
    """Return the versions of both objects, which every write changes."""
    secret = shop.cluster.call("GET", f"{SECRETS}/{shop.secret}")
    return [each["metadata"]["resourceVersion"] for each in (secret, shop.configured())]


def presented(port):
    return ssl.get_server_certificate(("127.0.0.1", port))


def test_a_pod_starts_as_it_is_where_no_webhook_ever_answered(shop):
    assert request_of(shop.create(pod(requests=STAYS))) == "1"


def test_a_pod_starts_as_it_is_once_the_webhook_is_down(shop, replica):
    started = replica().until_ready()
    shop.until_it_lowers()

    code = started.stop()

    assert code == 0
    assert started.events()[-1] == "webhook_stopped"
    assert request_of(shop.create(pod(requests=STAYS))) == "1"


def test_a_pod_starts_as_it_is_where_the_webhook_does_not_answer_in_time(served):
    served.replica.process.send_signal(signal.SIGSTOP)
    try:
        made = served.create(pod(requests=STAYS))
    finally:
        served.replica.process.send_signal(signal.SIGCONT)

    assert request_of(made) == "1"
    served.until_it_lowers()


def test_two_replicas_are_trusted_each_with_a_certificate_of_its_own(shop, replica):
    before, ports = versions(shop), [shop.port, free_port()]

    for each in [replica(port=port) for port in ports]:
        each.until_ready()

    assert len({presented(port) for port in ports}) == 2
    shop.until_it_lowers()
    assert versions(shop) == before


def test_without_its_secret_a_webhook_goes_on(served):
    kept = served.cluster.call("GET", f"{SECRETS}/{served.secret}")["data"]
    served.set_secret({"ca.crt": base64.b64encode(b"rubbish").decode()})
    try:
        wait_until(lambda: "ca.crt" in reasons(served), "the damage is noticed")
        assert served.lowers()
    finally:
        served.set_secret(kept)


def reasons(shop):
    return shop.replica.log.read_text()


def test_a_webhook_that_is_not_trusted_is_not_ready_until_it_is(shop, replica):
    authority = shop.trusted()
    shop.trust()
    started = replica()

    answer = wait_until(lambda: why(started, "does not trust"), "it says why", 60.0)
    assert answer.status_code == 503
    assert request_of(shop.create(pod(requests=STAYS))) == "1"

    shop.trust(authority)
    started.until_ready()
    shop.until_it_lowers()


def why(started, text):
    answer = started.answers("/readyz")
    return answer if answer is not None and text in answer.text else None


def test_a_certificate_from_elsewhere_is_served(shop, replica):
    made = shop.keeper()
    made.check()
    given = {
        "tls.crt": certificates.written(made.material.chain),
        "tls.key": certificates.written_key(made.material.key),
    }
    encoded = {name: base64.b64encode(pem).decode() for name, pem in given.items()}
    shop.set_secret({"ca.key": None, **encoded})
    replica().until_ready()

    assert presented(shop.port) == given["tls.crt"].decode()
    shop.until_it_lowers()


class Stream:
    """Pods that are tried one after the other, for as long as it runs."""

    def __init__(self, shop):
        self.shop, self.requests = shop, []
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _run(self):
        while not self._ends.is_set():
            made = self.shop.create(pod(requests=STAYS), dry_run=True)
            self.requests.append(request_of(made))


def test_no_admission_goes_unpatched_while_certificates_and_the_authority_change(shop, replica):
    lives = ["--certificate-life", "8s", "--overlap", "2s"]
    first = replica(*lives).until_ready()
    shop.until_it_lowers()
    found = {presented(shop.port)}

    with Stream(shop) as stream:
        deadline = time.monotonic() + 90
        shop.replace_authority()
        while signers(found) < 2 or len(found) < 4:
            assert time.monotonic() < deadline, (signers(found), len(found))
            found.add(presented(shop.port))
            time.sleep(0.2)

    assert set(stream.requests) == {"700m"}
    assert len(stream.requests) > len(found)
    assert first.metric("temper_overcommit_certificates_taken_up_total") >= 3
    assert first.metric("temper_overcommit_certificate_expiry_timestamp_seconds") > time.time()


def signers(found):
    """Return how many authorities signed what was found."""
    return len({issuer(each) for each in found})


def issuer(pem):
    """Return the identifier of the authority, as every authority has the same name here."""
    certificate = x509.load_pem_x509_certificate(pem.encode())
    return certificate.extensions.get_extension_for_class(
        x509.AuthorityKeyIdentifier
    ).value.key_identifier


def test_a_stop_answers_what_is_in_progress(shop, replica):
    started = replica("--drain", "1s").until_ready()
    shop.until_it_lowers()

    with Stream(shop) as stream:
        wait_until(lambda: stream.requests, "pods are tried")
        started.process.send_signal(signal.SIGTERM)
        wait_until(lambda: started.is_ready() is False, "it says that it is stopping")
        known = len(stream.requests)
        wait_until(lambda: len(stream.requests) > known + 1, "it goes on answering")
        during = list(stream.requests)
        started.process.wait(20)

    assert set(during[: known + 1]) == {"700m"}
    assert started.process.returncode == 0


FAILS_WITHOUT = [("secrets", "get"), ("mutatingwebhookconfigurations", "get")]


def test_the_webhook_may_read_two_objects_by_name_and_write_nothing():
    rules = [rule for document in RIGHTS for rule in document.get("rules", ())]

    given = [(rule["resources"][0], verb) for rule in rules for verb in rule["verbs"]]
    assert given == FAILS_WITHOUT
    assert all(len(rule["resourceNames"]) == 1 for rule in rules)


@pytest.mark.parametrize("right", FAILS_WITHOUT, ids=" ".join)
def test_without_a_right_nothing_is_trusted_and_the_one_that_is_missing_is_named(shop, right):
    keeper = shop.keeper(shop.grant(without(RIGHTS, *right)))
    resource, verb = right

    with pytest.raises(MachineError, match=f"forbidden: .* lacks the right to {verb} {resource}"):
        keeper.check()

    assert keeper.material is None or not keeper.is_trusted


def test_a_webhook_without_a_right_is_not_ready_and_says_why(shop, replica):
    account = shop.grant(without(RIGHTS, "mutatingwebhookconfigurations", "get"))

    started = replica(account=account)

    answer = wait_until(lambda: why(started, "forbidden"), "it says what it may not do", 60.0)
    assert answer.status_code == 503
    assert "lacks the right to get mutatingwebhookconfigurations" in answer.text


STOLEN = [
    ("PATCH", "{configuration}", {"webhooks": []}),
    ("DELETE", "{configuration}", None),
    ("PATCH", "{secret}", {"data": {}}),
    ("DELETE", "{secret}", None),
    ("GET", "/api/v1/namespaces/temper/secrets", None),
    ("GET", "/api/v1/pods", None),
    ("POST", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), STOLEN, ids=lambda part: str(part)[:40])
def test_a_stolen_token_of_the_webhook_changes_nothing(shop, method, path, body):
    known = {
        "configuration": f"{CONFIGURATIONS}/{shop.configuration}",
        "secret": f"{SECRETS}/{shop.secret}",
    }
    headers = {"Authorization": f"Bearer {shop.cluster.token(shop.account)}"}
    if method == "PATCH":
        headers["Content-Type"] = "application/merge-patch+json"

    with pytest.raises(AssertionError, match="forbidden"):
        shop.cluster.call(method, path.format(**known), body, **headers)
