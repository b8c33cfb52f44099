"""What the agent publishes of its loop."""

from types import SimpleNamespace

import pytest
from attrs import evolve

from temper_core.agent import published as published_module
from temper_core.agent.published import STALE_S, Published
from temper_core.errors import InputError
from temper_core.plugin_host import PluginHost
from temper_core.safe_mode.requests import SafeModeRequests
from temper_core.settings.models import Settings


@pytest.mark.parametrize(
    ("loop_deadline_s", "idle_s", "is_alive"),
    [(60.0, STALE_S - 1, True), (60.0, STALE_S + 1, False), (300.0, STALE_S + 1, True)],
)
def test_a_loop_that_has_not_turned_for_the_bound_is_not_alive(
    monkeypatch, loop_deadline_s, idle_s, is_alive
):
    now = [1000.0]
    monkeypatch.setattr(published_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    settings = Settings()
    scheduler = evolve(settings.scheduler, loop_deadline_s=loop_deadline_s)
    settings = evolve(settings, scheduler=scheduler)
    published = Published(settings, PluginHost(), None, None, None, None)
    published.turned()

    now[0] += idle_s

    assert published.is_alive() is is_alive


@pytest.fixture
def requests(tmp_path):
    return SafeModeRequests(tmp_path / "safe-mode", tmp_path / "requests.json")


@pytest.fixture
def published(requests):
    published = Published(Settings(), PluginHost(), None, requests, None, None)
    published.show_instruments(SimpleNamespace(names=frozenset({"kubernetes", "cli"})))
    return published


def test_only_an_instrument_requests_and_withdraws_in_its_name(published, requests):
    requests.add("kubernetes", "the annotation stands")

    with pytest.raises(InputError, match="'kubernetes' is an instrument"):
        published.release_safe_mode("kubernetes")
    with pytest.raises(InputError, match="'kubernetes' is an instrument"):
        published.request_safe_mode("kubernetes", "mine")

    assert requests.active()["kubernetes"].reason == "the annotation stands"


def test_no_instrument_takes_an_operators_name_away(published, requests):
    published.request_safe_mode("cli", "slow")

    assert published.release_safe_mode("cli")
    assert not requests.active()
