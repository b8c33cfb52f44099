"""What a report's containers request together."""

from attrs import asdict

from temper_plugin_rightsizer.advice.records import Resources
from temper_plugin_rightsizer.commands.formats import as_table
from temper_plugin_rightsizer.commands.showing import BY_HAND, Showing
from temper_plugin_rightsizer.commands.totals import (
    as_line,
    as_lines,
    realized_of,
    savings_of,
    total_of,
)
from temper_plugin_rightsizer.prices.settings import UNKNOWN

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


MACHINE = {
    "type": "m5.xlarge",
    "nodes": 2,
    "cores": 4.0,
    "gib": 16.0,
    "hour": 0.192,
    "core_hour": 0.03,
    "gib_hour": 0.0045,
    "source": "list price",
    "idle_cores": 3.0,
    "idle_gib": 10.0,
}


def test_idle_headroom_is_part_of_what_is_identified():
    document = {**priced(0.03, 0.004), "machines": [MACHINE]}

    savings = savings_of(document)

    assert savings.headroom_per_month == round((3 * 0.03 + 10 * 0.0045) * 730, 2)
    assert savings.per_month == round(savings.requests.per_month + savings.headroom_per_month, 2)
    assert as_line(document).endswith(
        "Identified savings, an estimate: 173.01 a month = 74.46 by requests, "
        "(3.00 cores x 0.03 + 3.00 GiB x 0.004) x 730 h, and 98.55 by idle headroom, "
        "3.00 cores and 10.00 GiB that no pod requests"
    )


def test_headroom_that_is_not_known_is_none():
    document = {**priced(0.03, 0.004), "machines": [{**MACHINE, "idle_cores": None}]}

    assert savings_of(document).headroom is None


def measured(reclaimed, freed):
    used = {"reclaimed_core_s": reclaimed, "freed_core_s": freed}
    rows = [{**each, "used": used} for each in priced(0.03, 0.004)["containers"]]
    return {"containers": rows, "window_s": 21_600, "prices": {"core_hour": 0.03}}


def test_what_was_realized_is_never_added_to_what_is_identified():
    document = measured(7200.0, 36_000.0)

    assert as_line(document) == as_line({**document, "containers": priced(0, 0)["containers"]})
    assert as_lines(document)[-1] == (
        "Realized in the last 6 h, as measured, and part of no estimate: background work ran "
        "2.00 core-hours (0.06 at 0.03) on CPUs that others requested; the overcommit webhook "
        "freed 10.00 core-hours (0.30 at 0.03) of requests"
    )


def test_nothing_realized_is_no_line():
    assert len(as_lines(measured(0.0, 0.0))) == 1
    assert realized_of(priced(0.03, 0.004)) is None


def showing(**prices):
    return Showing("json", True, False, prices.get("core_price"), prices.get("gib_price"))


def test_each_machine_type_is_told_with_its_price_and_source():
    document = showing().priced({**priced(0.03, 0.004), "machines": [MACHINE]})

    assert document["identified_savings_per_month"] == 173.01
    assert (
        "2 x m5.xlarge (4 cores, 16.0 GiB): 0.192 an hour, a core 0.03, a GiB 0.0045 (list price)"
        in as_table(document, explains=False).splitlines()
    )


def test_prices_of_the_command_line_replace_all_others():
    document = showing(core_price=1.0).priced({**priced(0.03, 0.004), "machines": [MACHINE]})

    assert document["machines"][0]["source"] == document["prices"]["source"] == BY_HAND
    assert document["identified_savings"] == {
        "requests_per_month": 2190.0,
        "headroom_per_month": 2190.0,
    }


def test_a_node_is_priced_by_the_settings_of_its_agent():
    document = {"containers": [], "price_settings": {"core_hour": 0.5, "gib_hour": 0.1}}

    priced_by_settings = showing().priced(document)

    prices = priced_by_settings["prices"]
    assert (prices["core_hour"], prices["gib_hour"]) == (0.5, 0.1)
    assert as_lines(priced_by_settings)[-1] == f"a core 0.5, a GiB 0.1 an hour ({UNKNOWN})"
