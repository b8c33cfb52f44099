"""What the webhook and its objects are called in the cluster."""

PREFIX = "temper.codes"
CHOICE = f"{PREFIX}/overcommit"
"""Of a namespace, as a label: ``enabled``. Of a pod that is to be spared, as an annotation."""
ENABLED = "enabled"
DISABLED = "disabled"
ORIGINALS = f"{PREFIX}/original-cpu-requests"
"""The annotation of a lowered pod: JSON, the request of each container as it was."""

NAMESPACE = "temper"
SERVICE = "temper-webhook"
SECRET = "temper-webhook-tls"  # noqa: S105 - the name of one
CONFIGURATION = "temper-overcommit"
SYSTEM_NAMESPACE = "kube-system"
