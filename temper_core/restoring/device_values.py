"""Values of devices that an instrument has changed through a library, such as a driver's.

Only the plugin reaches the devices. So ``temper restore`` asks the instrument of that name for
them, and keeps the record where the plugin is not installed.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from attrs import evolve

from temper_core.errors import MachineError, TemperError
from temper_core.plugin_host import Contribution, PluginHost, load_host
from temper_core.records.instruments import Instrument, StateDirectory, ValueHolder
from temper_core.records.restored import Restored
from temper_core.restoring.changed_values import (
    NOT_GIVEN_BACK,
    ChangedValue,
    ChangedValues,
    RecordFile,
    give_back_each,
    not_given_back,
    read_record,
    told,
)
from temper_core.settings.models import Settings

RECORD = RecordFile("device-values.json", r"[!-~][ -~]{0,399}")
DEADLINE_S = 10.0
"""For a driver: the first process that opens it may have to wait for the device."""


OpenDevices = Callable[[], AbstractContextManager[ValueHolder]]


class DeviceValues(ChangedValues):
    """The values of *devices* that an instrument changes, recorded in its *state* directory.

    Only one thread may use it. Another one may call ``let_go``. The instrument's
    ``Instrument.devices`` reaches the same devices.
    """

    def __init__(self, state: StateDirectory, devices: ValueHolder) -> None:
        super().__init__(state, RECORD, devices)


class Plugins(Protocol):
    """Gives back values of devices by the plugins that reach them."""

    def give_back(self, instrument: str, values: Sequence[ChangedValue]) -> Restored:
        """Return what became of *values*. Raise MachineError if the devices cannot be reached."""
        ...


def give_back_devices(
    directory: Path, plugins: Plugins, *, is_dry: bool = False, descriptor: int | None = None
) -> Restored:
    """Give back the values of the record in *directory*, whose name is that of the instrument.

    With *is_dry* only report them. *descriptor* is that directory opened, if its path may lead
    elsewhere meanwhile.
    """
    try:
        values = read_record(directory, RECORD, descriptor)
        if is_dry or not values:
            return Restored(tuple(map(told, values)))
        return plugins.give_back(directory.name, values)
    except MachineError as error:
        return not_given_back(directory, RECORD, str(error))


class HostedPlugins:
    """The plugins of *host*, which is asked for their instruments once it is needed."""

    def __init__(self, host: Callable[[], PluginHost]) -> None:
        self._host = host

    def give_back(self, instrument: str, values: Sequence[ChangedValue]) -> Restored:
        """Call the plugin in a thread of its own, with a deadline. Implements ``Plugins``."""
        host = self._host()
        contribution = _contribution_of(host, instrument)
        open_devices = None if contribution is None else contribution.record.devices
        if contribution is None or open_devices is None:
            why = f"no installed plugin reaches the devices of instrument {instrument}"
            raise MachineError(f"{why}; {NOT_GIVEN_BACK}")
        try:
            return host.call(
                contribution.plugin,
                _give_back_each,
                open_devices,
                values,
                allows=(TemperError,),
                part=f"instrument {instrument}, devices",
                deadline_s=DEADLINE_S,
            )
        except TemperError as error:
            raise MachineError(f"{error}; {NOT_GIVEN_BACK}") from error


def installed_plugins(settings: Settings) -> HostedPlugins:
    """Return the installed plugins without broken ones. They load when a restoration needs one."""
    lenient = evolve(settings, plugin_host=evolve(settings.plugin_host, strict=False))
    return HostedPlugins(lambda: load_host(lenient))


def _contribution_of(host: PluginHost, instrument: str) -> Contribution[Instrument] | None:
    contributions = host.gather("temper_instruments", Instrument)
    return next((each for each in contributions if each.record.name == instrument), None)


def _give_back_each(open_devices: OpenDevices, values: Sequence[ChangedValue]) -> Restored:
    with open_devices() as devices:
        return give_back_each(values, devices)[0]
