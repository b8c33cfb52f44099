"""The walk itself: every part of the agent's life once, and what must be true after it."""

import time
from pathlib import Path

import kernel
from agent import PODLIST, SETTINGS, Agent, last_words, temper, write_settings
from observations import Json, layer_of, leftovers, planned_sizes, size_faults
from report import Report
from workloads import Crowd, Pod, write_podlist

RAISED = 200_000
SPINNERS = 8
# Emulated, a CPU may stand still for a while; on real hardware these are milliseconds.
SERVED_S = 1.0
WAITED_S = 5.0
REVERTED_S = 2.0
CPU_SAMPLES = 40
FENCED = ("payments", "api")


class Walk:
    """One agent, its pods, and a report of what became of them."""

    def __init__(self, report: Report, engine: Path, spin_s: float) -> None:
        self.report = report
        self._engine = engine
        self._spin_s = spin_s
        self.crowd = Crowd(
            [
                Pod("payments", 1_000_000, "2"),
                Pod("api", 100_000, "1"),
                Pod("web", 0, "500m"),
                Pod("reports", -10, "100m"),
                Pod("backup", -1000),
            ]
        )
        self.pods = self.crowd.pods

    def run(self) -> None:
        """Walk through everything; what does not happen in time ends the walk."""
        try:
            self._prepare()
            self._attach()
            self._raise_priority()
            self._go_through_safe_mode()
            self._spin()
            self._kill()
            self._stop()
        except kernel.NotInTime as problem:
            self.report.give_up(f"{problem}; the agents' log ends with\n{last_words()}")
        finally:
            self.crowd.end()

    def _prepare(self) -> None:
        report = self.report
        report.step("Five pods, one of each tier, and a process of the system's own")
        for pod in self.pods.values():
            report.tell(f"{pod.name:9} priority {pod.priority:8} request {pod.cpu or 'none'}")
        write_settings(self._engine)
        write_podlist(PODLIST, self.pods.values())
        self.before = set(leftovers())

    def _attach(self) -> None:
        report, attaches = self.report, kernel.attaches()
        report.step("The agent starts: it plans, checks, and attaches the engine (half a minute)")
        self.agent = Agent()
        seen = self.agent.wait_for("enforcing")
        state, operations = kernel.state(), kernel.operations()
        holds = state == "enabled" and operations.startswith("layered")
        report.claim(
            "attached",
            holds and kernel.attaches() == attaches + 1,
            f"{state}, {operations}, {kernel.attaches() - attaches} attach",
        )
        report.claim(
            "proven",
            bool(seen["engine"]) and seen["generation"] == 1,
            f"{seen['mode']}, {seen['engine']}, generation {seen['generation']}",
        )
        self._judge_layers(planned_sizes(self.agent.ask("/config")))

    def _judge_layers(self, sizes: dict[str, tuple[int, int]]) -> None:
        report, seen = self.report, self.agent.settled()
        self._show_layers(seen)
        faults = size_faults(seen, sizes)
        report.claim("cpus_as_planned", bool(sizes) and not faults, "; ".join(faults) or f"{sizes}")
        layers = {name: layer_of(seen, name) for name in self.pods}
        report.claim(
            "placed",
            all(layers[name]["tasks"] == len(self.pods[name].members) for name in FENCED)
            and all(layers[name]["tasks"] >= len(pod.members) for name, pod in self.pods.items()),
            ", ".join(f"{name} in {layer['name']}" for name, layer in layers.items()),
        )
        fenced, used = set(layers["payments"]["cpus"]), self._cpus_used_by("payments")
        report.claim("confined", used <= fenced, f"ran on {used}, fenced are {fenced}")

    def _raise_priority(self) -> None:
        report, web, attaches = self.report, self.pods["web"], kernel.attaches()
        seen = self.agent.ask("/observe?top=500")
        generation = seen["generation"]
        old, target = layer_of(seen, "web"), layer_of(seen, "api")
        report.step(f"The priority of web rises from {web.priority} to {RAISED}")
        web.priority = RAISED
        write_podlist(PODLIST, self.pods.values())
        self.agent.wait_for("enforcing", generation + 1)
        seen = self.agent.settled()
        self._show_layers(seen)
        new = layer_of(seen, "web")
        report.claim(
            "moved",
            new["name"] == target["name"] != old["name"]
            and new["tasks"] == target["tasks"] + len(web.members),
            f"{old['name']} -> {new['name']}, tasks there: {target['tasks']} -> {new['tasks']}",
        )
        generations, attached = seen["generation"] - generation, kernel.attaches() - attaches
        report.claim(
            "reloaded",
            (generations, attached) == (1, 1),
            f"{generations} generation and {attached} attach more",
        )

    def _go_through_safe_mode(self) -> None:
        report = self.report
        report.step("An operator asks for the stock scheduler, and takes it back")
        self.crowd.measure()
        report.tell(temper("safe-mode", "on", "--reason", "demo", "--settings", str(SETTINGS)))
        took = kernel.wait_until("disabled", lambda: kernel.state() == "disabled", 60)
        seen = self.agent.wait_for("safe_mode")
        report.claim(
            "safe_mode_on",
            seen["reason"] == "requested" and not kernel.engines(),
            f"{kernel.state()} {took:.1f} s after; {seen['reason']}: {seen['detail']}",
        )
        report.claim("safe_mode_workloads", self.crowd.is_well, _lateness(self.crowd.latest()))
        report.tell(temper("safe-mode", "off", "--settings", str(SETTINGS)))
        seen = self.agent.wait_for("enforcing")
        report.claim("safe_mode_off", kernel.state() == "enabled", f"{kernel.state()}")

    def _spin(self) -> None:
        report, attaches, engine = self.report, kernel.attaches(), kernel.engines()
        report.step(f"{SPINNERS} best-effort threads want all CPUs for {self._spin_s:.0f} s")
        self.pods["backup"].spin(SPINNERS)
        self.crowd.measure()
        time.sleep(self._spin_s)
        late = self.crowd.latest()
        seen = self.agent.ask("/observe?top=500")
        self.pods["backup"].rest()
        system, rest = late.pop("system"), max(late.values())
        report.claim("system_not_starved", system < SERVED_S, f"at most {_ms(system)} late")
        fenced = max(late["payments"], late["api"])
        report.claim("fenced_not_starved", fenced < SERVED_S, f"at most {_ms(fenced)} late")
        report.claim("nobody_starved", rest < WAITED_S and self.crowd.is_well, _lateness(late))
        report.claim(
            "not_ejected",
            (kernel.attaches(), kernel.engines(), kernel.state()) == (attaches, engine, "enabled"),
            f"engine {engine} attached throughout; mode {seen.get('mode')}",
        )

    def _kill(self) -> None:
        report = self.report
        report.step("The agent is killed")
        self.crowd.measure()
        self.agent.kill()
        took = kernel.wait_until("disabled", lambda: kernel.state() == "disabled", 60)
        gone = kernel.wait_until("engine gone", lambda: not kernel.engines(), 60)
        report.claim(
            "killed",
            took < REVERTED_S,
            f"disabled after {_ms(took)}, engine gone {_ms(gone)} later",
        )
        time.sleep(1)
        report.claim("survivors", self.crowd.is_well, _lateness(self.crowd.latest()))

    def _stop(self) -> None:
        report = self.report
        report.step("Another agent takes over, and is stopped")
        self.agent = Agent()
        self.agent.wait_for("enforcing")
        report.claim("restarted", kernel.state() == "enabled", f"{kernel.state()}")
        start = time.monotonic()
        code = self.agent.stop()
        report.claim(
            "stopped",
            code == 0 and kernel.state() == "disabled",
            f"exit code {code} after {time.monotonic() - start:.1f} s, {kernel.state()}",
        )
        left = sorted(set(leftovers()) - self.before) + [f"pid {pid}" for pid in kernel.engines()]
        report.claim("nothing_left", not left, ", ".join(left) or "nothing")

    def _cpus_used_by(self, name: str) -> set[int]:
        used = set()
        self.crowd.measure()
        for _ in range(CPU_SAMPLES):
            used |= {kernel.last_cpu(sleeper.pid) for sleeper in self.pods[name].members}
            time.sleep(0.05)
        self.crowd.latest()
        return used

    def _show_layers(self, seen: Json) -> None:
        for layer in seen["layers"]:
            cpus = ",".join(map(str, layer["cpus"])) or "none of its own"
            self.report.tell(
                f"layer {layer['name']:10} {layer['kind']:9} CPUs {cpus:15} {layer['tasks']} tasks"
            )


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def _lateness(late: dict[str, float]) -> str:
    return "latest: " + ", ".join(f"{name} {_ms(seconds)}" for name, seconds in late.items())
