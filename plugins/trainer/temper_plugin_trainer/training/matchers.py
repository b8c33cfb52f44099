"""Matches of a profile for families of thread names, generalised over the numbers in them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from temper_plugin_trainer.thread_tables import LONGEST_COMM, REPLACEMENT
from temper_plugin_trainer.training.bundles import BundleThread
from temper_plugin_trainer.training.grouping import TrainedGroup, family_of

SHORTEST_PREFIX = 2
"""Characters of a name from which its beginning identifies a family."""

_NUMBER = re.compile(r"\d+")

Match = Mapping[str, str | bool]


def match_of(group: TrainedGroup, threads: Sequence[BundleThread]) -> Match | None:
    """Return the keys of a match that takes *group* and no other of *threads*, by their names.

    A prefix is preferred, since the engine judges it by itself. Threads with the same names in
    another group are told apart by whether they lead their process, or whether it is a child that
    has executed no program. None if nothing tells them apart, or if a name cannot be written.
    """
    process = group.key.process.partition("#")[0]
    if not all(_is_written(name) for name in (*group.names, process)):
        return None
    match: dict[str, str | bool] = {**_name_keys(group, process, threads)}
    if process:
        match["process"] = process
    rivals = [thread for thread in _of_family(group, threads) if thread.tid not in group.tids]
    if not rivals:
        return match
    members = [thread for thread in threads if thread.tid in group.tids]
    is_leader = _difference((t.leader for t in members), (t.leader for t in rivals))
    if is_leader:
        # The name of a leader is that of its process.
        return {"process": process, "leader": True} if process else None
    if is_leader is not None:
        return {**match, "leader": False}
    is_child = _difference((t.child for t in members), (t.child for t in rivals))
    return None if is_child is None else {**match, "is_child": is_child}


def _difference(own: Iterable[bool], others: Iterable[bool]) -> bool | None:
    """Return the value that all of *own* have and none of *others*, None if there is none."""
    values = {*own}
    return values.pop() if len(values) == 1 and values.isdisjoint(others) else None


def _name_keys(
    group: TrainedGroup, process: str, threads: Sequence[BundleThread]
) -> Mapping[str, str]:
    others = {
        thread.comm
        for thread in threads
        if thread.process.startswith(process) and family_of(thread).names != group.key.names
    }
    parts = _NUMBER.split(group.names[0])
    prefix = parts[0]
    if len(prefix) >= SHORTEST_PREFIX and not any(name.startswith(prefix) for name in others):
        return {"comm_prefix": prefix}
    pattern = "[0-9]+".join(map(re.escape, parts))
    return {"comm_pattern": f"^{pattern}$"}


def _of_family(group: TrainedGroup, threads: Sequence[BundleThread]) -> Iterator[BundleThread]:
    return (thread for thread in threads if family_of(thread).names == group.key.names)


def _is_written(name: str) -> bool:
    is_short = len(name.encode(errors="replace")) <= LONGEST_COMM
    return is_short and name.isprintable() and REPLACEMENT not in name
