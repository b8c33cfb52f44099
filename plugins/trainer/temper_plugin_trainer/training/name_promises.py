"""Words of thread names that promise a behaviour, and behaviours that contradict them."""

from temper_plugin_trainer.name_families import name_words
from temper_plugin_trainer.training.classes import ThreadClass

_COMPUTE, _LATENCY = ThreadClass.SYNC_COMPUTE, ThreadClass.LATENCY_CRITICAL
_CHAIN, _SPORADIC = ThreadClass.WAKE_CHAIN, ThreadClass.SPORADIC

PROMISES: tuple[tuple[str, frozenset[ThreadClass]], ...] = (
    ("idle sleep sleeper monitor watchdog housekeeper cron reaper", frozenset((_SPORADIC,))),
    ("timer tick ticker poll poller", frozenset((_SPORADIC, _LATENCY))),
    ("gc compact compaction cleaner", frozenset((_SPORADIC, _COMPUTE))),
    ("flush flusher purge purger", frozenset((_SPORADIC, _COMPUTE, _CHAIN))),
    ("log logger logging", frozenset((_SPORADIC, _CHAIN, _LATENCY))),
    (
        "io net rpc grpc epoll reactor acceptor listener",
        frozenset((_CHAIN, _LATENCY, _SPORADIC)),
    ),
    ("compute cruncher solver render encoder", frozenset((_COMPUTE,))),
)
"""Words of names, separated by blanks, and the classes that they promise."""


def contradiction(family: str, kind: ThreadClass) -> str:
    """Return how *kind* contradicts the words of *family*. Empty if it does not."""
    words = name_words(family)
    said = [
        (word, kinds)
        for promising, kinds in PROMISES
        for word in promising.split()
        if word in words
    ]
    if not said or any(kind in kinds for _, kinds in said):
        return ""
    word, kinds = said[0]
    promised = " or ".join(each for each in ThreadClass if each in kinds)
    return f"its name says {word!r}, which is {promised}"
