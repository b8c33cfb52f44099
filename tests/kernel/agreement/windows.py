"""One window of an agent's, with reads of the kernel's files around both of its looks."""

import time

from agents import PERIOD_S, NotInTime

from tests.core.observe.agreement.held import Window

TRIES = 4
EVERY_S = 0.3
READING_S = 6.0
"""So long before a look the files are read, which takes the emulator two or three seconds."""


def observe(agent, looker, work):
    """Let *work* be done within a window; return the document of it and the reads around it.

    Where the work does not fit between two looks, another window is tried.
    """
    told = []
    for _ in range(TRIES):
        at = agent.see(top=1).at
        before, first, begun, _ = _edge(agent, looker, at)
        work()
        worked = time.time()
        ending, second, after, between = _edge(agent, looker, first.at)
        window_s, read = second.document["window_s"], ending.ended - first.at
        told.append(f"worked {worked - first.at:.1f} s of {window_s:.1f}, read {read:.1f} s")
        is_next = abs(window_s - (second.at - first.at)) < EVERY_S
        if is_next and ending.ended <= second.at and before.ended <= first.at:
            return second.document, Window(before, begun, ending, after, tuple(between))
    raise NotInTime(f"the load does not fit between two looks: {'; '.join(told)}")


def _edge(agent, looker, at):
    """Wait for the look after the one of *at*; return it between a read before and one after it.

    The last that is returned are the gauges meanwhile.
    """
    time.sleep(max(0.0, at + PERIOD_S - READING_S - time.time()))
    before, gauges = looker.look(), [looker.gauges()]
    while agent.see(top=1).at == at:
        gauges.append(looker.gauges())
        time.sleep(EVERY_S)
    gauges.append(looker.gauges())
    return before, agent.see(top=1000), looker.look(), gauges
