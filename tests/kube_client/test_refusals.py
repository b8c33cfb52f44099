"""How refusals of the API server are explained."""

import pytest

from temper_kube.access import access_of
from temper_kube.api_server import ApiServer
from temper_kube.failures import ForbiddenError, RefusalError
from tests.kube_client.made_server import MadeServer

PATH = "/api/v1/namespaces/shop/pods/web-1/resize"
NO_ROOM = 'pods "web-1" is forbidden: node didn\'t have enough allocatable resources: cpu'
QUOTA = 'pods "web-1" is forbidden: exceeded quota: small, requested: cpu=2'
POLICY = "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'keep' denied request: frozen"


@pytest.fixture
def made():
    server = MadeServer()
    yield server
    server.close()


@pytest.fixture
def api(made):
    with ApiServer(access_of({"server": made.url}, {})) as api:
        yield api


@pytest.mark.parametrize("text", [NO_ROOM, QUOTA, POLICY])
def test_a_change_that_is_forbidden_for_another_cause_than_a_right_is_a_refusal(made, api, text):
    made.answers[PATH] = 403, {"kind": "Status", "message": text}

    with pytest.raises(RefusalError) as caught:
        api.patch(PATH, {})

    assert (caught.value.status, caught.value.message) == (403, text)


def test_a_missing_right_of_a_change_is_named(made, api):
    text = (
        'pods "web-1" is forbidden: User "me" cannot patch resource "pods/resize" in API group "" '
        'in the namespace "shop"'
    )
    made.answers[PATH] = 403, {"kind": "Status", "message": text}

    with pytest.raises(ForbiddenError, match="me lacks the right to patch pods/resize in the name"):
        api.patch(PATH, {})


def test_what_may_not_be_read_is_a_missing_right_with_the_servers_words(made, api):
    made.answers["/version"] = 403, {"kind": "Status", "message": "the session has expired"}

    with pytest.raises(ForbiddenError, match="right to get /version: the session has expired"):
        api.get("/version")
