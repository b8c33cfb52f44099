"""The plan of a capture's helper process."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

USUAL_CPU_S = 300
"""In an emulator on a busy machine bcc compiles for 150 s."""


@frozen
class HelperPlan:
    """The function of a helper process, and what differs between the kinds of captures.

    Attributes:
        entry_point: ``package.module:function``.
        cpu_s: CPU time that the process may use.
        argument: Added to its argument.
        shown: Added to the entry of ``/traces``.
        follows: Whether the notes of the node are written at each look, and not only at the end.

    """

    entry_point: str
    cpu_s: int = USUAL_CPU_S
    argument: Mapping[str, Any] = field(factory=dict)
    shown: Mapping[str, Any] = field(factory=dict)
    follows: bool = True
