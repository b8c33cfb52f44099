"""What the density plugin declares is what its two services export."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from temper_plugin_density.families import OVERCOMMIT, PLACING
from tests.density.service_pages import pages_of_services


def exported(page):
    for metric in text_string_to_metric_families(page.decode()):
        if metric.name.endswith("_created"):  # of prometheus_client's own; services turn it off
            continue
        labels = {name for sample in metric.samples for name in sample.labels} - {"le"}
        total = "_total" if metric.type == "counter" else ""
        name = f"{metric.name.removesuffix(total)}{total}"
        yield name, metric.type, tuple(sorted(labels)), metric.documentation


@pytest.mark.parametrize(
    ("families", "number"), [(OVERCOMMIT, 0), (PLACING, 1)], ids=["overcommit", "placement"]
)
def test_the_declared_families_are_those_of_the_services_page(families, number):
    page = pages_of_services()[number]

    assert set(exported(page)) == {
        (family.name, family.kind, tuple(sorted(family.labels)), family.help) for family in families
    }
