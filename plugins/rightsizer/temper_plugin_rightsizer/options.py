"""The settings of the rightsizer: the table ``[plugins.rightsizer]``."""

from attrs import frozen
from attrs.validators import and_, ge, instance_of, le

from temper_core import setting
from temper_plugin_rightsizer.prices.settings import Prices

MIB = 1024 * 1024
LEAST_MIB, MOST_MIB = 1, 4096
MOST_DAYS = 14
HOURS_OF_DAY = 24
MOST_STARTUP_MINUTES = 60


@frozen
class Options:
    """The rightsizer's settings."""

    window_hours: int = setting(
        6,
        "The hours of history that advice follows from, unless a request says otherwise.",
        validator=and_(instance_of(int), ge(1), le(MOST_DAYS * HOURS_OF_DAY)),
    )
    keep_days: int = setting(
        MOST_DAYS,
        "The days that the history is kept on the node.",
        validator=and_(instance_of(int), ge(1), le(MOST_DAYS)),
    )
    startup_minutes: int = setting(
        5,
        "The minutes after a container's start whose demand sets no request. 0 sets none apart.",
        validator=and_(instance_of(int), ge(0), le(MOST_STARTUP_MINUTES)),
    )
    history_mib: int = setting(
        64,
        "The bound on the file of the history, in MiB. Beyond it the oldest hours are forgotten.",
        validator=and_(instance_of(int), ge(LEAST_MIB), le(MOST_MIB)),
    )
    prices: Prices = Prices()
