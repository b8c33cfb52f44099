"""A configuration of the engine that the kernel's verifier refuses."""

# {Open, Grouped} x {preempt, not}, all four in one plan, pass the verifier's million instructions.
FOUR_KINDS: tuple[dict[str, object], ...] = (
    {"Grouped": {"preempt": True, "util_range": [0.5, 0.8]}},
    {"Grouped": {"util_range": [0.5, 0.8]}},
    {"Open": {"preempt": True}},
    {"Open": {}},
)


def refused_plan() -> list[dict[str, object]]:
    """Return a configuration of the engine that the kernel's verifier refuses as too large."""
    layers: list[dict[str, object]] = [
        {
            "name": f"kind-{number}",
            "comment": "",
            "matches": [[{"CommPrefix": f"no-{number}"}]],
            "kind": kind,
        }
        for number, kind in enumerate(FOUR_KINDS)
    ]
    layers[-1]["matches"] = [[]]
    return layers
