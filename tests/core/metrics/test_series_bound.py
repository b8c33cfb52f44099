"""No population makes a scrape too large, unreadable, or tell what must not be a label."""

import random
from collections import Counter
from functools import partial
from itertools import pairwise

import pytest
from attrs import evolve, frozen
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as parse_text

from temper_core.metrics.families import DROPPED, FAMILIES, PODS, SERIES, THREADS
from temper_core.metrics.families.reading import Per
from temper_core.metrics.scraper import UNBOUNDED_LABELS, Scraper
from temper_core.metrics.totals import Totals, merged_pods
from temper_core.records.contributions import Exporter, Metric, MetricSample
from temper_core.records.snapshots import LayerSample, PodSample, ThreadSample
from temper_core.records.tiers import LayerKind, Tier
from tests.core.server.scraping import OPENMETRICS

FIRST_TID = 4_190_000
ENDINGS = ("", "_bucket", "_count", "_sum")
OWN = {DROPPED.name, SERIES.name}
BY_NAME = {f"{each.name}{ending}": each for each in FAMILIES for ending in ENDINGS}
PLUGIN = "temper_plugins_own"
CLOCK = partial(float, 200)
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]
"""A population tells enough as it is, and shrinking one takes minutes."""

odd_text = st.text(
    st.one_of(st.characters(exclude_categories=[]), st.sampled_from('"\\\n\r\t\u2028\x85{}=,#é'))
)
populations = st.fixed_dictionaries(
    {
        "pods": st.integers(0, 300),
        "threads": st.integers(0, 4_000),
        "layers": st.integers(0, 16),
        "exported": st.integers(0, 400),
        "names": st.lists(odd_text, min_size=1, max_size=12),
        "seed": st.integers(0, 2**32),
    }
)


@frozen
class Scraped:
    """What a scraper holds of one scrape: every series with its labels, each once."""

    series: dict[tuple, float]

    @classmethod
    def read(cls, text, parse):
        samples = [sample for family in parse(text) for sample in family.samples]
        series = {(s.name, *sorted(s.labels.items())): s.value for s in samples}
        assert len(series) == len(samples) == sum(line[0] != "#" for line in text.splitlines())
        return cls(series)

    def own(self, family):
        return self.series[family.name,]

    def count(self, families):
        names = {f"{family.name}{ending}" for family in families for ending in ENDINGS}
        return sum(name in names for name, *_ in self.series)

    def count_named(self, name):
        return sum(found == name for found, *_ in self.series)


def observed(fakes, population, n):
    """Make up the *n*-th look at a node; pods come and go between looks."""
    chance = random.Random(population["seed"] + n)
    name = lambda: f"{chance.choice(population['names'])}{chance.randrange(40)}"  # noqa: E731
    places = [(name(), name()) for _ in range(population["pods"])]
    threads = tuple(
        ThreadSample(
            FIRST_TID + tid, FIRST_TID, name(), name(), 1, 0, chance.random(), chance.random(),
            namespace=namespace, pod=pod,
        )
        for tid in range(population["threads"])
        for namespace, pod in [chance.choice([*places, ("", "")])]
    )  # fmt: skip
    pods = tuple(
        PodSample(
            namespace, pod, f"uid-{each}", chance.choice(list(Tier)), 3, chance.random() * 4,
            profile=name(), pressure={r: fakes.pressure(0.1) for r in ("cpu", "memory", "io")},
            quota_cores=chance.choice([None, 2.5]), run_delay=chance.random(),
            unthrottled_pressure=chance.choice([None, 0.25]),
        )
        for each, (namespace, pod) in enumerate(places)
    )  # fmt: skip
    layers = tuple(
        LayerSample(f"{each}-{name()}", LayerKind.GROUPED, (1,), 0.5, 0.5, 3)
        for each in range(population["layers"])
    )
    return fakes.a_snapshot(
        monotonic_s=100.0 + 5 * n,
        threads=threads,
        pods=pods,
        layers=layers,
    )


