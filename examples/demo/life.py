"""The agent's life in parts, each with the claims that must hold after it."""

import time

import kernel
from agent import SETTINGS, temper
from node import Node, lateness, milliseconds
from observations import KEPT, layer_of, leftovers, planned_sizes, size_faults

RAISED = 200_000
GROWN = "4"
# The stock window of a warm swap has to be shorter than a cold start by this factor.
COLD_TO_WARM = 10
# With hints a pod moves at once, but the emulated agent may be late to write them.
MOVED_S = 240.0
LOOK_S = 0.5
SPINNERS = 8
# An emulated CPU may stall for a while. On real hardware these are milliseconds.
SERVED_S = 1.0
WAITED_S = 5.0
REVERTED_S = 2.0


def raise_priority(node: Node) -> None:
    """Raise a pod's priority, and check that its threads move by hints only."""
    report, web, attaches = node.report, node.pods["web"], kernel.attaches()
    observation = node.agent.ask("/observe?top=500")
    old, target = layer_of(observation, "web"), layer_of(observation, "api")
    report.step(f"The priority of web rises from {web.priority} to {RAISED}")
    web.priority = RAISED
    node.list_pods()
    took = _wait_for_layer(node, "web", target["name"])
    observation = node.agent.settled()
    node.show_layers(observation)
    new = layer_of(observation, "web")
    report.claim(
        "moved",
        new["name"] == target["name"] != old["name"] and new["tasks"] >= len(web.members),
        f"{old['name']} -> {new['name']} after {took:.1f} s, {new['tasks']} tasks there",
    )
    attached = kernel.attaches() - attaches
    report.claim("steered", attached == 0, f"{attached} attaches more")


def _wait_for_layer(node: Node, pod: str, layer: str) -> float:
    """Wait until the engine's record has every thread of a pod in the layer. Return the seconds."""

    def is_there() -> bool:
        time.sleep(LOOK_S)  # every answer takes emulated CPU time from the agent's loop
        rows = node.agent.ask(f"/explain?pod=shop/{pod}").get("threads", [])
        return bool(rows) and all(row["layer"] == layer for row in rows)

    return kernel.wait_until(f"{pod} in {layer}", is_there, MOVED_S)


def swap(node: Node) -> None:
    """Let a pod outgrow its layer, and check that one warm swap of the engine follows."""
    report, payments, attaches = node.report, node.pods["payments"], kernel.attaches()
    generation = node.agent.ask("/observe?top=1")["generation"]
    report.step(f"The request of payments grows from {payments.cpu} to {GROWN} CPUs")
    payments.cpu = GROWN
    node.list_pods()
    node.agent.wait_for("enforcing", generation + 1)
    attached, warm = kernel.attaches() - attaches, node.agent.metric("temper_swaps_total", "warm")
    report.claim(
        "swapped",
        (attached, warm) == (1, 1.0),
        f"{attached} attach more, {warm:.0f} warm swap",
    )


def grow(node: Node) -> None:
    """Swap the engine, and check that the node has the new plan."""
    report, watch = node.report, kernel.StateWatch()
    try:
        swap(node)
    finally:
        without_s = watch.end()
    observation = node.agent.settled()
    node.show_layers(observation)
    own, engine = (
        observation["overhead"][key] >> 20 for key in ("memory_bytes", "engine_memory_bytes")
    )
    report.tell(f"memory: the agent {own} MiB, the engine {engine} MiB")
    faults = size_faults(observation, planned_sizes(node.agent.ask("/config")))
    report.claim("grown", not faults, "; ".join(faults) or "every layer has its CPUs")
    report.claim(
        "swap_window",
        without_s * COLD_TO_WARM < node.cold_s,
        f"{without_s:.2f} s without an engine; a cold start took {node.cold_s:.0f} s",
    )


