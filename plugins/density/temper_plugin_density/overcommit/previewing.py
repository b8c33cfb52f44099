"""``temper overcommit preview``: the webhook's decisions about the pods in a file."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from temper_core import InputError, load_settings, tier_of
from temper_core.console import columns, document_text
from temper_plugin_density.overcommit.decisions import AdmissionDecision, RequestChange, decide
from temper_plugin_density.overcommit.manifests import Manifest, read_manifests
from temper_plugin_density.overcommit.pod_objects import read
from temper_plugin_density.overcommit.policy import LEAST_MILLIS, Policy

HEADINGS = ("pod", "container", "before", "after", "why")

Decided = tuple[Manifest, AdmissionDecision]


def show(source: Path, factor: Fraction, settings: Path | None, output: str) -> str:
    """Return the decisions about the pods in *source* as text. Raise InputError for bad input."""
    mapping = load_settings(settings).priority_mapping
    policy = Policy(partial(tier_of, mapping=mapping), factor)
    decided = [(manifest, _decide(source, manifest, policy)) for manifest in read_manifests(source)]
    if output == "json":
        return document_text([_document(*pair) for pair in decided])
    return "\n".join(columns(HEADINGS, tuple(_rows(decided))))


def _decide(source: Path, manifest: Manifest, policy: Policy) -> AdmissionDecision:
    try:
        return decide(read(manifest.pod), policy)
    except InputError as error:
        raise InputError(f"{source}: {manifest.subject}: {error}") from error


def _rows(decided: Iterable[Decided]) -> Iterator[tuple[str, ...]]:
    for manifest, decision in decided:
        subject, reason = manifest.subject, decision.reason
        for change in decision.changes:
            request = change.request
            why = reason if change.is_new or not decision.patch else why_kept(change)
            yield subject, request.container, request.text, after(change), why
            subject = ""
        if not decision.changes:
            yield subject, "", "", "", reason


def after(change: RequestChange) -> str:
    """Return the new request, or the original text of an unchanged one."""
    return f"{change.after_millis}m" if change.is_new else change.request.text


def why_kept(change: RequestChange) -> str:
    """Return why one request stays unchanged while others of its pod are lowered."""
    if change.is_lowered:
        return f"lowered already, from {change.original}"
    return f"not above {LEAST_MILLIS}m"


def _document(manifest: Manifest, decision: AdmissionDecision) -> Mapping[str, Any]:
    return {
        "pod": manifest.subject,
        "outcome": decision.outcome,
        "reason": decision.reason,
        "freed_millis": decision.freed_millis,
        "containers": [
            {
                "name": change.request.container,
                "original": change.original,
                "before": change.request.text,
                "after": after(change),
            }
            for change in decision.changes
        ],
        "patch": list(decision.patch),
    }
