"""The operator's tools, ``temper k8s`` and ``kubectl temper``; imported when they are called."""

import sys

PROGRAM = "kubectl temper"


def kubectl_plugin() -> None:
    """Run ``kubectl temper ...``, which is ``temper k8s ...``, and exit with its code."""
    from temper_plugin_kubernetes.operators.kubectl import main  # noqa: PLC0415 - slow

    sys.exit(main(sys.argv[1:]))
