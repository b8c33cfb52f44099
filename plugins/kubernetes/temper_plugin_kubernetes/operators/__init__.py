"""The operator's tools, ``temper k8s`` and ``kubectl temper``. Imported when they are called."""

import sys

PROGRAM = "kubectl temper"


def kubectl_plugin() -> None:
    """Run ``kubectl temper ...``, which is ``temper k8s ...``, and exit with its code."""
    from temper_core.standard_output import deliver  # noqa: PLC0415 - slow
    from temper_plugin_kubernetes.operators.kubectl import main  # noqa: PLC0415 - slow

    # A reader that goes away, as head does, must not cut short what is done to the nodes.
    sys.exit(deliver(lambda: main(sys.argv[1:])))
