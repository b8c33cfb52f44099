import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.observe.places import Places
from temper_plugin_tracer.document import bound_us, wakes_document, window_document
from temper_plugin_tracer.kernel import WindowCounts
from temper_plugin_tracer.kernel_records import BUCKETS, REST
from temper_plugin_tracer.roster import PartyRoster, ThreadCgroups
from temper_plugin_tracer.state import WakeState
from temper_plugin_tracer.telling import MOST_BLOCKINGS, MOST_EDGES, tell_window
from tests.tracer.people import PLAN, a_snapshot, record, sample


@pytest.fixture
def tell(tmp_path):
    """Tell of what was counted on a node where threads 41 and 42 are of shop/web."""

    def told(**counted):
        window = WindowCounts(0.5, **{"parties": {}, **counted})
        snapshot = a_snapshot(sample(41), sample(42))
        roster = PartyRoster(window.parties, snapshot, Places(PLAN), ThreadCgroups(str(tmp_path)))
        return tell_window(window, roster, at=1.0)

    return told


def test_the_most_frequent_edges_come_first_and_only_so_many(tell):
    window = tell(edges={(1, tid): tid for tid in range(10, 10 + 2 * MOST_EDGES)}, lost=5)

    wakes = [edge.wakes for edge in window.edges]
    assert len(wakes) == MOST_EDGES
    assert wakes == sorted(wakes, reverse=True)
    assert wakes[0] == 9 + 2 * MOST_EDGES
    assert window.lost == 5


def test_the_longest_blockings_come_first_whatever_their_number(tell):
    blockings = {(41, tid): (1, tid * 1_000_000) for tid in range(1, 2 * MOST_BLOCKINGS)}

    window = tell(blockings={**blockings, (42, 41): (900, 1_000)}, parties={41: record("web")})

    assert len(window.blockings) == MOST_BLOCKINGS
    assert window.blockings[0].waited_s == pytest.approx(0.255)
    assert window.blockings[0].waiter.comm == "web"


def test_waits_are_told_of_the_node_the_layers_and_the_pods(tell):
    parties = {
        41: record(waits=(1, 2)),
        42: record("other", waits=(0, 1)),
        50: record("elsewhere", cgroup=8, waits=(4,)),
        REST: record("", cgroup=0, waits=(0, 0, 9)),
    }

    told = {each.subject: each.counts[:3] for each in tell(parties=parties).waits}

    assert told == {"node": (5, 3, 9), "layer critical": (1, 3, 0), "shop/web": (1, 3, 0)}


def test_who_only_woke_others_has_no_waits(tell):
    window = tell(parties={41: record()})

    assert [each.subject for each in window.waits] == ["node"]
    assert sum(window.waits[0].counts) == 0


def test_a_kernel_that_does_not_tell_waits_has_no_histograms(tell):
    assert tell(parties={41: record(waits=(1,))}, knows_waits=False).waits == ()


@given(
    st.lists(
        st.lists(st.integers(0, 2**20), min_size=BUCKETS, max_size=BUCKETS), min_size=1, max_size=50
    )
)
def test_histograms_of_many_threads_add_up_bucket_by_bucket(rows):
    parties = {tid: record(waits=counts) for tid, counts in enumerate(rows, 100)}
    homes = ThreadCgroups("/nowhere")
    roster = PartyRoster(parties, None, Places(None), homes)

    [node] = tell_window(WindowCounts(1.0, parties=parties), roster, at=0.0).waits

    assert node.counts == tuple(map(sum, zip(*rows, strict=True)))
    assert node.total_s == pytest.approx(sum(p.waited_ns for p in parties.values()) / 1e9)


@pytest.mark.parametrize(
    ("counts", "share", "bound"),
    [
        ((4, 0, 0, 0), 0.5, 1),
        ((1, 1, 1, 1), 0.5, 2),
        ((0, 0, 10, 0), 0.99, 4),
        ((99, 0, 1, 0), 0.99, 1),
        ((98, 0, 2, 0), 0.99, 4),
        ((1, 0, 0, 9), 0.5, None),
        ((0, 0, 0, 0), 0.5, None),
    ],
)
def test_a_quantile_is_the_bound_of_its_bucket(counts, share, bound):
    assert bound_us(counts, share) == bound


def test_a_window_in_json_names_both_ends_of_every_edge(tell):
    window = tell(edges={(0, 41): 3}, parties={41: record("web")}, blockings={(41, 7): (2, 5_000)})

    document = window_document(window)

    [edge], [blocking] = document["edges"], document["blockings"]
    assert edge["waker"] == {"tid": 0, "comm": "", "process": "", "pod": "", "layer": ""}
    assert (edge["wakee"]["comm"], edge["wakee"]["pod"], edge["wakes"]) == ("web", "shop/web", 3)
    assert (blocking["waits"], blocking["waited_s"]) == (2, 5e-06)
    assert document["at"] == "1970-01-01T00:00:01.000Z"
    assert document["waits"][0]["p50_under_us"] is None


def test_how_watching_stands_is_told_without_a_window():
    off = wakes_document(WakeState(0.0))
    always = wakes_document(WakeState(float("inf"), reason="this process lacks CAP_BPF"))

    assert (off["is_on"], off["until"], off["window"]) == (False, None, None)
    assert (always["is_on"], always["until"]) == (True, None)
    assert always["reason"] == "this process lacks CAP_BPF"
