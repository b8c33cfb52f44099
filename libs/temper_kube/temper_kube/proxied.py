"""GET requests that the API server passes on to a pod or a node.

An attacker may control what answers there. It speaks for itself alone: no answer is taken for a
missing right or for refused credentials, and none makes a command wait for long.
"""

import time

from attrs import evolve

from temper_core import MachineError
from temper_core.observed import table
from temper_kube.access import Access
from temper_kube.api_server import ApiServer
from temper_kube.connection import EXCHANGE_S, LARGEST_BYTES, Connection
from temper_kube.failures import TOO_MANY, ForbiddenError, NotFoundError, RefusalError

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
BUSY_S = 1.0
"""The wait after a 429, whose sender is not known: the API server sends one under load."""


def require_proxy(api: ApiServer, resource: str, name: str, namespace: str = "") -> None:
    """Raise ForbiddenError if the user may not get the proxy of the object *name*.

    *resource* is ``pods`` or ``nodes``. An API server that does not tell is taken to allow it.
    """
    what = {"verb": "get", "resource": resource, "subresource": "proxy", "name": name}
    spec = {"resourceAttributes": {**what, "namespace": namespace} if namespace else what}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    try:
        answer = api.post(REVIEWS, {**review, "spec": spec})
    except (ForbiddenError, NotFoundError, RefusalError):
        return
    if table(answer, "status").get("allowed") is False:
        where = f"the namespace {namespace}" if namespace else "the whole cluster"
        raise ForbiddenError(f"get {resource}/proxy in {where}", "this user")


def get_proxied(
    access: Access,
    path: str,
    who: str,
    *,
    most_bytes: int = LARGEST_BYTES,
    timeout_s: float = EXCHANGE_S,
) -> bytes:
    """Return the answer at *path*. Each byte is waited for *timeout_s*.

    A refusal is a MachineError that names *who* is asked, such as ``its agent``. It does not tell
    whether that or the API server has refused. A 429 is asked again once.
    """
    with Connection(_with_issued(access), timeout_s) as connection:
        try:
            return _content(connection, path, most_bytes)
        except RefusalError as error:
            raise MachineError(f"no answer of {who}: {error.status}: {error.message}") from error


def _content(connection: Connection, path: str, most_bytes: int) -> bytes:
    """Return the answer at *path*. After a 429 it is the second one."""
    try:
        return connection.content(path, most_bytes=most_bytes).body
    except RefusalError as error:
        if error.status != TOO_MANY:
            raise
    time.sleep(BUSY_S)
    return connection.content(path, most_bytes=most_bytes).body


def _with_issued(access: Access) -> Access:
    """Return *access* with what its program has issued: no refusal makes the program run again."""
    credentials = access.current().credentials
    if credentials.program is None:
        return access
    issued = credentials.issued()
    token, certificate = issued.token, issued.certificate
    return evolve(
        access.current(),
        renewed=None,
        credentials=evolve(
            credentials, program=None, token_file="", token=token, certificate_data=certificate
        ),
    )
