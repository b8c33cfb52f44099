"""The families of a page of metrics, as plugins declare them."""

from prometheus_client.parser import text_string_to_metric_families


def exported(page):
    """Return the name, the kind, the labels and the meaning of each family of a *page*."""
    return set(_each(page))


def declared(families):
    """Return the same of declared families."""
    return {
        (family.name, family.kind, tuple(sorted(family.labels)), family.help) for family in families
    }


def _each(page):
    for metric in text_string_to_metric_families(page.decode()):
        if metric.name.endswith("_created"):  # of prometheus_client's own; services turn it off
            continue
        labels = {name for sample in metric.samples for name in sample.labels} - {"le"}
        total = "_total" if metric.type == "counter" else ""
        name = f"{metric.name.removesuffix(total)}{total}"
        yield name, metric.type, tuple(sorted(labels)), metric.documentation