def go_through_safe_mode(node: Node) -> None:
    """Enter and leave safe mode with the command line, as an operator does."""
    report = node.report
    report.step("An operator asks for the stock scheduler, and takes it back")
    node.crowd.measure()
    report.tell(temper("safe-mode", "on", "--reason", "demo", "--settings", str(SETTINGS)))
    took = kernel.wait_until("disabled", lambda: kernel.state() == "disabled", 60)
    observation = node.agent.wait_for("safe_mode")
    report.claim(
        "safe_mode_on",
        observation["reason"] == "requested" and not kernel.engines(),
        f"{kernel.state()} {took:.1f} s after; {observation['reason']}: {observation['detail']}",
    )
    report.claim("safe_mode_workloads", node.crowd.is_well, lateness(node.crowd.latest()))
    report.tell(temper("safe-mode", "off", "--settings", str(SETTINGS)))
    observation = node.agent.wait_for("enforcing")
    report.claim("safe_mode_off", kernel.state() == "enabled", f"{kernel.state()}")


def spin(node: Node, seconds: float) -> None:
    """Let best effort use every CPU, and check that no other pod waits for it."""
    report, attaches, engine = node.report, kernel.attaches(), kernel.engines()
    report.step(f"{SPINNERS} best-effort threads want all CPUs for {seconds:.0f} s")
    node.pods["backup"].spin(SPINNERS)
    node.crowd.measure()
    time.sleep(seconds)
    late = node.crowd.latest()
    observation = node.agent.ask("/observe?top=500")
    node.pods["backup"].rest()
    system, rest = late.pop("system"), max(late.values())
    report.claim("system_not_starved", system < SERVED_S, f"at most {milliseconds(system)} late")
    fenced = max(late["payments"], late["api"])
    report.claim("fenced_not_starved", fenced < SERVED_S, f"at most {milliseconds(fenced)} late")
    report.claim("nobody_starved", rest < WAITED_S and node.crowd.is_well, lateness(late))
    report.claim(
        "not_ejected",
        (kernel.attaches(), kernel.engines(), kernel.state()) == (attaches, engine, "enabled"),
        f"engine {engine} attached throughout; mode {observation.get('mode')}",
    )
    violations = [
        f"{row['invariant']}: {row['message']}" for row in observation.get("violations", [])
    ]
    misplaced = [line for line in violations if line.startswith("layer_mismatch")]
    report.claim("in_place", not misplaced, "; ".join(violations) or "no violation stands")


def kill(node: Node) -> None:
    """Kill the agent, and check the kernel and the workloads."""
    report = node.report
    report.step("The agent is killed")
    node.crowd.measure()
    node.agent.kill()
    took = kernel.wait_until("disabled", lambda: kernel.state() == "disabled", 60)
    gone = kernel.wait_until("engine gone", lambda: not kernel.engines(), 60)
    report.claim(
        "killed",
        took < REVERTED_S,
        f"disabled after {milliseconds(took)}, engine gone {milliseconds(gone)} later",
    )
    time.sleep(1)
    report.claim("survivors", node.crowd.is_well, lateness(node.crowd.latest()))


def restart(node: Node) -> None:
    """Start an agent after another was killed."""
    node.report.step("Another agent takes over")
    node.start_agent()
    node.report.claim("restarted", kernel.state() == "enabled", kernel.state())


def stop(node: Node) -> None:
    """Stop the agent, and check that nothing is left."""
    report = node.report
    report.step("The agent is stopped")
    start = time.monotonic()
    code = node.agent.stop()
    report.claim(
        "stopped",
        code == 0 and kernel.state() == "disabled",
        f"exit code {code} after {time.monotonic() - start:.1f} s, {kernel.state()}",
    )
    left = _left(node)
    report.claim("nothing_left", set(left) <= KEPT, ", ".join(left) or "nothing")
    printed = temper("restore", "--settings", str(SETTINGS))
    left = _left(node)
    report.claim("restored", not left, ", ".join([*left, printed]) if left else "nothing")


def _left(node: Node) -> list[str]:
    """Return the files, sockets, cgroups and engines that did not exist before."""
    return sorted(set(leftovers()) - node.before) + [f"pid {pid}" for pid in kernel.engines()]
