"""What a report's containers request together."""

from attrs import asdict

from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.commands.totals import as_line, savings_of, total_of

GIB = 1024**3
CPU = "cpu_request_millis"


def row(current, recommended, replicas=None):
    more = {} if replicas is None else {"replicas": replicas}
    return {"current": asdict(current), "recommended": asdict(recommended), **more}


def test_requests_count_for_each_replica():
    document = {"containers": [row(Resources(2000), Resources(500), replicas=3)]}

    total = total_of(document, CPU)

    assert (total.now, total.advice, total.unset) == (6.0, 1.5, 0)


def test_a_container_without_a_request_is_counted_apart():
    document = {
        "containers": [row(Resources(1000), Resources(1500)), row(Resources(), Resources(700))]
    }

    total = total_of(document, CPU)

    assert (total.now, total.advice, total.unset) == (1.0, 1.5, 1)


def test_the_line_has_both():
    now = Resources(2000, None, 2 * GIB, None)
    document = {"containers": [row(now, Resources(1200, None, GIB // 2, None)), row(now, now)]}

    assert as_line(document) == (
        "requested in all: CPU 4.00 -> 3.20 cores, memory 4.00 -> 2.50 GiB"
    )


def test_without_containers_nothing_is_requested():
    assert as_line({"containers": []}) == (
        "requested in all: CPU 0.00 -> 0.00 cores, memory 0.00 -> 0.00 GiB"
    )


def priced(core_hour, gib_hour):
    now = Resources(2000, None, 2 * GIB, None)
    wanted = Resources(1000, None, GIB, None)
    prices = {"core_hour": core_hour, "gib_hour": gib_hour}
    return {"containers": [row(now, wanted, replicas=3)], "prices": prices}


def test_savings_are_the_freed_requests_of_all_replicas_at_the_prices():
    document = priced(0.03, 0.004)

    assert savings_of(document).per_month == round((3 * 0.03 + 3 * 0.004) * 730, 2)
    assert as_line(document).endswith(
        "Identified savings, an estimate: 74.46 a month = "
        "(3.00 cores x 0.03 + 3.00 GiB x 0.004) x 730 h"
    )


def test_a_price_that_is_not_given_counts_nothing():
    assert savings_of(priced(0.03, None)).per_month == round(3 * 0.03 * 730, 2)
    assert savings_of(priced(None, None)) is None


def test_advice_that_adds_more_saves_less_than_nothing():
    small, large = Resources(1000), Resources(3000)
    document = {"containers": [row(small, large)], "prices": {"core_hour": 0.1}}

    assert savings_of(document).per_month == -146.0
