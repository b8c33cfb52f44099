"""The dashboard of one pod: CPU, quota, waits and threads by name."""

from deploy.monitoring.board import Board, Choice, Row, cell_path_to, link
from deploy.monitoring.panels import (
    Colour,
    Panel,
    Query,
    Unit,
    areas,
    lines,
    number,
    with_ceiling,
    words,
)
from deploy.monitoring.plugin_rows import plugin_rows
from deploy.monitoring.tables import Column, table
from deploy.monitoring.wording import FLEET, NODE, POD, rate

NODES = 'cluster=~"$cluster", instance=~"$instance"'
OF_TIER = f'{NODES}, tier=~"$tier"'
SELECTION = f'{NODES}, namespace="$namespace", pod="$pod"'
QUOTA = "quota"


def pod() -> Board:
    """Return the dashboard of one pod."""
    infos = f"temper_pod_info{{{OF_TIER}}}"
    return Board(
        uid=POD,
        title="Temper / Pod",
        about="One pod: CPU against its quota, waits, throttling, threads by name, pressure.",
        selection=SELECTION,
        nodes=NODES,
        choices=(
            Choice("cluster", "Cluster", "cluster", "temper_build_info", many=True),
            Choice(
                "instance", "Node", "instance", 'temper_build_info{cluster=~"$cluster"}', many=True
            ),
            Choice("tier", "Tier", "tier", f"temper_pod_info{{{NODES}}}", many=True),
            Choice("namespace", "Namespace", "namespace", infos),
            Choice(
                "pod", "Pod", "pod", f'temper_pod_info{{{OF_TIER}, namespace="$namespace"}}'
            ),
        ),
        rows=(
            Row("At a glance", _glance()),
            Row("CPU", _cpu()),
            Row("Waiting for a CPU", _waits()),
            Row("Threads by name", _threads()),
            Row("Pressure and memory", _pressure()),
            *plugin_rows("pod"),
        ),
        links=(link("Fleet", FLEET), link("Node", NODE)),
    )  # fmt: skip


def _glance() -> tuple[Panel, ...]:
    return (
        words("Tier", Query("max by (tier) (temper_pod_info{@})", "{{tier}}")),
        words(
            "Profile",
            Query('max by (profile) (temper_pod_info{@, profile!=""})', "{{profile}}"),
            about="Empty if no profile is applied.",
        ),
        number(
            "CPU time in threads of the profile's groups",
            Query("max(temper_profile_coverage_ratio{@})"),
            unit=Unit.RATIO,
        ),
        number("CPU used", Query("sum(temper_pod_cpus_used{@})"), unit=Unit.CPUS),
        number("Quota", Query("sum(temper_pod_quota_cores{@})"), unit=Unit.CPUS),
        number(
            "Throttled periods",
            Query("max(temper_pod_throttled_ratio{@})"),
            unit=Unit.RATIO,
            limits=((0.01, Colour.WARNING), (0.1, Colour.BAD)),
        ),
        number("Threads", Query("sum(temper_pod_threads{@})")),
        number("Memory", Query("sum(temper_pod_memory_bytes{@})"), unit=Unit.BYTES),
        table(
            "Where it runs",
            Column(
                "Profile",
                "max by (cluster, instance, profile) (temper_pod_info{@})",
                label="profile",
            ),
            Column("Tier", "max by (cluster, instance, tier) (temper_pod_info{@})", label="tier"),
            Column("CPU used", "sum by (cluster, instance) (temper_pod_cpus_used{@})", Unit.CPUS),
            links={"instance": cell_path_to(NODE, instance="${__value.text}")},
            names={"cluster": "Cluster", "instance": "Node"},
            width=24,
            height=4,
        ),
    )


def _cpu() -> tuple[Panel, ...]:
    return (
        with_ceiling(
            lines(
                "Used, and quota",
                Query(rate("temper_pod_cpu_seconds_total", "instance"), "{{instance}}"),
                Query("max(temper_pod_quota_cores{@})", QUOTA),
                unit=Unit.CPUS,
                width=12,
                height=9,
                about="While an engine is attached no quota is enforced: layers contain pods.",
            ),
            QUOTA,
        ),
        lines(
            "Throttling",
            Query("max(temper_pod_throttled_ratio{@})", "share of periods"),
            Query(
                rate("temper_pod_throttled_seconds_total"),
                "seconds in a second, over CPUs",
            ),
            width=12,
            height=9,
        ),
        lines(
            "CPU of short-lived threads",
            Query(
                rate("temper_pod_short_lived_cpu_seconds_total"),
                "short-lived",
            ),
            unit=Unit.CPUS,
        ),
        lines("Threads", Query("sum by (instance) (temper_pod_threads{@})", "{{instance}}")),
        lines(
            "Context switches",
            Query(rate("temper_pod_switches_total", "instance"), "{{instance}}"),
            unit=Unit.PER_SECOND,
        ),
    )


def _waits() -> tuple[Panel, ...]:
    return (
        lines(
            "Waiting, per CPU used",
            Query(
                f"{rate('temper_pod_run_delay_seconds_total', 'instance')}"
                f" / {rate('temper_pod_cpu_seconds_total', 'instance')}",
                "{{instance}}",
            ),
            about="Seconds that its threads waited for a CPU for each second that they ran.",
        ),
        lines(
            "Threads waiting",
            Query(rate("temper_pod_run_delay_seconds_total", "instance"), "{{instance}}"),
            about="Average number.",
        ),
        lines(
            "Waiting, throttling aside",
            Query("max by (instance) (temper_pod_unthrottled_pressure_ratio{@})", "{{instance}}"),
            unit=Unit.RATIO,
        ),
    )


def _threads() -> tuple[Panel, ...]:
    cpu = rate("temper_pod_thread_cpu_seconds_total", "thread")
    return (
        areas("CPU", Query(cpu, "{{thread}}"), unit=Unit.CPUS, width=12, height=9),
        lines(
            "Waiting, per CPU used",
            Query(
                f"{rate('temper_pod_thread_run_delay_seconds_total', 'thread')} / {cpu}",
                "{{thread}}",
            ),
            width=12,
            height=9,
        ),
    )


def _pressure() -> tuple[Panel, ...]:
    return (
        lines(
            "Share of time stalled",
            Query(
                "max by (resource, kind)"
                " (rate(temper_pod_pressure_seconds_total{@}[$__rate_interval]))",
                "{{resource}} {{kind}}",
            ),
            unit=Unit.RATIO,
            width=12,
        ),
        lines(
            "Memory",
            Query("sum by (instance) (temper_pod_memory_bytes{@})", "{{instance}}"),
            unit=Unit.BYTES,
            width=12,
        ),
    )
