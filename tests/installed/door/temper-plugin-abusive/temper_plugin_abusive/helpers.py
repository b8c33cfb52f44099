"""Helpers that take what they can, and one that is started a hundred times."""

from temper_core import (
    Endpoint,
    HelperBounds,
    Instrument,
    MachineError,
    OpenInstrument,
    PluginError,
    hookimpl,
)

MIB = 1024 * 1024
BOUNDS = HelperBounds(memory_bytes=64 * MIB, cpu_s=5, seconds=2.0)
LONG = HelperBounds(memory_bytes=64 * MIB)


class Helpers(OpenInstrument):
    def __init__(self, context):
        self._context = context
        self._forever = context.helper("temper_plugin_abusive.work:forever", None, LONG)

    def endpoints(self):
        parameters = {"name": "The function."}
        path, hundred = "/abuse/helper/{name}", "/abuse/hundred-helpers"
        yield Endpoint("hundred", "POST", hundred, "Abuse.", self._start_many, acts=True)
        yield Endpoint(
            "begin-helper", "POST", path, "Abuse.", self._begin, acts=True, parameters=parameters
        )
        yield Endpoint("show-helper", "GET", path, "Abuse.", self._show, parameters=parameters)

    def section(self, snapshot):
        return {"forever": self._forever.pid}

    def _begin(self, request):
        name = request.query["name"]
        self._helper = self._context.helper(f"temper_plugin_abusive.work:{name}", None, BOUNDS)
        return {"pid": self._helper.pid}

    def _show(self, _request):
        try:
            return {"result": self._helper.result()}
        except TimeoutError:
            return {}
        except PluginError as error:
            return {"reason": error.reason}

    def _start_many(self, _request):
        refusals, helpers = set(), []
        for _ in range(100):
            try:
                helpers.append(self._context.helper("temper_plugin_abusive.work:forever", 1, LONG))
            except MachineError as error:
                refusals.add(str(error))
        for helper in helpers:
            helper.stop()
        return {"started": len(helpers), "refusals": sorted(refusals)}


@hookimpl
def temper_instruments():
    return [Instrument("abusive-helpers", Helpers)]
