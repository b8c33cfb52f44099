"""Defaults of formulas that settings may change.

They are here so that the agent, which reads the settings of all parts, imports no formula.
"""

ALIASES = ("temper.codes",)
"""Prefixes of pod annotations beside ``joulie.io``."""
MIN_CONFIDENCE = 0.5
"""Of a profile whose derived fields count."""
GPU_PROXY_WATTS = 400.0
"""The power that stands for a GPU in full use."""
SKIPPED_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease"})
"""Namespaces whose workloads have no profile."""
