"""The recordings, and which pack each of them tests."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from temper_core import WorkloadProfile
from temper_core.profiles.documents import complete
from temper_core.records.profiles import DerivedProfile
from temper_plugin_builtin_profiles.packs import read_packs
from temper_plugin_trainer.coverage import Coverage, Judged, judge
from temper_plugin_trainer.thread_tables import ThreadTable, read_thread_table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GOLDENS = HERE / "goldens"
SHIPPED = {profile.id: profile for profile in read_packs()}
PACKS = {
    name: complete(pack, SHIPPED[pack.extends], name) if isinstance(pack, DerivedProfile) else pack
    for name, pack in SHIPPED.items()
}
RECORDINGS: dict[str, ThreadTable] = {
    path.stem: read_thread_table(path)
    for path in sorted((ROOT / "plugins/builtin_profiles/recordings").glob("*.json"))
}

TESTED_ON = {
    "cassandra": ("cassandra-*",),
    "envoy": ("envoy-*",),
    "haproxy": ("haproxy-*",),
    "jvm": ("openjdk-*",),
    "kafka": ("kafka-*",),
    "llama-cpp": ("llama-server-*",),
    "memcached": ("memcached-*",),
    "mysql-innodb": ("mysql-*", "mariadb-*"),
    "nginx": ("nginx-*",),
    "node": ("node-22.*", "node-24.*", "node-26.*"),
    "onnxruntime": ("onnxruntime-*",),
    "postgresql": ("postgresql-*",),
    "pytorch-training": ("pytorch-*",),
    "rabbitmq": ("rabbitmq-*",),
    "redis": ("redis-*",),
    "valkey": ("valkey-*",),
}
"""Pack -> globs on the names of recordings; one that no pack is tested on needs a reason below."""

ONE_ROLE = "every thread has the program's name and takes any work; the tier says it all"
WITHOUT_PACK = {
    "elasticsearch-*": "its pools have one name once the kernel has cut it; `jvm` says the rest",
    "go-*": ONE_ROLE,
    "gunicorn-*": ONE_ROLE,
    "uvicorn-*": "one busy thread per process; the tier says it all",
    "node-20.*": "names none of its threads",
    "numpy-*": "a library inside others' programs, its pool unnamed",
}


def recorded_for(pack: str) -> Iterator[str]:
    """Yield the names of the recordings that *pack* is tested on."""
    globs = TESTED_ON.get(pack, ())
    return (name for name in RECORDINGS if any(fnmatch(name, glob) for glob in globs))


PAIRS = [(pack, recording) for pack in PACKS for recording in recorded_for(pack)]


def golden_of(profile: WorkloadProfile, table: ThreadTable) -> dict[str, Any]:
    """Return what a golden file keeps: the groups' threads, steered and static."""
    return {
        "steered": _told(judge(profile, table)),
        "static": _told(judge(profile, table, is_static=True)),
    }


def golden_path(pack: str, recording: str) -> Path:
    """Return the golden file of a pair."""
    return GOLDENS / f"{pack}@{recording}.json"


def _told(coverage: Coverage) -> dict[str, Any]:
    members: defaultdict[str, list[Judged]] = defaultdict(list)
    for each in coverage.judged:
        members[each.group.name if each.group else "none"].append(each)
    order = [*(group.name for group in coverage.profile.thread_groups), "none"]
    groups = {name: _counted(members[name]) for name in order if members[name]}
    return {"covered_percent": round(100 * coverage.covered_share, 1), "groups": groups}


def _counted(judged: Iterable[Judged]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for each in judged:
        counted[_label(each)] += each.thread.count
    return dict(sorted(counted.items()))


def _label(judged: Judged) -> str:
    """Say who a thread is: its names, and of a process that shows no names its title."""
    thread = judged.thread
    names = "|".join((thread.comm, *thread.names))
    if thread.comm != thread.process:
        return names
    if not thread.leader:
        return f"{names} (not leading)"
    return f"{names} ({thread.title[:70].rstrip()})"
