"""What machines cost, and what a core and a GiB of each do."""

import pytest

from temper_core import DocumentError, fit
from temper_plugin_rightsizer.options import Options
from temper_plugin_rightsizer.prices.machines import (
    BY_SETTINGS,
    Machine,
    list_prices,
    listed,
    mean_prices,
    priced,
)
from temper_plugin_rightsizer.prices.reading import prices_in
from temper_plugin_rightsizer.prices.settings import UNKNOWN, Prices


@pytest.mark.parametrize(
    ("kind", "hour"),
    [
        ("m5.large", 0.096),
        ("m5.24xlarge", 4.608),
        ("c7g.medium", 0.0363),
        ("t3.nano", 0.0052),
        ("c7i-flex.xlarge", 0.16958),
        ("n2-standard-4", 0.194236),
        ("e2-highcpu-16", 0.39576),
        ("n2-highmem-128", 7.706976),
        ("Standard_D4s_v5", 0.192),
        ("Standard_D2as_v5", 0.086),
        ("Standard_E32as_v5", 1.808),
        ("Standard_E64s_v3", 3.629),
        ("Standard_F2s_v2", 0.0846),
        ("Standard_DC96as_v6", 4.3584),
        ("Standard_L8s_v3", 0.696),
    ],
)
def test_a_known_machine_type_has_its_list_price(kind, hour):
    """The prices are those of the lists that the sources name, for single sizes of a family."""
    assert listed(kind)[0] == pytest.approx(hour, rel=0.03)


@pytest.mark.parametrize(
    "kind",
    [
        *("", "m5.metal", "m5.largest", "p4d.24xlarge", "n2-standard-9999"),
        *("Standard_E8-4s_v5", "Standard_DS3_v2", "Standard_NC24ads_A100_v4", "Standard_D4s_v99"),
    ],
)
def test_no_other_machine_type_has_one(kind):
    assert listed(kind) is None


def test_a_price_of_azure_names_its_region_and_its_date():
    price = priced(Machine("Standard_D4s_v5", 4, 16), Prices())

    assert price.hour == pytest.approx(0.192)
    assert price.source == "list price of Azure eastus, 2026-06-18"


def test_each_list_has_its_date_and_its_source():
    for provider in list_prices():
        assert provider.at.startswith("20")
        assert provider.source


def test_the_price_of_a_machine_is_shared_out_among_its_cores_and_its_memory():
    machine = Machine("m5.xlarge", 4, 16)

    price = priced(machine, Prices())

    assert price.hour == pytest.approx(0.192)
    assert 4 * price.core_hour + 16 * price.gib_hour == pytest.approx(price.hour)
    assert price.core_hour / price.gib_hour == pytest.approx(0.031611 / 0.004237)
    assert price.source == "list price of AWS us-east-1, 2026-07-20"


def test_a_price_of_the_settings_replaces_the_list_price():
    price = priced(Machine("m5.xlarge", 4, 16), Prices(machines={"m5.xlarge": 0.1}))

    assert (price.hour, price.source) == (0.1, BY_SETTINGS)


def test_an_unknown_machine_type_is_priced_per_core_and_gib_and_says_so():
    price = priced(Machine("rack-7", 10, 100), Prices(core_hour=0.02, gib_hour=0.003))

    assert (price.hour, price.core_hour, price.gib_hour) == (pytest.approx(0.5), 0.02, 0.003)
    assert price.source == UNKNOWN


def test_without_a_ratio_all_of_a_price_is_for_the_cores():
    price = priced(Machine("m5.xlarge", 4, 16), Prices(core_hour=0, gib_hour=0))

    assert (price.core_hour, price.gib_hour) == (pytest.approx(0.048), 0.0)


def test_the_mean_is_by_the_sizes_of_the_machines():
    small, large = Machine("a", 2, 4), Machine("b", 6, 4)
    known = [(each, priced(each, Prices(machines={"a": 1.0, "b": 9.0}))) for each in (small, large)]

    core_hour, gib_hour = mean_prices(known)

    assert 8 * core_hour + 8 * gib_hour == pytest.approx(10.0)
    assert mean_prices([]) == (0.0, 0.0)


def test_settings_have_prices_by_machine_type(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(
        "[plugins.rightsizer.prices]\ncore_hour = 0.05\n"
        '[plugins.rightsizer.prices.machines]\n"m5.large" = 0.08\nrack = 1\n'
    )

    prices = prices_in(path)

    assert (prices.core_hour, dict(prices.machines)) == (0.05, {"m5.large": 0.08, "rack": 1.0})


@pytest.mark.parametrize(
    "prices", [{"core_hour": -1}, {"machines": {"m5.large": "cheap"}}, {"machines": {"x": 1e9}}]
)
def test_a_price_that_is_none_is_refused(prices):
    with pytest.raises(DocumentError, match="prices"):
        fit({"prices": prices}, Options, source="settings")
