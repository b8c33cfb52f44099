"""Pods and patches for tests without a cluster."""

import copy
import json
from fractions import Fraction
from functools import partial

from temper_core import load_settings, tier_of
from temper_plugin_density.overcommit.decisions import decide
from temper_plugin_density.overcommit.pod_objects import read
from temper_plugin_density.overcommit.policy import Policy

ORIGINALS = "temper.codes/original-cpu-requests"
TIERS = partial(tier_of, mapping=load_settings(None).priority_mapping)
POLICY = Policy(TIERS)


def policy(factor="7/10"):
    return Policy(TIERS, Fraction(factor))


def container(name="app", cpu=None, cpu_limit=None, **more):
    requests = {"cpu": cpu} if cpu is not None else {}
    limits = {"cpu": cpu_limit} if cpu_limit is not None else {}
    return {"name": name, "resources": {"requests": requests, "limits": limits}, **more}


def pod(*containers, annotations=None, **spec):
    metadata = {"generateName": "web-"}
    if annotations is not None:
        metadata["annotations"] = annotations
    return {
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": list(containers) or [container(cpu="1")], **spec},
    }


def decided(document, by=POLICY):
    return decide(read(document), by)


def patched(document, operations):
    """Apply a JSON patch, as strictly as RFC 6902 wants it: what is replaced must be there."""
    changed = copy.deepcopy(document)
    for operation in operations:
        assert operation["path"].startswith("/")
        steps = [
            step.replace("~1", "/").replace("~0", "~") for step in operation["path"][1:].split("/")
        ]
        at = changed
        for step in steps[:-1]:
            at = at[int(step)] if isinstance(at, list) else at[step]
        assert operation["op"] in ("add", "replace")
        assert isinstance(at, dict)
        assert operation["op"] == "add" or steps[-1] in at
        at[steps[-1]] = operation["value"]
    return changed


def admission_review(document, **changes):
    """Return the body of a call of the API server."""
    request = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "shop",
        "object": document,
        **changes,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()
