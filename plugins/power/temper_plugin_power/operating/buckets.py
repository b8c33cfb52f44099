"""The nodes that a pod asks for: the buckets of demand."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from temper_plugin_power.classifier.hints import Hints
from temper_plugin_power.classifier.profiles import PowerProfile

CLASS_KEY = "joulie.io/workload-class"
PROFILE_KEY = "joulie.io/power-profile"


class Bucket(StrEnum):
    """The nodes that a pod may be on."""

    PERFORMANCE = "performance-only"
    ECO = "eco-only"
    GENERAL = "general"


def bucket_of(
    annotations: Mapping[str, str],
    spec: Mapping[str, Any],
    hints: Hints,
    profile: PowerProfile | None,
) -> Bucket:
    """Return the bucket of a pod: by annotation and constraints, then by its *profile*."""
    return bucket_by(explicit_bucket(annotations, spec), hints, profile)


def bucket_by(explicit: Bucket, hints: Hints, profile: PowerProfile | None) -> Bucket:
    """Return the bucket of a pod whose own bucket is *explicit*."""
    follows = explicit is Bucket.GENERAL and hints.workload_class is None and profile is not None
    if follows and profile is not None and profile.workload_class == "performance":
        return Bucket.PERFORMANCE
    return explicit


def explicit_bucket(annotations: Mapping[str, str], spec: Mapping[str, Any]) -> Bucket:
    """Return the bucket of a pod by its own annotation and constraints."""
    selected = _table(spec, "nodeSelector").get(PROFILE_KEY)
    wanted = list(_expressions(spec))
    is_annotated = annotations.get(CLASS_KEY, "").strip() == "performance"
    if is_annotated or selected == "performance" or any(_keeps_off_eco(*each) for each in wanted):
        return Bucket.PERFORMANCE
    if selected == "eco" or any(_keeps_on_eco(*each) for each in wanted):
        return Bucket.ECO
    return Bucket.GENERAL


def _keeps_off_eco(operator: str, values: list[Any]) -> bool:
    return (operator, "eco" in values) in {("NotIn", True), ("In", False)}


def _keeps_on_eco(operator: str, values: list[Any]) -> bool:
    return operator == "In" and "eco" in values and "performance" not in values


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield operator and values of each required node-affinity expression about the profile."""
    for term in required_terms(spec):
        for expression in tables(term, "matchExpressions"):
            if expression.get("key") == PROFILE_KEY:
                values = expression.get("values")
                yield str(expression.get("operator")), values if isinstance(values, list) else []


def required_terms(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the terms of the required node affinity. A node must match one of them."""
    affinity = _table(_table(spec, "affinity"), "nodeAffinity")
    yield from tables(
        _table(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms"
    )


def tables(table: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables of a list. Everything else is left out."""
    value = table.get(key)
    yield from (
        each for each in (value if isinstance(value, list) else ()) if isinstance(each, Mapping)
    )


def _table(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = table.get(key)
    return value if isinstance(value, Mapping) else {}
