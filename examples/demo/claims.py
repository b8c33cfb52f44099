"""The claims of the walks, each as a sentence. ``tests/kernel`` asserts the same ones."""

ATTACH = {
    "attached": "the kernel runs the engine: enabled, its own operations, one attach more",
    "proven": "the agent says that it enforces, with the engine and the first generation",
}
STOP = {
    "stopped": "a stop ends with exit code 0 and the stock scheduler",
    "nothing_left": "no process, cgroup, socket or file of ours is left but events and history",
    "restored": "temper restore removes that as well",
}
SWAP = {
    "swapped": "a pod that outgrew its layer takes one warm swap of the engine",
}
LIFE = {
    **ATTACH,
    "cpus_as_planned": "every layer owns the whole cores that the plan gives it, none twice",
    "placed": "the pods' threads are in the layers of their tiers, counted by the engine",
    "confined": "the critical pod's threads ran on the fenced CPUs only",
    "moved": "the pod whose priority rose is in its new layer, by the engine's own record",
    "steered": "that took hints alone: no engine was started",
    **SWAP,
    "grown": "the layers then have the sizes of the new plan",
    "swap_window": "the swap left the node ten times less without an engine than a cold start",
    "safe_mode_on": "in safe mode the stock scheduler runs everything, and the agent says why",
    "safe_mode_workloads": "no workload noticed more than a pause",
    "safe_mode_off": "with the request withdrawn the agent enforces again",
    "system_not_starved": "under eight best-effort spinners the system layer is served in time",
    "fenced_not_starved": "so is the critical tier, and so is high",
    "nobody_starved": "no thread of any tier waits for long",
    "not_ejected": "the engine is attached throughout: the kernel did not have to eject it",
    "in_place": "the linter misses no thread in its layer: what the engine counts is the plan",
    "killed": "a killed agent takes its engine along: the stock scheduler is back at once",
    "survivors": "the workloads go on",
    "restarted": "the next agent finds nothing in its way",
    **STOP,
}
TRACED = {
    **ATTACH,
    "traced": "a trace of the node under the engine is captured whole, without a loss",
    **STOP,
}
SATURATION = {
    **ATTACH,
    "system_served": "with every tier saturated the system layer is served in time",
    "everybody_served": "no thread of any tier waits for long",
    "still_attached": "the engine is attached throughout: the kernel did not have to eject it",
    **STOP,
}
CLAIMS = {**LIFE, **TRACED, **SATURATION}
