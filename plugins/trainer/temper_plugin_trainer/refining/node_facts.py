"""A record's facts about the measured node."""

import os

from attrs import frozen

from temper_core import read_machine


@frozen
class NodeFacts:
    """The shape of a machine in words, and the release of its kernel."""

    machine: str
    kernel: str


def facts_here() -> NodeFacts:
    """Return the facts of this machine."""
    machine = read_machine()
    words = f"{machine.cores} cores, {machine.threads_per_core} threads per core"
    return NodeFacts(words, os.uname().release)
