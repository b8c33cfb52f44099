"""Bundles made of what a test wants of them."""

from temper_plugin_trainer.thread_tables import TableMachine
from temper_plugin_trainer.training.bundles import (
    Bundle,
    BundleAgent,
    BundleEdge,
    BundleInterval,
    BundleThread,
    BundleWakes,
)

SECONDS = 10.0
BY_THREADS, BY_NETWORK = {"futex_do_wait": 20}, {"wait_woken": 20}


def thread(comm, tid=7, cpus=0.1, rate=100.0, **more):
    """Return a thread that used *cpus* and slept *rate* times a second."""
    counters = {"run_s": cpus * SECONDS, "sleeps": int(rate * SECONDS)}
    usual = {"process": "shop", "lived_s": SECONDS, **counters}
    return BundleThread(tid, 7, comm, **{**usual, **more})


def edge(waker, wakee, wakes, *, inside=True):
    """Return wake-ups by a thread, which is one of the program if *inside*."""
    return BundleEdge(waker, wakee, "a", "b", inside, True, wakes)


def bundle(*threads, edges=(), reason="no agent answers", **more):
    """Return a bundle of *threads*, with one window of one second if there are *edges*."""
    wakes = BundleWakes("", 1, 1.0, 0, tuple(edges)) if edges else BundleWakes(reason)
    intervals = (BundleInterval(0.25, 0.1, 0.0, 20, 1),)
    made = {
        "program": "shop",
        "machine": TableMachine(8, 2),
        "kernel": "6.18",
        "date": "2026-01-31",
        "seconds": SECONDS,
        "intervals": intervals,
        "threads": threads,
        "agent": BundleAgent("", (), wakes),
    }
    return Bundle(**{**made, **more})
