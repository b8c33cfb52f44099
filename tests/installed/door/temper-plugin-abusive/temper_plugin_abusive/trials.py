"""Trials that cannot be."""

from temper_core import Endpoint, Instrument, OpenInstrument, TemperError, hookimpl, parse_profile

PROFILE = """
schema_version = 1
id = "abusive"
[[thread_groups]]
name = "all"
treatment = "latency"
"""
MANY = 1000


class Trials(OpenInstrument):
    def __init__(self, context):
        self._context = context

    def endpoints(self):
        path = "/abuse/trials/{namespace}/{name}"
        parameters = {"namespace": "Of a pod.", "name": "Of that pod."}
        yield Endpoint(
            "abuse-trials", "POST", path, "Abuse.", self._begin, acts=True, parameters=parameters
        )

    def _begin(self, request):
        pod = f"{request.query['namespace']}/{request.query['name']}"
        return {
            "missing": self._try(["nowhere/nothing"], 60),
            "long": self._try([pod], 1_000_000),
            "negative": self._try([pod], -1),
            "nan": self._try([pod], float("nan")),
            "many": self._try([pod] * MANY, 60),
            "first": self._try([pod], 60),
            "twice": self._try([pod], 60),
        }

    def _try(self, pods, seconds):
        try:
            profile = parse_profile(PROFILE, "abusive.toml")
            return {"trial": self._context.try_profile(profile, pods, seconds).id}
        except TemperError as error:
            return {"refused": str(error)}


@hookimpl
def temper_instruments():
    return [Instrument("abusive-trials", Trials)]
