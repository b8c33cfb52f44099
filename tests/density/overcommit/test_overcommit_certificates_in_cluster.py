"""The webhook's life against a real API server: stops, restarts, replicas, rotations, accidents."""

import base64
import signal
import ssl
import threading
import time

import pytest
from cryptography import x509

from temper_core import MachineError
from tests.control_plane.cluster import wait_until
from tests.density.overcommit.shop import (
    RIGHTS,
    SECRETS,
    free_port,
    pod,
    request_of,
    without,
)

STAYS = {"cpu": "1"}


def secret(shop):
    return shop.cluster.call("GET", f"{SECRETS}/{shop.secret}")


def bundle(shop):
    (webhook,) = shop.configured()["webhooks"]
    return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))


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


def test_a_webhook_that_starts_again_goes_on_with_what_is_in_the_secret(shop, replica):
    shop.keeper().check()
    first = (secret(shop)["data"], bundle(shop))

    replica().until_ready()

    assert (secret(shop)["data"], bundle(shop)) == first
    shop.until_it_lowers()


def test_two_replicas_that_start_together_serve_one_certificate(shop, replica):
    ports = [shop.port, free_port()]

    for each in [replica(port=port) for port in ports]:
        each.until_ready()

    certificates = {presented(port) for port in ports}
    kept = base64.b64decode(secret(shop)["data"]["tls.crt"]).decode()
    assert certificates == {kept}
    assert bundle(shop) == base64.b64decode(secret(shop)["data"]["ca.crt"])


def test_what_others_wrote_into_the_secret_and_the_configuration_stays(shop):
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    empty = {"kind": "Secret", "metadata": {"name": shop.secret, "labels": labels}}
    shop.cluster.call("POST", SECRETS, {**empty, "type": "Opaque"})
    before = shop.configured()["webhooks"][0]

    shop.keeper().check()

    after = shop.configured()["webhooks"][0]
    assert secret(shop)["metadata"]["labels"] == labels
    assert after["clientConfig"].pop("caBundle")
    assert after == before


def test_a_secret_that_is_deleted_is_written_again_as_it_was(served):
    before = secret(served)["data"]

    served.cluster.call("DELETE", f"{SECRETS}/{served.secret}")

    wait_until(lambda: served.secret in names_of_secrets(served), "the Secret is there again")
    assert secret(served)["data"] == before


def names_of_secrets(shop):
    return {item["metadata"]["name"] for item in shop.cluster.call("GET", SECRETS)["items"]}


def spoil(shop, text=b"rubbish"):
    change = {"data": {"tls.crt": base64.b64encode(text).decode()}}
    headers = {"Content-Type": "application/merge-patch+json"}
    shop.cluster.call("PATCH", f"{SECRETS}/{shop.secret}", change, **headers)


def test_a_secret_that_is_spoilt_is_written_again_as_it_was(served):
    before = secret(served)["data"]

    spoil(served)

    wait_until(lambda: secret(served)["data"] == before, "the Secret is as it was")
    assert "secret_was_rubbish" in served.replica.events()


def test_a_webhook_that_finds_rubbish_at_start_begins_anew(shop, replica):
    shop.keeper().check()
    spoil(shop)

    replica().until_ready()

    shop.until_it_lowers()


def test_a_bundle_that_somebody_took_away_is_put_back(served):
    url = {"url": f"https://127.0.0.1:{served.port}/mutate", "caBundle": None}
    served.set_webhook(clientConfig=url)

    wait_until(lambda: bundle(served), "the bundle is there again")
    served.until_it_lowers()


def test_nothing_is_written_where_nothing_changes(served):
    before = [each["metadata"]["resourceVersion"] for each in (secret(served), served.configured())]

    # Some ten looks; that they happen shows in that a change is seen.
    time.sleep(2)
    after = [each["metadata"]["resourceVersion"] for each in (secret(served), served.configured())]
    seen = times_rubbish(served)
    spoil(served)

    assert after == before
    wait_until(lambda: times_rubbish(served) > seen, "it has looked")


def times_rubbish(shop):
    return shop.replica.events().count("secret_was_rubbish")


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


def test_no_admission_goes_unpatched_while_certificates_and_authorities_rotate(shop, replica):
    ports = [shop.port, free_port()]
    lives = ["--certificate-life", "8s", "--authority-life", "24s", "--overlap", "1s"]
    first, second = [replica(*lives, port=port) for port in ports]
    for each in (first, second):
        each.until_ready()
    shop.until_it_lowers()
    signed_by, certificates = bundle(shop), set()

    with Stream(shop) as stream:
        deadline = time.monotonic() + 90
        while signers(certificates) < 2 or len(certificates) < 4:
            assert time.monotonic() < deadline, (signers(certificates), len(certificates))
            certificates.add(presented(shop.port))
            time.sleep(0.2)

    assert bundle(shop) != signed_by
    assert set(stream.requests) == {"700m"}
    assert len(stream.requests) > len(certificates)
    taken_up = "temper_overcommit_certificates_taken_up_total"
    assert first.metric(taken_up) >= 3
    assert second.metric("temper_overcommit_certificate_expiry_timestamp_seconds") > time.time()


def signers(found):
    """Return how many authorities signed what was found."""
    return len({x509.load_pem_x509_certificate(each.encode()).issuer for each in found})


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


FAILS_WITHOUT = {
    ("secrets", "get"): "secrets",
    ("secrets", "create"): "secrets",
    ("secrets", "update"): "secrets",
    ("mutatingwebhookconfigurations", "get"): "mutatingwebhookconfigurations",
    ("mutatingwebhookconfigurations", "patch"): "mutatingwebhookconfigurations",
}


def test_no_right_is_given_that_is_not_listed_here():
    given = {
        (rule["resources"][0], verb)
        for document in RIGHTS
        for rule in document.get("rules", ())
        for verb in rule["verbs"]
    }

    assert given == set(FAILS_WITHOUT)


@pytest.mark.parametrize("right", FAILS_WITHOUT, ids=" ".join)
def test_without_a_right_nothing_is_trusted_and_the_one_that_is_missing_is_named(shop, right):
    if right == ("secrets", "update"):
        shop.make_empty_secret()
    keeper = shop.keeper(shop.grant(without(RIGHTS, *right)))
    resource, verb = right

    with pytest.raises(MachineError, match=f"forbidden: .* lacks the right to {verb} {resource}"):
        keeper.check()

    assert keeper.material is None or not keeper.is_trusted


def test_a_webhook_without_a_right_is_not_ready_and_says_why_while_pods_start(shop, replica):
    account = shop.grant(without(RIGHTS, "mutatingwebhookconfigurations", "patch"))

    started = replica(account=account)

    def why():
        answer = started.answers("/readyz")
        return answer is not None and "forbidden" in answer.text and answer

    answer = wait_until(why, "it says what it may not do", 60.0)
    assert answer.status_code == 503
    assert "lacks the right to patch mutatingwebhookconfigurations" in answer.text
    assert request_of(shop.create(pod(requests=STAYS))) == "1"


def test_where_the_secret_is_there_already_no_right_to_make_one_is_needed(shop):
    shop.make_empty_secret()
    keeper = shop.keeper(shop.grant(without(RIGHTS, "secrets", "create")))

    keeper.check()

    assert keeper.is_trusted
    assert bundle(shop) == base64.b64decode(secret(shop)["data"]["ca.crt"])
