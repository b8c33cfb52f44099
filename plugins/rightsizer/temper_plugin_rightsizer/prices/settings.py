"""The prices in the settings: the table ``[plugins.rightsizer.prices]``."""

from collections.abc import Mapping

from attrs import Factory, frozen
from attrs.validators import and_, deep_mapping, ge, instance_of, le, max_len

from temper_core import setting

MOST_PRICE = 1e6
MOST_MACHINES = 1000
LONGEST_TYPE = 128
UNKNOWN = "no price of the machine type is known: priced per core and GiB by the settings"
_PRICE = and_(instance_of((int, float)), ge(0.0), le(MOST_PRICE))


@frozen
class Prices:
    """The prices of the savings, for an hour and in one currency.

    The defaults are list prices in US dollars of Google Cloud us-central1, as OpenCost has them
    (configs/default.json at 0d1f69cc).
    """

    core_hour: float = setting(
        0.031611,
        "The price of a core for an hour, where the machine type has no price. With gib_hour it is "
        "also the ratio by which the price of a machine is shared out.",
        validator=_PRICE,
    )
    gib_hour: float = setting(
        0.004237,
        "The price of a GiB of memory for an hour, where the machine type has no price.",
        validator=_PRICE,
    )
    machines: Mapping[str, float] = setting(
        Factory(dict),
        "The price of a machine for an hour, by machine type. It replaces the list price.",
        validator=deep_mapping(
            and_(instance_of(str), max_len(LONGEST_TYPE)),
            _PRICE,
            max_len(MOST_MACHINES),
        ),
    )
