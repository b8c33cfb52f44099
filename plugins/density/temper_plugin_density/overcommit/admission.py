"""Reads an AdmissionReview and answers with another. No pod is ever refused."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import structlog
from attrs import frozen

from temper_core import InputError, parse_tenant_json
from temper_plugin_density.overcommit.decisions import AdmissionDecision, decide
from temper_plugin_density.overcommit.outcomes import Outcome
from temper_plugin_density.overcommit.pod_objects import read
from temper_plugin_density.overcommit.policy import Policy

API_VERSION = "admission.k8s.io/v1"
LONGEST_REASON = 500
MOST_VALUES = 100_000
"""Values of one request. Parsing takes a time per value, in which nothing else is answered."""
LONGEST_UID = 128
"""The API server's are UUIDs. A longer one is not repeated in the answer."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@frozen
class Answer:
    """The response to one call, and the decision behind it."""

    body: bytes
    decision: AdmissionDecision
    is_dry_run: bool = False


@frozen
class Call:
    """One request of the API server. A field of the wrong type counts as missing."""

    uid: str = ""
    fields: Mapping[str, Any] = {}

    @property
    def is_dry_run(self) -> bool:
        """Whether the API server will not persist the pod."""
        return self.fields.get("dryRun") is True

    def why_not_ours(self, policy: Policy) -> str:
        """Return why the webhook makes no decision about this call. Empty if it makes one."""
        kind = self.fields.get("kind")
        if not isinstance(kind, dict) or (kind.get("group"), kind.get("kind")) != ("", "Pod"):
            return "it is not a Pod"
        if self.fields.get("operation") != "CREATE" or self.fields.get("subResource"):
            return "it does not create a pod"
        namespace = self.fields.get("namespace")
        if isinstance(namespace, str) and namespace in policy.spared_namespaces:
            return f"requests in the namespace {namespace} are never lowered"
        return ""


def admit(body: bytes, policy: Policy) -> Answer:
    """Answer the AdmissionReview in *body*: allowed, with a patch or without."""
    call = Call()
    try:
        call = _call(body)
        decision = _decided(call, policy)
    except InputError as error:
        decision = AdmissionDecision(Outcome.UNREADABLE, str(error))
    except Exception as error:
        log.exception("admission_failed", uid=call.uid)
        reason = f"the webhook failed: {type(error).__name__}: {error}"
        decision = AdmissionDecision(Outcome.FAILED, reason)
    return Answer(answered(call.uid, decision), decision, call.is_dry_run)


def answered(uid: str, decision: AdmissionDecision) -> bytes:
    """Return the answer to the call *uid* as JSON."""
    response: dict[str, Any] = {
        "uid": uid,
        "allowed": True,
        "auditAnnotations": {
            "outcome": decision.outcome,
            "reason": decision.reason[:LONGEST_REASON],
        },
    }
    if decision.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(json.dumps(decision.patch).encode()).decode()
    review = {"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response}
    return json.dumps(review).encode()


def _call(body: bytes) -> Call:
    if sum(body.count(sign) for sign in (b"{", b"[", b",")) > MOST_VALUES:
        raise InputError(f"the request has more than {MOST_VALUES} values")
    try:
        review = parse_tenant_json(body)
    except ValueError as error:
        raise InputError(f"the request is not JSON: {error}") from error
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict):
        raise InputError("the request is not an AdmissionReview: it has no field 'request'")
    uid = request.get("uid")
    if not isinstance(uid, str) or len(uid) > LONGEST_UID:
        uid = ""
    return Call(uid, request)


def _decided(call: Call, policy: Policy) -> AdmissionDecision:
    if why := call.why_not_ours(policy):
        return AdmissionDecision(Outcome.NOT_OURS, why)
    return decide(read(call.fields.get("object")), policy)
