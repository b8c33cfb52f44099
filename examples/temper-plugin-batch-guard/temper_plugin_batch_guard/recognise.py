"""The detector, which returns the profile of batch jobs for a pod that is one."""

from fnmatch import fnmatchcase

from temper_core import Detection, Pod
from temper_plugin_batch_guard.limits import Limits

JOB_LABELS = ("batch.kubernetes.io/job-name", "job-name")


def recognise(pod: Pod, limits: Limits) -> Detection | None:
    """Recognise pods of a Job with high confidence, and those named like one with less."""
    if pod.owner.startswith("Job/"):
        return Detection(limits.profile, 0.9, f"its owner {pod.owner}")
    for label in JOB_LABELS:
        if label in pod.labels:
            return Detection(limits.profile, 0.8, f"its label {label}")
    for pattern in limits.names:
        if fnmatchcase(pod.name, pattern):
            return Detection(limits.profile, 0.6, f"its name, which is like {pattern}")
    return None
