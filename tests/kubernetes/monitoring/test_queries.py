"""A query may name only what is exported."""

import pytest

from deploy.monitoring.catalogue import catalogue, declared, family_of
from deploy.monitoring.queries import UnknownNameError, check_names, families_in
from temper_core import Exporter
from temper_core.metrics.families import FAMILIES
from temper_core.plugin_host.first_party import first_party_host
from temper_core.testing import make_snapshot


def test_the_catalogue_has_every_family_of_the_core_and_of_the_plugins_that_come_with_it():
    host = first_party_host()
    snapshot = make_snapshot(invariants=("any",))
    exported = {
        metric.name
        for contribution in host.gather("temper_exporters", Exporter)
        for metric in host.call(contribution.plugin, contribution.record.collect, snapshot)
    }

    not_asked = {  # services and instruments are opened in an agent only
        family.name
        for plugin, families in declared().items()
        for family in families
        if family.service or plugin in ("power", "rightsizer", "tracer")
    }

    assert {"kubernetes", "linter", "power", "rightsizer", "tracer"} <= set(declared())
    assert set(catalogue()) - not_asked == exported | {family.name for family in FAMILIES}


def test_services_are_in_it_with_their_labels():
    admissions = catalogue()["temper_overcommit_admissions_total"]
    requests = catalogue()["temper_placement_request_seconds"]

    assert (admissions.kind, admissions.labels) == ("counter", ("outcome",))
    assert (requests.kind, requests.labels) == ("histogram", ())


@pytest.mark.parametrize(
    ("series", "family"),
    [
        ("temper_mode", "temper_mode"),
        ("temper_node_wait_seconds_bucket", "temper_node_wait_seconds"),
        ("temper_node_wait_seconds_count", "temper_node_wait_seconds"),
        ("temper_node_wait_seconds", None),
        ("temper_mode_bucket", None),
        ("temper_reloads", None),
        ("temper_reloads_total", "temper_reloads_total"),
    ],
)
def test_series_are_of_their_family(series, family):
    found = family_of(series)

    assert (found and found.name) == family


@pytest.mark.parametrize(
    "query",
    [
        'sum by (mode) (temper_mode{mode="enforcing", cluster=~"a|b"})',
        "rate(temper_node_wait_seconds_bucket[5m])",
        "histogram_quantile(0.9, sum by (le, layer) (rate(temper_layer_wait_seconds_bucket[5m])))",
        'count(up{job="any"}) and on (instance) temper_build_info',
        'temper_pod_info{pod="temper_gone", namespace!~"by (none)"}',
        'label_replace(temper_mode, "said", "$1", "mode", "(.*)") * on (said) temper_build_info',
    ],
)
def test_what_is_exported_may_be_asked_for(query):
    check_names(query)


@pytest.mark.parametrize(
    ("query", "legend", "unknown"),
    [
        ("sum(temper_modes)", "", "temper_modes"),
        ('temper_mode{tier="high"}', "", "'tier'"),
        ("sum by (tier) (temper_mode)", "", "'tier'"),
        ("temper_build_info unless on (pod) temper_mode", "", "'pod'"),
        ("temper_mode", "{{ tier }}", "'tier'"),
        ('temper_mode{mode="x", le="1"}', "", "'le'"),
        ('temper_reload_stock_seconds_sum{le="1"}', "", "'le'"),
        ('rate(temper_mode{mode="}",tier="high"}[5m])', "", "'tier'"),
    ],
)
def test_what_is_not_exported_is_refused(query, legend, unknown):
    with pytest.raises(UnknownNameError, match=unknown):
        check_names(query, legend)


def test_families_are_told_once_each():
    names = [known.name for known in families_in("temper_mode + temper_build_info - temper_mode")]

    assert names == ["temper_mode", "temper_build_info"]
