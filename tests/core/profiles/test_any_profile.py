"""Whatever a profile says that loads, the plan keeps to the engine's limits."""

import json

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_core.engine.capabilities import capabilities_of
from temper_core.engine.configuration_check import check
from temper_core.plan import decide, explain, render_engine
from temper_core.profiles.completion import Completion
from temper_core.records.profiles import LoadedProfile
from temper_core.records.steering import FIXED_HINTS, Steering
from tests.core.plan.nodes import nodes

HINT_MAP = "--task-hint-map=/sys/fs/bpf/temper/hints"
NAMES = st.sampled_from(["io", "io_a", "gc", "main", "w", "w1", "connection"])
keys = st.fixed_dictionaries(
    {},
    optional={
        "comm_prefix": NAMES,
        "comm_pattern": st.sampled_from(["^io_[0-9]+$", "#[0-9]", "gc|w"]),
        "process": NAMES,
        "title_pattern": st.just("serve"),
        "leader": st.booleans(),
        "behaviour": st.just({"cpu_share": [0.5, 1.0]}),
        "exe": st.sampled_from(["java", "python3"]),
        "parent": NAMES,
        "is_child": st.booleans(),
        "older_than_s": st.sampled_from([0.5, 60]),
    },
).filter(bool)
groups = st.fixed_dictionaries(
    {
        "match": st.lists(keys, min_size=1, max_size=4),
        "treatment": st.sampled_from(["exclusive", "latency", "boost", "normal", "yield"]),
    },
    optional={"cpu_fraction": st.sampled_from([0.1, 0.5, 0.85, 1.0]), "slice_us": st.just(500)},
)


def inline(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {inline(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


def text_of(name, given_groups, rest):
    lines = [f'id = "{name}"', f'fingerprint = {{ images = ["{name}:*"] }}']
    for number, group in enumerate([*given_groups, *([{"treatment": rest}] if rest else [])]):
        if group["treatment"] != "exclusive":
            group.pop("cpu_fraction", None)
        lines += ["[[thread_groups]]", f'name = "g{number}"']
        lines += [f"{key} = {inline(value)}" for key, value in group.items()]
    return "\n".join(lines)


@st.composite
def loaded_profiles(draw):
    """Profiles that loading lets through, one of them extending another."""
    entries = []
    for number in range(3):
        text = text_of(
            f"app{number}",
            draw(st.lists(groups, min_size=1, max_size=15)),
            draw(st.sampled_from([None, "normal", "yield", "latency"])),
        )
        try:
            entries.append(LoadedProfile(parse_profile(text, f"{number}.toml"), f"{number}.toml"))
        except DocumentError:
            continue  # hidden groups, most often
    heir = parse_profile('id = "app3"\nextends = "app0"\nfingerprint.images = ["app3:*"]', "3.toml")
    return Completion().catalogue([*entries, LoadedProfile(heir, "3.toml")])


@settings(max_examples=40, deadline=None)
@given(nodes(counts=(1, 5, 60)), loaded_profiles(), st.booleans())
def test_no_profile_that_loads_yields_an_invalid_or_over_limit_plan(node, catalogue, is_steered):
    pods, _, machine, given_settings = node
    steering = Steering(FIXED_HINTS) if is_steered else None

    plan = decide(pods, catalogue, machine, given_settings, steering=steering)

    arguments = [HINT_MAP] if is_steered else []
    cpus = len(machine.cpus)
    text = render_engine(plan)
    assert check(text, capabilities_of(None), arguments=arguments, cpus=cpus) == ()
    assert len(plan.layers) <= 16
    assert all(1 <= len(layer.matches) <= 32 for layer in plan.layers)
    for pod in pods[:2]:
        explained = explain(plan, given_settings, pod.key)
        assert all(account.layer for account in explained.groups)


@settings(max_examples=20, deadline=None)
@given(nodes(counts=(5, 20)), loaded_profiles())
def test_every_group_that_is_explained_as_a_layer_has_one(node, catalogue):
    pods, _, machine, given_settings = node
    images = [f"app{number % 4}:1" for number in range(len(pods))]
    dressed = [
        evolve(pod, containers=tuple(evolve(each, image=image) for each in pod.containers))
        for pod, image in zip(pods, images, strict=True)
    ]

    plan = decide(dressed, catalogue, machine, given_settings)

    names = {layer.name for layer in plan.layers}
    for pod in dressed[:5]:
        for account in explain(plan, given_settings, pod.key).groups:
            assert account.layer in names
