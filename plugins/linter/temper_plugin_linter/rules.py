"""Every invariant with its texts: its meaning, the condition of a violation, and the remedy."""

from collections.abc import Callable, Iterable

from attrs import asdict, frozen

from temper_core import Finding, Invariant, Severity, Snapshot
from temper_plugin_linter.affinity import stale_affinity
from temper_plugin_linter.antagonist import antagonist
from temper_plugin_linter.fences import open_reserve, protected_fallback
from temper_plugin_linter.layer_mismatch import layer_mismatch
from temper_plugin_linter.limits import Limits
from temper_plugin_linter.placement import Placement
from temper_plugin_linter.placement_tracker import PlacementTracker
from temper_plugin_linter.real_time import rt_hog
from temper_plugin_linter.sharing import quota_unenforced, weight_unenforced
from temper_plugin_linter.smt_collision import smt_collision
from temper_plugin_linter.starvation import starvation
from temper_plugin_linter.unmatched import profile_not_applied, unmatched_hot_thread

ENFORCING = "while the node enforces"
EVERY_MODE = "in every mode, without the engine too"

Check = Callable[[Placement], Iterable[Finding]]


@frozen
class Rule:
    """One invariant. ``when`` has the names of its ``thresholds`` in braces."""

    name: str
    severity: Severity
    judged: str
    what: str
    when: str
    why: str
    todo: str
    thresholds: tuple[str, ...] = ()
    check: Check | None = None

    def when_under(self, limits: Limits) -> str:
        """Return the condition of a violation, with the numbers of *limits*."""
        return self.when.format_map(asdict(limits))

    def invariant(self, tracker: PlacementTracker) -> Invariant | None:
        """Return the check that the agent applies to every snapshot. None for the core's own."""
        check = self.check
        if check is None:
            return None

        def judge(snapshot: Snapshot) -> Iterable[Finding]:
            return check(tracker.look(snapshot))

        return Invariant(self.name, judge, self.why, self.severity)


