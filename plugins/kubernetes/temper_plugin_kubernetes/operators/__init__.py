"""The operator's tools, ``temper k8s`` and ``kubectl temper``, imported on use."""

import sys

PROGRAM = "kubectl temper"


def kubectl_plugin() -> None:
    """Run ``kubectl temper ...``, the same as ``temper k8s ...``, and exit with its code."""
    from temper_core import deliver  # noqa: PLC0415 - slow
    from temper_plugin_kubernetes.operators.kubectl import main  # noqa: PLC0415 - slow

    # A reader that ends early, such as head, must not interrupt changes to the nodes.
    sys.exit(deliver(lambda: main(sys.argv[1:])))
