"""Observations as the agent says them, made of records, and JSON that is none."""

from attrs import evolve
from hypothesis import strategies

from temper_core.observe.document import observe_document
from temper_core.records.machine import MachineShape
from temper_core.records.snapshots import LayerSample, PodSample, ThreadSample
from temper_core.records.tiers import LayerKind, Tier

LAYERS = (
    LayerSample("critical", LayerKind.CONFINED, (0, 1), 1.4, 0.7, 12),
    LayerSample("open", LayerKind.OPEN, (2, 3, 4, 6, 7), 0.5, None, 90, fallback_ratio=0.6),
)
WINDOW = {
    "edges": [
        {
            "waker": {"tid": 0, "comm": ""},
            "wakee": {"tid": 9, "comm": "ib_worker", "pod": "shop/web"},
            "wakes": 120,
        }
    ],
    "blockings": [
        {
            "waiter": {"tid": 9, "comm": "ib_worker", "pod": "shop/web"},
            "runner": {"tid": 7, "comm": "spinner", "pod": "ci/noise"},
            "waits": 5,
            "waited_s": 0.0341,
        }
    ],
    "waits": [
        {"subject": "node", "waits": 8, "total_s": 0.5, "p50_under_us": 8, "p99_under_us": 2048}
    ],
}


def a_thread(tid=9, **changes):
    thread = ThreadSample(
        tid, tid, f"worker-{tid}", "mysqld", 1, tid % 8, 1 / tid, 0.1,
        namespace="shop", pod="web", layer="critical", expected_layer="critical",
        layer_is_known=True, voluntary=40, involuntary=10, migrations=3,
    )  # fmt: skip
    return evolve(thread, **changes)


def a_pod(name="web", **changes):
    return evolve(PodSample("shop", name, f"uid-{name}", Tier.CRITICAL, 4, 0.5), **changes)


def an_observation(snapshot, *, top=500, wakes=None, **changes):
    """Return the document of *snapshot*, which has 4 cores of 2 siblings, with *changes*."""
    given = {
        "machine": MachineShape.uniform(4, 2),
        "layers": LAYERS,
        "pods": (a_pod(), a_pod("batch", tier=Tier.LOW)),
        "threads": tuple(map(a_thread, range(1, 40))),
    }
    document = observe_document(evolve(snapshot, **given | changes), top)
    return {**document, "sections": {"tracer": {"schema_version": 1, **wakes}} if wakes else {}}


MEANT = """
schema_version mode node generation engine layers threads pods violations pressure name cpus
cpu_used cpu tid comm namespace pod uid tier profile layer expected_layer window_s machine
siblings wakes edges blockings waits waker wakee runner waiter counts some cpu avg10 full
observing overhead defects subject message invariant
"""
KEYS = strategies.sampled_from(MEANT.split())
TEXT = strategies.text(max_size=12)
NUMBERS = strategies.one_of(
    strategies.integers(), strategies.just(10**400), strategies.floats(), strategies.just(-1)
)
SCALARS = strategies.one_of(strategies.none(), strategies.booleans(), NUMBERS, TEXT)
ANY_JSON = strategies.recursive(
    SCALARS,
    lambda inner: strategies.one_of(
        strategies.lists(inner, max_size=4),
        strategies.dictionaries(strategies.one_of(KEYS, TEXT), inner, max_size=6),
    ),
    max_leaves=15,
)
"""Any JSON, with keys that mean something among them."""
ROWS = strategies.lists(strategies.dictionaries(KEYS, ANY_JSON, max_size=8), max_size=4)
NEARLY_OBSERVATIONS = strategies.fixed_dictionaries(
    {
        "schema_version": strategies.just(1),
        "mode": TEXT,
        "layers": ROWS,
        "threads": ROWS,
        "pods": ROWS,
        "violations": ROWS,
    },
    optional={
        "machine": ANY_JSON,
        "pressure": ANY_JSON,
        "sections": ANY_JSON,
        "observing": ANY_JSON,
        "window_s": SCALARS,
    },
)
