"""A capture under load in the real Perfetto UI: docs/images/trace-in-perfetto.png shows it."""

import time

from temper_core import Layer, LayerKind, PodSample, Tier
from temper_core.testing import make_machine, make_snapshot, make_thread
from temper_plugin_tracer.capture.request import TraceRequest
from tests.tracer.capture.conftest import wait_until_recording
from tests.tracer.trace.perfetto_ui import errors_in, opened_in_ui, text_of

LOAD = """
import os, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print("ready", flush=True)
busy_s, idle_s = map(float, sys.argv[2:])
while True:
    ends = time.thread_time() + busy_s
    while time.thread_time() < ends: pass
    time.sleep(idle_s)
"""
ZOOMS = 17
SETTLE_MS = 1_000


def node(server):
    """Return what an agent sees of a node whose plan confines a pod to CPU 0."""
    thread = make_thread(
        "mysqld",
        tid=server.pid,
        tgid=server.pid,
        namespace="shop",
        pod="mysql-0",
        tier=Tier.CRITICAL,
        layer="critical",
    )
    return make_snapshot(
        thread,
        machine=make_machine(2, 1),
        layers={Layer("critical", LayerKind.CONFINED, ((),), tier=Tier.CRITICAL): (0,)},
        pods=(PodSample("shop", "mysql-0", "uid", Tier.CRITICAL, 1, 0.4),),
        monotonic_s=time.monotonic(),
    )


def test_a_capture_under_load_opens_in_the_ui(captures, finish, spawn, tmp_path):
    server = spawn(LOAD, "mysqld", "0.002", "0.003")
    spawn(LOAD, "batch", "0.01", "0.001")
    captures.tell(node(server))
    begun = captures.begin(TraceRequest(seconds=30, process=server.pid), "me")
    wait_until_recording()
    for _ in range(3):
        time.sleep(0.5)
        captures.tell(node(server))
    captures.end(begun["id"], "me")
    entry = finish(captures, begun["id"])
    with opened_in_ui(captures.trace(entry["id"]).read_bytes()) as page:
        shown = text_of(page)
        page.get_by_text("menu", exact=True).click()
        page.get_by_text("Temper", exact=True).first.click()
        page.get_by_text("owner of each CPU", exact=True).first.click(force=True)
        page.get_by_text(f"mysqld {server.pid}").first.click()
        zoom_in(page)
        page.screenshot(path=tmp_path / "ui.png")
        opened = text_of(page)
        page.get_by_text("menu", exact=True).click()
        assert errors_in(page) == {}
    assert entry["lost"] == 0
    assert "CPU 0 Scheduling" in shown
    assert "batch" in shown
    assert {"mode", "owner of each CPU"} <= set(opened.splitlines())
    assert "pod shop/mysql-0,tier critical" in shown


def zoom_in(page):
    """Zoom in the middle of the trace, as the key W does."""
    page.mouse.move(1000, 300)
    for _ in range(ZOOMS):
        page.keyboard.press("w", delay=100)
    page.wait_for_timeout(SETTLE_MS)