RULES = (
    Rule(
        "smt_collision",
        Severity.WARNING,
        ENFORCING,
        "A hot thread of a pinned layer has its physical core to itself. Confined tiers and "
        "exclusive thread groups of profiles are pinned.",
        "a thread of a pinned layer uses {hot_cpu} CPUs or more, and on its CPU's SMT sibling "
        "other layers use {noisy_cpu} CPUs or more, or another thread of its own layer is as hot "
        "(sibling stacking)",
        "A busy sibling takes up to half of the fenced core.",
        "Other layers: see in `temper explain` why the layer owns half a core. Stacking: give the "
        "hot threads an exclusive thread group, or raise the pod's CPU request.",
        ("hot_cpu", "noisy_cpu"),
        smt_collision,
    ),
    Rule(
        "protected_fallback",
        Severity.ERROR,
        ENFORCING,
        "The work of a Confined layer stays on the CPUs that the layer owns.",
        "a share of {stray_ratio} or more of a Confined layer's CPU use (of at least {idle_cpu} "
        "CPUs) is outside its CPUs by the engine's count, or that share of its scheduling events "
        "breaks its fence. With an engine that does not count the first (before 1.0.7), threads "
        "count by the CPU on which they were last seen, unless the layer owned it at the window's "
        "end or begin",
        "Protected work outside its fence waits behind the work that the fence excludes.",
        "Look for affinities of the named threads that contradict the fence: `taskset -p TID`, "
        "cpusets, numactl. `stale_affinity` reports them. If all CPUs of the layer are busy, it "
        "has outgrown them, and a preempting tier uses CPUs of others: raise the requests.",
        ("stray_ratio", "idle_cpu"),
        protected_fallback,
    ),
    Rule(
        "open_reserve",
        Severity.ERROR,
        ENFORCING,
        "Best-effort work stays off protected CPUs, and has a reserve of cores that no layer owns.",
        "a share of {stray_ratio} or more of the Open layer's CPU use (of at least {idle_cpu} "
        "CPUs) is on CPUs that protected layers own, or fewer cores than `[plan] reserve_cores` "
        "are left to Open and system layers",
        "Best-effort work on fenced CPUs disturbs them. Without a reserve all other work starves.",
        "Look for best-effort threads bound to those CPUs. Too few cores left: raise "
        "`reserve_cores`, or lower requests and limits of critical and high pods.",
        ("stray_ratio", "idle_cpu"),
        open_reserve,
    ),
    Rule(
        "layer_mismatch",
        Severity.WARNING,
        ENFORCING,
        "Every thread is in the layer of its plan.",
        "a thread older than {settle_windows} windows is in another layer than the plan's by the "
        "engine's own record; if there is no record of single threads, the engine counts fewer "
        "threads in a layer than belong there and ran, by more than a share of {missing_ratio} "
        "and more than one. Kernel threads and real-time threads are not judged",
        "A thread in another layer gets neither the CPUs nor the slice of its tier.",
        "Renice a thread that never sleeps by +1 and back: the engine reads it again at its next "
        "wake-up. Otherwise compare `temper explain` with the thread's cgroup, and see 'steering' "
        "in `temper observe`.",
        ("settle_windows", "missing_ratio"),
        layer_mismatch,
    ),
    Rule(
        "quota_unenforced",
        Severity.WARNING,
        ENFORCING,
        "No pod exceeds its CPU quota (`cpu.max`), which is not enforced under the engine.",
        "a pod uses {quota_ratio} times its quota or more, and at least {idle_cpu} CPUs beyond it",
        "The kernel enforces no CFS quota while a sched_ext scheduler is attached. That avoids "
        "throttling, but a limit does not limit.",
        "Lower the pod's priority so that its tier yields, set the limit to what the pod uses, or "
        "keep it on nodes that only observe.",
        ("quota_ratio", "idle_cpu"),
        quota_unenforced,
    ),
    Rule(
        "weight_unenforced",
        Severity.WARNING,
        ENFORCING,
        "Pods of one layer share it in proportion to their requests (`cpu.weight`).",
        "at least two pods of a layer wait ({contended_cpu} threads or more on average), and one "
        "with a weight of its own lacks a share of {weight_shortfall} or more of what that "
        "entitles it to among them, and at least {idle_cpu} CPUs",
        "The kernel enforces no cgroup weights while a sched_ext scheduler is attached. The "
        "engine divides CPUs between layers, and all threads inside a layer are equal.",
        "Give a pod that needs more a higher priority, or raise its request.",
        ("contended_cpu", "weight_shortfall", "idle_cpu"),
        weight_unenforced,
    ),
    Rule(
        "rt_hog",
        Severity.ERROR,
        EVERY_MODE,
        "No real-time thread monopolises a CPU.",
        "a thread of policy FIFO or RR uses {rt_cpu} CPUs or more",
        "Real-time threads run before those of every other scheduling class, sched_ext included: "
        "threads bound to that CPU starve, and after 30 s the kernel ejects the engine.",
        "Make it an ordinary thread of a critical pod (`chrt -o -p 0 TID`), or let it sleep "
        "between its deadlines. A busy interrupt thread: spread the interrupts.",
        ("rt_cpu",),
        rt_hog,
    ),
    Rule(
        "stale_affinity",
        Severity.WARNING,
        ENFORCING,
        "No thread is bound (`sched_setaffinity`), or confined by a cpuset, to CPUs that "
        "contradict the plan.",
        "a thread or pod that uses {idle_cpu} CPUs or more may run on none of the CPUs of its "
        "own protected layer, or only on CPUs of other protected layers",
        "The engine obeys affinities: the thread either breaks a fence or waits for its CPUs.",
        "Remove the binding: taskset, numactl, the program's own setting, or for a cpuset the "
        "kubelet's static CPU manager or `--cpuset-cpus`.",
        ("idle_cpu",),
        stale_affinity,
    ),
    Rule(
        "unmatched_hot_thread",
        Severity.WARNING,
        EVERY_MODE,
        "A pod's profile names every hot thread of it.",
        "a thread that uses {hot_cpu} CPUs or more matches no thread group of its pod's profile, "
        "or only a last group that takes all others and yields. Groups matched by more "
        "than names are not judged",
        "Programs rename their threads between versions, and a hot thread that the profile does "
        "not name is treated as unimportant.",
        "Add a thread group for the name, or choose another profile.",
        ("hot_cpu",),
        unmatched_hot_thread,
    ),
    Rule(
        "profile_not_applied",
        Severity.WARNING,
        EVERY_MODE,
        "A pod runs under the profile that its annotation, a detector or its image selects.",
        "such a profile does not exist (`unknown_id`), could not be loaded (`not_loaded`), was "
        "tuned for other machines (`shape`) or is for other versions of the program (`version`)",
        "Without its profile all threads of the pod are treated alike.",
        "See `temper profiles explain`. The finding names the remedy for its reason.",
        check=profile_not_applied,
    ),
    Rule(
        "antagonist",
        Severity.WARNING,
        ENFORCING,
        "Threads of protected layers do not wait behind work of other pods.",
        "a thread of a protected layer waits a share of {antagonist_ratio} or more of the time "
        "for CPUs that threads of other pods use: in the last two watched windows "
        "(`temper wakes`), or without those estimated from the CPU use of the threads on "
        "its CPU (`inferred`)",
        "The named threads cause the protected thread's latency.",
        "Move the named pod to a lower tier, or give the waiting pod whole cores.",
        ("antagonist_ratio",),
        antagonist,
    ),
    Rule(
        "starvation",
        Severity.ERROR,
        EVERY_MODE,
        "No runnable thread waits for a CPU for long.",
        "a thread waits {starved_s} s or more at a time: its current wait is that long, or its "
        "waits in the window were that long on average; if runs are not counted, it waited nearly "
        "all of the window and hardly ran. SCHED_IDLE threads and those of pods that the kernel "
        "throttled are not judged",
        "A starved thread holds locks and misses deadlines. After 30 s the kernel ejects the "
        "engine.",
        "Look for `rt_hog` and `antagonist` on its CPU. Remove its CPU binding, if it has one.",
        ("starved_s",),
        starvation,
    ),
)
PLUGIN_HEALTH = Rule(
    "plugin_health",
    Severity.WARNING,
    "always; by the agent itself, without windows",
    "Every plugin works.",
    "a plugin or a part of it was set aside, or an invariant of it failed in the last window",
    "The invariants of a broken plugin are not checked.",
    "Repair or remove the plugin and restart the agent. "
    "`temper plugins --agent` shows the state in the agent, `temper plugins` whether it loads "
    "anew.",
)


def rule_named(name: str) -> Rule | None:
    """Return the rule of that name. None for another plugin's invariant."""
    return next((rule for rule in (*RULES, PLUGIN_HEALTH) if rule.name == name), None)
