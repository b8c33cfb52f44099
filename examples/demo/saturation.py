"""Every tier demands more CPUs than there are. Reports the CPU time and waits of each."""

import os
import time

import kernel
from life import SERVED_S, WAITED_S
from node import Node, lateness, milliseconds


def saturate(node: Node, seconds: float) -> None:
    """Let all tiers demand all CPUs at once, and check which are served."""
    report, attaches, engine = node.report, kernel.attaches(), kernel.engines()
    cpus = os.cpu_count() or 1
    spinners = {"payments": 2, "api": 2, "web": cpus, "reports": cpus, "backup": 2 * cpus}
    report.step(
        f"{sum(spinners.values())} threads of all tiers want {cpus} CPUs for {seconds:.0f} s"
    )
    for name, count in spinners.items():
        node.pods[name].spin(count)
    node.crowd.measure()
    time.sleep(seconds)
    late = node.crowd.latest()
    for pod in node.pods.values():
        pod.rest()
    report.claim(
        "system_served", late["system"] < SERVED_S, f"at most {milliseconds(late['system'])} late"
    )
    waits = max(late.values()) < WAITED_S
    report.claim("everybody_served", waits and node.crowd.is_well, lateness(late))
    report.claim(
        "still_attached",
        (kernel.attaches(), kernel.engines(), kernel.state()) == (attaches, engine, "enabled"),
        f"engine {engine} attached throughout",
    )
