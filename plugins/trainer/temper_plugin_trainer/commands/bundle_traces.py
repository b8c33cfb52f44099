"""The kernel trace of a bundle: a capture by the agent after the observation, under its load."""

import base64
from collections.abc import Mapping
from typing import Any

from temper_core import InputError, TemperError
from temper_core.console import is_interrupted
from temper_plugin_trainer.refining.door_traces import DoorTraces
from temper_plugin_trainer.refining.trial_door import way_here
from temper_plugin_trainer.training.bundles import LONGEST_REASON, BundleTrace


def bundle_trace(settings: Any, selection: Mapping[str, str | int]) -> BundleTrace:  # noqa: ANN401 - as of load_settings
    """Capture *selection*, a pod or a process, and return the trace, or why there is none."""
    traces, capture = DoorTraces(way_here(settings), _wait), ""
    try:
        traces.require()
        capture = traces.begin(selection)
        taken = traces.taken(capture)
    except TemperError as error:
        return BundleTrace(str(error)[:LONGEST_REASON])
    finally:
        if capture:
            traces.forget(capture)
    content = base64.b64encode(taken.content).decode()
    return BundleTrace("", content, taken.events, taken.seconds, taken.ended_by)


def _wait(seconds: float) -> None:
    if is_interrupted(seconds):
        raise InputError("interrupted")
