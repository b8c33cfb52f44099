"""Names of the webhook's objects, labels and annotations in the cluster."""

PREFIX = "temper.codes"
CHOICE = f"{PREFIX}/overcommit"
"""A label of namespaces (``enabled``), and an annotation of pods to spare (``disabled``)."""
ENABLED = "enabled"
DISABLED = "disabled"
ORIGINALS = f"{PREFIX}/original-cpu-requests"
"""The annotation of a lowered pod: the original request of each container, as JSON."""

NAMESPACE = "temper"
SERVICE = "temper-webhook"
SECRET = "temper-webhook-tls"  # noqa: S105 - the name of one
CONFIGURATION = "temper-overcommit"
SYSTEM_NAMESPACE = "kube-system"
