"""What commands read: files and an agent whose every text is hostile."""

import json
import socketserver
import threading
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from temper_core.plan.render import plan_document
from temper_plugin_rightsizer.store.packing import pack
from temper_plugin_trainer.training.bundles import BundleTrace, packed_bundle
from tests.console.observations import WINDOW, an_observation
from tests.core.cli.conftest import load_fakes
from tests.hostile_text.hostile import Poison
from tests.podlists import make_podlist
from tests.rightsizer.shapes import learned, window
from tests.trainer.training.bundled import bundle, thread

SPARED = ("schema_version", "mode", "kind", "tier", "severity", "level", "state", "at", "key")
"""Keys whose values commands compare with words of their own."""
OF_PODS = ("kind", "apiVersion", "uid", "cpu", "memory", "phase", "qosClass", "status", "type")


def a_container():
    """Return a row of ``/rightsize``."""
    resources = {"cpu_request_millis": 100, "memory_limit_bytes": 1 << 20}
    return {
        "namespace": "shop",
        "pod": "web",
        "container": "app",
        "owner": "web",
        "verdict": "exclusive",
        "confidence": "low",
        "learned_s": 60,
        "keeps": False,
        "hot_threads": ["worker"],
        "reasons": ["one thread is hot"],
        "suggestions": [{"kind": "tier", "wanted": "high", "reason": "the tier is normal"}],
        "current": resources,
        "recommended": {**resources, "cpu_request_millis": 1000},
    }


def a_demand():
    """Return an answer of ``/rightsize`` with histograms, and hostile texts."""
    demand = learned([window(("worker", 1.0))] * 30)
    packed = b64encode(pack(demand)).decode()
    plain = {"window_s": 60, "containers": [{**a_container(), "demand": packed}]}
    return Poison((*SPARED, "demand")).document(plain)


def agent_answers():
    """Return what an agent answers, by path, with hostile texts."""
    fakes = load_fakes()
    plain = {
        "/observe": an_observation(fakes.a_snapshot(), wakes=WINDOW),
        "/events": {"last": 2, "events": [an_event(1), an_event(2)]},
        "/explain": an_explanation(),
        "/violations": {"violations": [a_violation()], "at": "2026-03-02T08:15:04Z"},
        "/plugins": {
            "plugins": [{"name": "odd", "state": "degraded", "failure": "x", "lost": ["a: b"]}]
        },
        "/safe-mode": {
            "mode": "safe_mode",
            "requests": {"alice": {"reason": "drill", "requested_at": 1e9}},
        },
        "/checks": {
            "checks": [{"name": "engine", "state": "failed", "detail": "x"}],
            "notes": ["a"],
        },
        "/plan": plan_document(fakes.PLAN),
        "/flight-recorder": a_flight_recorder(),
        "/flight-recorder/dump": {"id": "one"},
        "/trace": {"id": "one"},
        "/rightsize": {"containers": [a_container()]},
        "/traces": {"traces": [a_trace()]},
        "/training": {"running": [a_run()], "results": [a_training()]},
        "/wakes": {"schema_version": 1, "window": {**WINDOW, "at": 1.0, "every_s": 0.1}},
    }
    return {path: Poison(SPARED).document(document) for path, document in plain.items()}


def a_training():
    arm = {"change": "the tier alone", "median": 1.0, "others_wait": 0.1}
    trial = {
        "candidate": arm, "against": arm, "blocks": 4, "gain": 0.1, "verdict": "kept", "why": "x",
    }  # fmt: skip
    return {
        "workload": "shop", "date": "2026-03-02", "verdict": "better", "trials": [trial],
        "confirmation": trial,
    }  # fmt: skip


def a_run():
    ended = {"change": "io: boost", "blocks": 4, "gain": 0.1, "verdict": "kept"}
    return {
        "workload": "shop", "phase": "trial 2", "arm": "io: normal", "waiting": "a core",
        "abort": "aborted by ops", "left_s": 90.0, "ended": [ended],
    }  # fmt: skip


def a_trace():
    return {
        "id": "one", "state": "failed", "by": "token ops", "selection": "pod shop/web",
        "began_at": "2026-03-02T08:15:04Z", "events": 3, "lost": 0, "ended_by": "seconds",
        "reason": "no way",
    }  # fmt: skip


def a_flight_recorder():
    return {
        "is_on": True, "id": "one", "by": "token ops", "selection": "pod shop/web",
        "remaining_s": 3.0, "held_s": 1.0, "cpu_ratio": 0.1,
        "asked": {"violations": ["smt_collision"], "kept_seconds": 10.0, "cpu_ratio": 0.2},
    }  # fmt: skip


def an_event(number):
    return {
        "number": number, "at": 1e9, "level": "warning", "kind": "engine_ended", "subject": "shop",
        "reason": "it fell", "requester": "root", "outcome": "done",
    }  # fmt: skip


