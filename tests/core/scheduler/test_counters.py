"""What is counted only ever grows, as whoever takes rates from it relies on."""

from temper_core.scheduler.counters import EngineCounters


def test_the_histogram_of_stock_windows_never_shrinks():
    counters = EngineCounters()
    for _ in range(1_000):
        counters.note_window(10.0)
    before = counters.stock_seconds

    for _ in range(500):
        counters.note_window(0.01)

    after = counters.stock_seconds
    assert sum(after.counts) == 1_500
    assert after.total > before.total
    assert all(new >= old for new, old in zip(after.counts, before.counts, strict=True))
