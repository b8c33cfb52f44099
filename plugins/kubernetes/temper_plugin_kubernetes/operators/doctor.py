"""``temper k8s doctor``: problems of the cluster, each with a remedy."""

from functools import partial

import click

from temper_core.console import folded, print_json, printable
from temper_kube.api_server import ApiServer
from temper_kube.bounded_answers import bounded_answers
from temper_plugin_kubernetes.operators import installation, kubelets, node_checks, rivals
from temper_plugin_kubernetes.operators.findings import Check, Finding, Report, report_of
from temper_plugin_kubernetes.operators.fleet import Fleet, read_fleet
from temper_plugin_kubernetes.operators.options import asked_of, cluster_options

FINDINGS = 1
MARKS = {"error": "FAIL", "warning": "warn", "note": "note"}


@click.command("doctor")
@cluster_options
@click.option("--no-kubelets", is_flag=True, help="Do not ask the nodes' kubelets.")
def command(
    kubeconfig: str, context: str, namespace: str, output: str, *, no_kubelets: bool
) -> int:
    """Check the cluster, its nodes and Temper's installation. Changes nothing.

    `temper doctor` checks more on a node itself. A check that lacks a right is listed with the
    missing right, and is not a finding.

    Exit codes: 0 no findings, 1 findings, 2 wrong options, 3 no API server, or the right to list
    nodes is missing.
    """
    options = asked_of(kubeconfig, context, namespace, output)
    with ApiServer(options.access) as api:
        fleet = read_fleet(api, options.namespace)
        kubelet_answers = kubelets.Kubelets({})
        if not no_kubelets:
            names = [node.name for node in fleet.nodes if node.is_ready]
            kubelet_answers = kubelets.ask_kubelets(options.access, names)
        checks = all_checks(api, options.namespace, fleet, kubelet_answers)
        with bounded_answers():
            report = report_of(checks, (*fleet.unknown, *kubelet_answers.unknown))
    if options.is_json:
        _print_json(report)
    else:
        _print_lines(report, fleet)
    return 0 if report.is_clean else FINDINGS


def all_checks(
    api: ApiServer, namespace: str, fleet: Fleet, asking: kubelets.Kubelets
) -> list[tuple[str, Check]]:
    """Return every check with the name of its subject."""
    own = installation
    return [
        ("the cluster's version", partial(own.cluster_version, api)),
        ("the namespace", partial(own.pod_security, api, namespace)),
        ("Temper's objects", partial(own.objects, api, namespace)),
        ("the agents' rights", partial(own.rights, api, namespace)),
        ("the priority classes", partial(own.priority_classes, api)),
        ("the webhook", partial(own.webhook, api, namespace)),
        ("kernels", partial(node_checks.kernels, fleet)),
        ("platforms", partial(node_checks.platforms, fleet)),
        ("agents", partial(node_checks.agents, fleet)),
        ("coverage", partial(node_checks.coverage, fleet)),
        ("modes", partial(node_checks.modes, fleet)),
        ("versions", partial(node_checks.versions, fleet)),
        ("CPU managers", partial(kubelets.cpu_managers, asking)),
        ("cgroup versions", partial(kubelets.cgroup_drivers, asking)),
        ("conflicting workloads", partial(rivals.conflicting_software, api, namespace)),
        ("resource definitions", partial(rivals.resource_definitions, api)),
        ("autoscalers", partial(rivals.autoscalers, api)),
    ]


def _print_lines(report: Report, fleet: Fleet) -> None:
    width = max((len(finding.check) for finding in report.findings), default=0)
    for finding in report.findings:
        head = printable(f"{MARKS[finding.severity]:<5} {finding.check:<{width}}  ")
        arrow = f"{'':<{len(head)}}-> "
        click.echo(f"{head}{folded(finding.text, len(head))}")
        click.echo(f"{arrow}{folded(finding.remedy, len(arrow))}")
    for unknown in report.unknown:
        click.echo(printable(f"?     not checked: {unknown.what}: {unknown.why}"))
    click.echo(_conclusion(report, fleet))


def _conclusion(report: Report, fleet: Fleet) -> str:
    counts = dict.fromkeys(MARKS, 0)
    for finding in report.findings:
        counts[finding.severity] += 1
    totals = ", ".join(f"{n} {name}s" if n != 1 else f"1 {name}" for name, n in counts.items() if n)
    plural = "" if len(fleet.nodes) == 1 else "s"
    checked = f"{len(fleet.nodes)} node{plural}, {len(report.checks)} checks"
    return f"{checked}: {totals or 'nothing found'}"


def _print_json(report: Report) -> None:
    document = {
        "schema_version": 1,
        "is_clean": report.is_clean,
        "findings": [_record(finding) for finding in report.findings],
        "unknown": [{"what": unknown.what, "why": unknown.why} for unknown in report.unknown],
    }
    print_json(document)


def _record(finding: Finding) -> dict[str, object]:
    return {
        "check": finding.check,
        "severity": str(finding.severity),
        "detail": finding.detail,
        "remedy": finding.remedy,
        "nodes": list(finding.nodes),
    }
