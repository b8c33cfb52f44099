"""A page of metrics as the code writes it, of a node on which all happens that can be told."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from attrs import evolve

from temper_core import Exporter, WaitHistogram, WakeWindow
from temper_core.metrics.scraper import Scraper
from temper_core.records.snapshots import Mode, Status
from temper_plugin_dashboard.fleet.families import FAMILIES
from temper_plugin_kubernetes.accounts import UNREADABLE, WRITES, Account
from temper_plugin_linter.standing import ages
from temper_plugin_power.node.families import NodePower, node_metrics
from temper_plugin_power.node.gpus import Gpu
from temper_plugin_power.node.readings import PackageReading, Power
from temper_plugin_rightsizer.demand.window import ContainerKey, WindowDemand
from temper_plugin_rightsizer.families import hottest_threads
from temper_plugin_tracer.metrics import wait_metrics
from temper_plugin_tracer.wait_totals import WaitTotals
from tests.core.metrics.test_metric_values import make_busy
from tests.core.server.conftest import load_fakes
from tests.density.service_pages import pages_of_services
from tests.power.extender.metrics_page import extender_page
from tests.power.operator_page import operator_page


class Eventful:
    """Serves that page; the engine is started once more before each scrape."""

    def __init__(self):
        fakes = load_fakes()
        self.view = make_busy(fakes.FakeView(), fakes)
        stalled = self.view.last.pressure["cpu"]
        resources = ("cpu", "memory", "io")
        self.view.last = evolve(self.view.last, pressure=dict.fromkeys(resources, stalled))
        self.view.state = Status(Mode.SAFE_MODE, "ejected")
        self.view.exported = [
            ("kubernetes", Exporter("k", _of_a_cluster)),
            ("linter", _AGES),
            ("power", Exporter("power", _of_power)),
            ("rightsizer", Exporter("demand", _of_hot_threads)),
            ("tracer", Exporter("waits", _of_a_window)),
        ]
        self.scraper = Scraper(self.view, 5_000)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    @property
    def port(self):
        return self.server.server_port

    def page(self):
        counted = self.view.counted
        self.view.counted = evolve(counted, reloads={"plan": counted.reloads["plan"] + 1})
        text, _ = self.scraper.scrape("")
        services = (*pages_of_services(), extender_page(), operator_page(), _of_the_page())
        return text + b"".join(services)

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def _handler(self):
        page = self.page

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(page())

            def log_message(self, *_):
                pass

        return Handler


def _of_the_page():
    """Return a sample of each family of the cluster's page, as its server writes them."""
    lines = []
    for family in FAMILIES:
        labels = ",".join(f'{label}="x"' for label in family.labels)
        lines.append(f"# TYPE {family.name} {family.kind}")
        if family.kind == "histogram":
            bounds = (f'{{{labels}{"," if labels else ""}le="{bound}"}}' for bound in ("1", "+Inf"))
            lines += [f"{family.name}_bucket{each} 1" for each in bounds]
            lines += [f"{family.name}_{part}{{{labels}}} 1" for part in ("sum", "count")]
        else:
            lines.append(f"{family.name}{{{labels}}} 1")
    return "\n".join((*lines, "")).encode()


def _of_a_cluster(_):
    account = Account()
    account.watch_status("pods")
    account.count(WRITES, "annotations")
    account.count(UNREADABLE, "pods")
    return account.metrics()


def _of_power(_):
    power = Power((PackageReading("package-0", watts=90.0, dram_watts=9.0, limit_watts=120.0),))
    seen = NodePower(power, {"critical": 60.0}, (Gpu(0, 200.0, 300.0),), ("rapl", "host-nvidia"))
    return tuple(node_metrics("worker-4", seen, {"applied": 1}))


def _of_a_window(snapshot):
    subjects = [
        "node",
        *(f"layer {layer.name}" for layer in snapshot.layers),
        *(f"{pod.namespace}/{pod.pod}" for pod in snapshot.pods),
    ]
    totals = WaitTotals()
    waits = tuple(WaitHistogram(subject, (0, 3, 1), 0.02) for subject in subjects)
    totals.add(WakeWindow(snapshot.at, 0.5, 20.0, 1e4, waits=waits, lost=1))
    return wait_metrics(totals, snapshot)


def _of_hot_threads(snapshot):
    busy = WindowDemand(1.2, ranked=(0.9,), names=("worker",))
    keys = (ContainerKey(pod.uid, pod.namespace, pod.pod, "app") for pod in snapshot.pods)
    return (hottest_threads(dict.fromkeys(keys, busy)),)


_AGES = Exporter("ages", ages)
