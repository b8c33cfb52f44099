"""What is wrong with the node in each scene, made for real, and what has to stand then."""

import time
from collections.abc import Callable, Mapping

import kernel
from linted import PERIOD_S, Node
from pods import SPINNING, Manner
from strangers import mislead

Wanted = set[tuple[str, str]]
Scene = Callable[[Node], Wanted]
RIVALS = 4


def siblings(node: Node) -> Wanted:
    """Two hot threads of a fenced tier on the two CPUs of one core."""
    one, other = node.cpus_of("critical")[:2]
    node.pods["db"].work("db-a", Manner(cpus=[one]))
    node.pods["db"].work("db-b", Manner(cpus=[other]))
    return {("smt_collision", "shop/db db-a and shop/db db-b on one core")}


def beside(node: Node) -> Wanted:
    """A stranger on the sibling of a hot thread of an exclusive group.

    Nobody but a real-time thread gets there. It has to be the sibling: who shares a CPU with a
    real-time thread stays and starves there, and the kernel ejects the engine after 30 s.
    """
    node.pods["vip"].rest()
    solo = node.pods["vip"].work("vip-solo")
    time.sleep(PERIOD_S)
    siblings = set(node.cpus_of("vip.hot.critical")) - {kernel.last_cpu(solo)}
    node.pods["web"].work("noise", Manner(0.75, cpus=siblings, fifo=True))
    return {("smt_collision", "shop/vip vip-solo")}


def outside(node: Node) -> Wanted:
    """A thread of a fenced tier that is bound to a CPU outside of the fence."""
    node.pods["db"].work("db-out", Manner(cpus=node.cpus_of("open")[:1]))
    return {("protected_fallback", "layer critical"), ("stale_affinity", "shop/db db-out")}


def inside(node: Node) -> Wanted:
    """A best-effort thread that spins on a CPU of a fenced tier."""
    node.pods["cron"].work("intruder", Manner(cpus=node.cpus_of("critical")[:1]))
    return {("open_reserve", "layer open"), ("stale_affinity", "shop/cron intruder")}


def misled(node: Node) -> Wanted:
    """A thread whose hint somebody else changes all the time."""
    pod = node.pods["db"]
    pod.workers.append(mislead(pod.work("db-astray"), "open"))
    return {("layer_mismatch", "shop/db in critical")}


def real_time(node: Node) -> Wanted:
    """A FIFO thread that uses most of a CPU."""
    node.pods["web"].work("rt", Manner(0.75, cpus=node.cpus_of("open")[:1], fifo=True))
    return {("rt_hog", "shop/web rt")}


def cpuset(node: Node) -> Wanted:
    """A pod that its cpuset confines to CPUs of a fenced tier."""
    node.pods["pinned"].work("confined", Manner(0.5))
    return {("stale_affinity", "shop/pinned cpuset")}


def quota(node: Node) -> Wanted:
    """A pod that uses more than its quota."""
    node.pods["batch"].work("greedy", SPINNING)
    return {("quota_unenforced", "shop/batch")}


def weight(node: Node) -> Wanted:
    """Two pods of one layer, one with four times the weight, that both want all they can get."""
    for name in ("batch", "cron"):
        for number in range(RIVALS):
            node.pods[name].work(f"rival-{number}")
    return {("weight_unenforced", "shop/batch")}


def unmatched(node: Node) -> Wanted:
    """A hot thread that no group of its pod's profile names."""
    node.pods["vip"].work("stranger")
    return {("unmatched_hot_thread", "shop/vip stranger")}


def antagonists(node: Node) -> Wanted:
    """Threads of two protected pods that want the same CPU."""
    [cpu] = node.cpus_of("critical")[:1]
    node.pods["db"].work("victim", Manner(cpus=[cpu]))
    node.pods["vip"].work("bully", Manner(cpus=[cpu]))
    return {("antagonist", "shop/db victim")}


def undo(node: Node) -> None:
    """Let the node be healthy again."""
    node.work_as_usual()


SCENES: Mapping[str, Scene] = {
    "siblings": siblings,
    "outside": outside,
    "inside": inside,
    "misled": misled,
    "real_time": real_time,
    "quota": quota,
    "weight": weight,
    "unmatched": unmatched,
    "antagonists": antagonists,
    "cpuset": cpuset,
    "beside": beside,
}