def a_violation():
    return {
        "invariant": "smt_collision", "severity": "warning", "subject": "shop/web",
        "message": "shared", "age_s": 4.0, "details": {"core": "1"}, "fix": "none",
    }  # fmt: skip


def an_explanation():
    place = {
        "layer": "high", "kind": "Grouped", "threads": "all", "cpus_min": 2, "cpus_max": 4,
        "demoted": False, "reason": "1 pod", "hint": 4,
    }  # fmt: skip
    thread = {
        "tid": 41, "tgid": 40, "comm": "io-1", "expected_layer": "high", "hinted_layer": "high",
        "layer": "high", "layer_is_known": True, "is_decided": False, "is_astray": False,
        "cpu_used": 0.5,
    }  # fmt: skip
    note = {"code": "code", "severity": "warning", "subject": "shop", "message": "note"}
    return {
        "pod": "shop/web", "uid": "1", "tier": "high", "reason": "priority",
        "inputs": {"priority": "100000"}, "profile": "jvm", "profile_reason": "matched",
        "places": [place], "notes": [note], "changes": ["grows"], "threads": [thread],
    }  # fmt: skip


class HostileAgent(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers on a Unix socket as an agent does, with hostile texts."""

    daemon_threads = True

    def __init__(self, path):
        super().__init__(str(path), _Handler)
        self.answers = agent_answers()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server_version = "temper/0.1.0"

    def do_GET(self):
        path = urlsplit(self.path).path
        answer = self.server.answers.get(path)
        if path == "/wakes":  # a new window for each request
            answer["window"]["at"] = Poison().text(str(time.monotonic()))
        body = json.dumps(answer if answer is not None else {"error": Poison().text("no")}).encode()
        self.send_response(404 if answer is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the server's names

    def address_string(self):
        return "socket"

    def log_message(self, *_):
        pass


def write_trace(folder: Path):
    """Write a trace of threads whose names are hostile, as ``trace-cmd report`` prints it."""
    name = " ".join(Poison().text("sh").split())
    lines = [
        f"     {name}-7 [000] {at}: sched_switch: prev_comm={one} prev_pid={a} prev_prio=120 "
        f"prev_state=R ==> next_comm={other} next_pid={b} next_prio=120\n"
        for at, one, a, other, b in (
            ("1.000000", name, 7, "other", 8),
            ("1.010000", "other", 8, name, 7),
            ("1.020000", name, 7, "other", 8),
        )
    ]
    (folder / "trace.txt").write_text("".join(lines), errors="replace")


def write_bundle(folder: Path):
    """Write a bundle of threads whose names are hostile."""
    poison = Poison(most=1)
    threads = [
        thread(poison.text(f"gc{n}")[:15], n, 0.5, 500, container=poison.text("c"))
        for n in range(1, 30)
    ]
    trace = BundleTrace(poison.text("no"))
    why = Poison().text("no")[:1000]
    made = bundle(*threads, reason=why, problems=(poison.text("idle"),), trace=trace)
    (folder / "bundle.gz").write_bytes(packed_bundle(made))


def write_files(folder: Path):
    """Write the files that the commands read."""
    write_trace(folder)
    write_bundle(folder)
    poison = Poison(OF_PODS)
    pods = make_podlist(12, seed=3)
    for item in pods["items"]:
        _make_pod_hostile(item, poison)
    (folder / "pods.json").write_text(json.dumps(pods))
    (folder / "bad-pods.json").write_text(json.dumps(Poison(("kind",)).document(make_podlist(2))))
    report = {"containers": [{**a_container(), "owner": "Deployment/web"}, a_container()]}
    (folder / "report.json").write_text(json.dumps(Poison(("keeps",)).document(report)))
    layers = [{"name": Poison().text(), Poison().text("key"): 1}]
    (folder / "layers.json").write_text(json.dumps(layers).replace("\\ud800", ""))
    (folder / "pod.json").write_text(json.dumps({**pods["items"][0], "kind": "Pod"}))
    (folder / "agent.toml").write_text(
        f'run_directory = "{folder}/run"\nstate_directory = "{folder}"\n[server]\nlisten = ""\n'
        f'socket = "{folder}/agent.sock"\n[safe_mode]\nfile = "{folder}/safe-mode"\n'
        f'state = "{folder}/requests.json"\n'
    )
    (folder / "bad-agent.toml").write_text(
        f"[plan]\n{toml(Poison().text('no'))} = {toml(Poison().text())}\n[pods]\nsource = "
        f"{toml(Poison().text())}\n"
    )
    (folder / "profiles").mkdir()
    (folder / "profiles" / "odd.toml").write_text(a_profile(poison))
    (folder / "bad-profiles").mkdir()
    (folder / "bad-profiles" / "odd.toml").write_text(
        a_profile(poison) + f"{toml(poison.text('key'))} = {toml(poison.text())}\n"
    )
    (folder / "threads.json").write_text(
        json.dumps(Poison((*SPARED, "date", "machine"), most=1).document(RECORDED))
    )
    observation = Poison(SPARED).document(an_observation(load_fakes().a_snapshot(), wakes=WINDOW))
    (folder / "a.json").write_text(json.dumps(observation))
    observation["layers"][0]["name"] = Poison().text("other")
    observation["pods"], observation["violations"] = [], [Poison(SPARED).document(a_violation())]
    (folder / "b.json").write_text(json.dumps(observation))
    # Busy, quiet for longer than the window of the advice, and busy again: other rules do better.
    busy = [2.0] * 3 + [0.1] * 8 + [2.0] * 2
    lines = [
        {"container": name, "seconds": 3600, "at": 3600 * hour, "cpu": cpu}
        for name, used in ((poison.text("app"), busy), ("steady", [100.0] * len(busy)))
        for hour, cpu in enumerate(used)
    ]
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (folder / "bad-samples.jsonl").write_text(json.dumps({**lines[0], "at": poison.text()}))
    _write_cases(folder, poison)
    (folder / "recording").write_text(json.dumps(Poison().document({"recording": {"node": "n"}})))


def _write_cases(folder, poison):
    annotations = {"joulie.io/workload-class": poison.text("x")}
    case = {"annotations": annotations, "metrics": {"cpuUtilPct": 40}}
    (folder / "cases.json").write_text(json.dumps([case]))
    twin = {"kind": "NodeTwin", "metadata": {"name": poison.text("n")}}
    objects = {"items": [twin, a_power_profile(poison)]}
    (folder / "twins.json").write_text(json.dumps(objects))
    measures = {poison.text("pod"): {"cpu_rate": 1}}
    (folder / "pod-metrics.json").write_text(json.dumps({"pods": measures}))
    bad = {**case, "metrics": {poison.text("key"): poison.text()}, "labels": {"a": [poison.text()]}}
    (folder / "bad-cases.json").write_text(json.dumps([bad]))


def a_power_profile(poison):
    """Return a WorkloadProfile of hostile text, of the workload shop/odd."""
    demand = {key: poison.text(key) for key in ("intensity", "bound", "capSensitivity")}
    return {
        "kind": "WorkloadProfile",
        "metadata": {"name": "deployment-odd", "namespace": "shop"},
        "spec": {"workloadRef": {"kind": poison.text("Deployment"), "name": "odd"}},
        "status": {
            "cpu": demand,
            "gpu": demand,
            "classificationReason": poison.text("reason"),
            "confidence": 0.7,
            "evidence": {poison.text("key"): poison.text("value")},
        },
    }


def _make_pod_hostile(item, poison):
    metadata = item["metadata"]
    for key in ("labels", "annotations"):
        metadata[key] = {poison.text("k"): poison.text()}
    metadata["annotations"]["temper.codes/workload-profile"] = poison.text("jvm")
    metadata["annotations"] |= {"temper.codes/tier": poison.text("high")}
    metadata["annotations"] |= {"joulie.io/workload-class": poison.text("x")}
    item["spec"]["priorityClassName"] = poison.text("class")
    for container in item["spec"]["containers"]:
        container["image"] = poison.text("redis")


RECORDED = {
    "schema_version": 1, "program": "redis", "version": "8", "command": "redis-server",
    "machine": {"cores": 2, "threads_per_core": 1, "architecture": "x86_64"},
    "kernel": "6.18", "seconds": 5.0, "date": "2026-11-21", "titles": ["redis"],
    "threads": [{
        "comm": "io", "process": "redis", "title": 0, "leader": True, "cpu_share": 0.5,
        "wait_share": 0.3, "wakeups_per_s": 2.0, "run_us": 87.5,
    }],
}  # fmt: skip


def a_profile(poison):
    """Return a profile in TOML, every text of which is hostile."""
    return (
        f'schema_version = 1\nid = "odd"\ndescription = {toml(poison.text())}\n'
        f"[fingerprint]\nimages = [{', '.join(map(toml, poison.each('redis')))}]\n"
        f'[[thread_groups]]\nname = "io"\nmatch = [{{ comm_prefix = "io" }}]\n'
        f'treatment = "latency"\n[evidence]\napplication = {toml(poison.text())}\n'
        f'date = "2026-11-21"\neffect = "better"\nkernel = {toml(poison.text())}\n'
        f"engine = {toml(poison.text())}\ncommand = {toml(poison.text())}\n"
        f'[[evidence.figures]]\nmeasure = "p99"\nload = {toml(poison.text())}\n'
        "tiers_only = 9\nprofile = 3\nspread = 1\n"
    )


def toml(text):
    """Return *text* as a string of TOML, which has no surrogates."""
    return json.dumps(text.replace("\ud800", "")).replace("\x7f", "\\u007f")