def scraped(fakes, population, limit):
    """Look three times, and scrape as both formats within *limit*, and without one."""
    view, totals = fakes.FakeView(), Totals()
    values = [MetricSample(n, {"n": str(n)}) for n in range(population["exported"])]
    view.exported = [("mine", Exporter("mine", lambda _: [Metric(PLUGIN, "Help.", values)]))]
    for n in range(3):
        view.last = observed(fakes, population, n)
        totals.add(view.last)
    view.summed = totals.sums
    text, _ = Scraper(view, limit, CLOCK).scrape("")
    modern, _ = Scraper(view, limit, CLOCK).scrape(OPENMETRICS)
    whole, _ = Scraper(view, 10**9, CLOCK).scrape("")
    plain = Scraped.read(text.decode(), parse_text)
    assert plain == Scraped.read(modern.decode(), parse_openmetrics)
    return view, plain, Scraped.read(whole.decode(), parse_text)


@settings(max_examples=8, phases=UNSHRUNK)
@given(population=populations, limit=st.sampled_from([100, 400, 1_500, 5_000]))
def test_a_scrape_is_readable_within_its_bound_and_counts_what_it_leaves_out(
    fakes, population, limit
):
    _, kept, whole = scraped(fakes, population, limit)

    assert len(kept.series) <= limit
    assert kept.own(SERIES) == len(kept.series)
    assert kept.own(DROPPED) == len(whole.series) - len(kept.series)
    same = {key for key in kept.series if key[0] not in OWN}
    assert all(kept.series[key] == whole.series[key] for key in same)


@settings(max_examples=4, phases=UNSHRUNK)
@given(population=populations)
def test_nothing_but_what_is_documented_is_told_and_no_more_of_it(fakes, population):
    view, _, whole = scraped(fakes, population, 5_000)

    counts = Counter(BY_NAME[name] for name, *_ in whole.series if name != PLUGIN)
    there = {
        Per.NODE: 1,
        Per.LAYER: len(view.last.layers),
        Per.POD: len(merged_pods(view.last.pods)),
        Per.PLUGIN: len(view.found),
        Per.INVARIANT: len(view.last.invariants),
        Per.PROFILE: 0,
    }
    assert all(count <= family.most * there[family.per] for family, count in counts.items())
    for name, *labels in whole.series:
        known = {*BY_NAME[name].labels, "le"} if name != PLUGIN else {"n"}
        assert {label for label, _ in labels} <= known - UNBOUNDED_LABELS
        values = {value for _, value in labels}
        assert not any(value.startswith(("uid-", str(FIRST_TID)[:4])) for value in values)


@pytest.mark.parametrize("limit", [100, 250, 400, 1_000, 1_800, 2_300, 3_000])
def test_what_matters_less_is_left_out_first(fakes, limit):
    population = {
        "pods": 60, "threads": 1_000, "layers": 4, "exported": 300, "names": ["a", "bé", "c\n"],
        "seed": 1,
    }  # fmt: skip

    _, kept, whole = scraped(fakes, population, limit)

    counts = [
        (each.count_named(PLUGIN), *(each.count(families) for families in (THREADS, PODS)))
        for each in (kept, whole)
    ]
    for (less, _), (more, all_of_it) in pairwise(zip(*counts, strict=True)):
        assert not less or more == all_of_it
    assert ("temper_snapshot_age_seconds",) in kept.series


def test_the_busiest_pods_are_told_and_each_with_all_its_series(fakes):
    view, totals = fakes.FakeView(), Totals()
    quiet = view.last.pods[0]
    pods = tuple(evolve(quiet, pod=f"pod-{n}", cpu_used=n / 10) for n in range(50))
    view.last = fakes.a_snapshot(pods=pods)
    totals.add(view.last)
    view.summed = totals.sums

    text, _ = Scraper(view, 400).scrape("")

    told = Counter(
        dict(labels)["pod"]
        for name, *labels in Scraped.read(text.decode(), parse_text).series
        if name.startswith("temper_pod_")
    )
    assert set(told) == {f"pod-{n}" for n in range(50 - len(told), 50)}
    assert len(set(told.values())) == 1
