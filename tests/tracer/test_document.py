"""The section of a window in ``/observe``, held against the published schema."""

from temper_core import Blocking, Party, Section, WaitHistogram, WakeEdge, WakeWindow
from temper_core.observe.document import observe_document
from temper_core.testing import make_snapshot
from temper_plugin_tracer.document import window_document
from tests.core.observe.test_document import SCHEMA, misfits


def test_a_window_of_watched_wake_ups_is_told_and_nothing_where_nobody_watched():
    db, web = Party(2, "db", "mysqld", "shop/db", "high"), Party(3, "web")
    window = WakeWindow(
        1.5e9,
        0.5,
        20.0,
        1e4,
        edges=(WakeEdge(web, db, 12),),
        blockings=(Blocking(db, web, 2, 0.01),),
        waits=(WaitHistogram("node", (1, 2, 3), 0.02),),
        lost=1,
    )
    sections = {"tracer": Section(1, window_document(window))}

    watched = observe_document(make_snapshot(sections=sections), 1)
    unwatched = observe_document(make_snapshot(), 1)

    assert list(misfits(watched, SCHEMA)) == []
    assert watched["sections"]["tracer"]["edges"][0]["wakee"]["pod"] == "shop/db"
    assert watched["sections"]["tracer"]["waits"][0]["counts"] == [1, 2, 3]
    assert unwatched["sections"] == {}
