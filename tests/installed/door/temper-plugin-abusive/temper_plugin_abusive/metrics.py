"""Metrics that are none, too many, or those of others."""

import math
import time

from temper_core import Instrument, Metric, MetricSample, OpenInstrument, hookimpl


class Metrics(OpenInstrument):
    def __init__(self, context):
        del context


class BadName(Metrics):
    def metrics(self):
        return [Metric("No Name!", "Bad.", [MetricSample(1.0)])]


class Many(Metrics):
    def metrics(self):
        samples = [MetricSample(1.0, {"number": str(number)}) for number in range(100_000)]
        return [Metric("temper_abusive_many", "Too many.", samples)]


class NotANumber(Metrics):
    def metrics(self):
        return [Metric("temper_abusive_nan", "NaN.", [MetricSample(math.nan)])]


class Duplicate(Metrics):
    def metrics(self):
        sample = [MetricSample(666.0)]
        yield Metric("temper_mode", "The agent's own.", sample)
        yield Metric("temper_abusive_nan", "Another instrument's.", sample)
        yield Metric("temper_abusive_nan", "The same again.", sample)


class Label(Metrics):
    def metrics(self):
        sample = MetricSample(1.0, {'odd"} 1\ntemper_stolen{a="': 'x"\ntemper_stolen 1'})
        return [Metric("temper_abusive_label", "A label\nthat is\nlines.", [sample])]


class Hanging(Metrics):
    def metrics(self):
        time.sleep(3600)


@hookimpl
def temper_instruments():
    return [
        Instrument("abusive-bad-name", BadName),
        Instrument("abusive-many", Many),
        Instrument("abusive-nan", NotANumber),
        Instrument("abusive-duplicate", Duplicate),
        Instrument("abusive-label", Label),
        Instrument("abusive-hanging-metrics", Hanging),
    ]
