import json

import pytest

import temper_plugin_run_delay
from temper_core import InputError, PodSample, Request, Tier
from temper_core.testing import MadeContext, assert_keeps_contract, make_snapshot
from temper_plugin_run_delay.instrument import RunDelay
from temper_plugin_run_delay.limits import Limits
from temper_plugin_run_delay.live import Live

SLOW = PodSample("shop", "web", "uid-1", Tier.HIGH, 1, cpu_used=0.5, run_delay=1.5)
FAST = PodSample("shop", "db", "uid-2", Tier.HIGH, 1, cpu_used=0.5)
SNAPSHOT = make_snapshot(pods=(SLOW, FAST))
LIMITS = Limits(log_kib=1, state_kib=16)


@pytest.fixture
def context(tmp_path):
    made = MadeContext(folder=tmp_path)
    yield made
    made.close()


@pytest.fixture
def instrument(context):
    opened = RunDelay(context, LIMITS)
    yield opened
    opened.close()


@pytest.fixture
def ask(instrument):
    endpoints = {endpoint.name: endpoint for endpoint in instrument.endpoints()}

    def answer(endpoint, content=b"", **query):
        return endpoints[endpoint].answer(Request(query, content=content))

    return answer


def only_log(ask):
    [name] = ask("list-delay-logs")["logs"]
    return name


def test_the_plugin_keeps_its_contract():
    assert_keeps_contract(temper_plugin_run_delay, "run-delay")


def test_each_snapshot_is_a_line_of_the_log(instrument, ask):
    instrument.tell(SNAPSHOT)
    instrument.tell(SNAPSHOT)

    lines = ask("get-delay-log", name=only_log(ask)).file.read_text().splitlines()

    assert [json.loads(line)["delays"] for line in lines] == [{"shop/web": 1.5, "shop/db": 0.0}] * 2


def test_a_full_log_is_closed_and_recorded(instrument, context):
    for _ in range(20):
        instrument.tell(SNAPSHOT)

    kinds = [kind for kind, _, _ in context.recorded]
    assert "delay_log_closed" in kinds


def test_a_pod_that_waits_too_long_is_one_event_and_a_warning(instrument, context):
    instrument.tell(SNAPSHOT)
    instrument.tell(SNAPSHOT)

    [check] = instrument.checks()
    assert [(kind, pod) for kind, pod, _ in context.recorded] == [("run_delay_high", "shop/web")]
    assert check.state == "warning"
    assert instrument.section(SNAPSHOT)["slow"] == ["shop/web"]


def test_the_lamp_is_lit_while_the_instrument_is_open(context, tmp_path):
    lamp = tmp_path / "board/front/lamp"
    lamp.parent.mkdir(parents=True)
    lamp.write_text("dark\n")

    opened = RunDelay(context, Limits(lamps=str(tmp_path / "board")))
    opened.tell(SNAPSHOT)
    during = lamp.read_text()
    opened.close()

    assert (during, lamp.read_text()) == ("lit", "dark")


def test_every_pod_of_every_snapshot_is_counted(instrument):
    instrument.tell(SNAPSHOT)

    [metric] = instrument.metrics()

    assert sum(metric.samples[0].value.counts) == 2
    assert metric.samples[0].value.total == 1.5


def test_a_log_can_be_removed_once(instrument, ask):
    instrument.tell(SNAPSHOT)
    name = only_log(ask)

    assert ask("drop-delay-log", name=name).status == 200
    assert ask("drop-delay-log", name=name).status == 404


def test_a_name_that_is_none_of_a_log_is_refused(ask):
    with pytest.raises(InputError):
        ask("get-delay-log", name="../secret")


def test_a_summary_is_made_by_a_helper(instrument, ask):
    instrument.tell(SNAPSHOT)

    begun = ask("summarize-delay-log", name=only_log(ask))

    assert begun.status == 202
    web = ask("get-delay-summary")["pods"]["shop/web"]
    assert web == {"count": 1, "median": 1.5, "p99": 1.5}


def test_the_profile_is_tried_on_a_pod_and_released_at_the_end(instrument, context, ask):
    begun = ask("try-favoured", b'{"pod": "shop/web", "seconds": 60}')

    [trial] = context.trials
    assert (begun["trial"], trial.profile.id, trial.pods) == (trial.id, "favoured", ("shop/web",))
    instrument.close()
    assert not trial.is_active()


def test_a_stream_has_an_event_for_a_snapshot_and_ends_with_the_instrument():
    live = Live()
    events = live.events()
    live.publish({"shop/web": 1.5})

    assert next(events) == b'event: delays\nid: 1\ndata: {"shop/web": 1.5}\n\n'
    live.close()
    assert next(events, None) is None


def test_the_page_loads_its_own_script_and_style(ask):
    page = ask("run-delay-page").content.decode()

    for name in ("page.js", "page.css"):
        assert f"/run-delay/page/{name}" in page
        assert ask("run-delay-asset", file=name).status == 200
    assert ask("run-delay-asset", file="../logs.py").status == 404
