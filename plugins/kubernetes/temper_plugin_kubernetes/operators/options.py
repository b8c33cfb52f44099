"""The options that all operator commands have, and the cluster they name."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
from attrs import frozen

from temper_core import InputError
from temper_core.console import output_option
from temper_kube.access import Access
from temper_kube.kubeconfig import find_access

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
NAMESPACE = "temper"
NAMESPACE_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@frozen
class ClusterOptions:
    """The cluster, Temper's namespace in it, and the form of the output."""

    access: Access
    namespace: str
    is_json: bool


def cluster_options(function: Decorated) -> Decorated:
    """Add --kubeconfig, --context, --namespace and --output. ``asked_of`` reads them."""
    options = (
        click.option("--kubeconfig", default="", metavar="FILE", help="Instead of KUBECONFIG."),
        click.option("--context", default="", help="Instead of the current one."),
        click.option("-n", "--namespace", default=NAMESPACE, show_default=True,
                     help="Where Temper is installed."),
        output_option,
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def asked_of(kubeconfig: str, context: str, namespace: str, output: str) -> ClusterOptions:
    """Find the cluster's API server. Raise InputError or MachineError if there is none."""
    if not NAMESPACE_NAME.fullmatch(namespace):
        raise InputError(
            f"--namespace {namespace!r}: must be up to 63 lower-case letters, digits and '-'"
        )
    return ClusterOptions(find_access(kubeconfig, context), namespace, output == "json")
