"""What the tests of a plugin get: a context with a real state directory, and helpers."""

from pathlib import Path

import pytest

from temper_core import (
    HelperBounds,
    InputError,
    MachineError,
    PluginError,
    ThreadGroup,
    WorkloadProfile,
)
from temper_core.testing import MadeContext

FOLDER = Path(__file__).parent / "plugin"


@pytest.fixture(params=["in this process", "in a process of its own"])
def context(request, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    with_processes = request.param == "in a process of its own"
    found = MadeContext(folder=tmp_path, state_limit_bytes=100, with_processes=with_processes)
    yield found
    found.close()


def test_a_helper_goes_by_the_same_rules_with_and_without_a_process(context):
    helper = context.helper("heavy_work:twice", 21)

    assert helper.result(60) == {"twice": 42}
    assert not helper.is_running()


@pytest.mark.parametrize(
    ("function", "argument", "reason"),
    [
        ("raise_one", "odd", "helper heavy_work:raise_one raised ValueError: odd"),
        ("not_a_number", None, "helper heavy_work:not_a_number raised ValueError"),
        ("huge", 100, "helper heavy_work:huge returned 114 bytes of JSON; it may return 64"),
    ],
)
def test_what_fails_fails_alike(context, function, argument, reason):
    helper = context.helper(f"heavy_work:{function}", argument, HelperBounds(result_bytes=64))

    with pytest.raises(PluginError) as caught:
        helper.result(60)

    assert caught.value.reason.startswith(reason)


def test_what_is_no_json_is_refused_alike(context):
    with pytest.raises(InputError, match="is not JSON"):
        context.helper("heavy_work:twice", object())


def test_state_is_real_and_bounded(context, tmp_path):
    written = context.state.write("model.json", b"x" * 60)

    assert written.is_relative_to(tmp_path)
    with pytest.raises(MachineError, match="do not fit"):
        context.state.write("other.json", b"x" * 60)


def test_what_is_charged_is_kept(context):
    with context.charge(), context.charge("rows"):
        pass

    assert context.charged == ["", "rows"]
    with pytest.raises(InputError):
        context.charge("no_name")


def test_without_a_folder_there_is_no_state():
    with pytest.raises(MachineError, match="folder=tmp_path"):
        _ = MadeContext().state


def test_a_trial_is_kept_until_it_is_released():
    context = MadeContext()
    profile = WorkloadProfile("tuned", (ThreadGroup("all"),))

    trial = context.try_profile(profile, ["shop/db-0"], 60.0)

    was_active = trial.is_active()
    trial.release()
    assert context.trials == [trial]
    assert (trial.profile, trial.pods, trial.seconds) == (profile, ("shop/db-0",), 60.0)
    assert (was_active, trial.is_active()) == (True, False)
