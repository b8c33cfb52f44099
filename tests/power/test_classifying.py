"""Hints, overrides, the class, the reason as a whole, and the confidence."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_power.classifier.classifying import classify
from temper_plugin_power.classifier.hints import Hints, read_hints
from temper_plugin_power.classifier.signals import Signals

CLASS, MOVABLE = "joulie.io/workload-class", "joulie.io/reschedulable"
CPU, GPU = "joulie.io/cpu-sensitivity", "joulie.io/gpu-sensitivity"
NO_METRICS = "hints only (no metrics available)"


@pytest.mark.parametrize("written", ["performance", "standard"])
def test_an_annotated_class_is_a_hint(written):
    hints = read_hints({CLASS: written}, {})

    assert hints == Hints(workload_class=written)
    assert hints.paths == ("criticality.class",)


@pytest.mark.parametrize("written", ["Performance", " performance", "best-effort", "gold"])
def test_any_other_class_is_ignored_and_the_reason_says_so(written):
    profile = classify(read_hints({CLASS: written}, {}), Signals(cpu_util_pct=40))

    assert profile.workload_class == "standard"
    assert profile.hints == ()
    assert profile.reason == f'cpu-intensity=medium (util 40%); workload-class "{written}" ignored'


def test_an_empty_class_is_no_class():
    assert read_hints({CLASS: ""}, {}) == Hints()


def test_an_endless_value_is_cut_in_the_reason():
    profile = classify(read_hints({CLASS: "x" * 10_000}, {}), None)

    assert profile.reason == f'{NO_METRICS}; workload-class "{"x" * 63}" ignored'


@pytest.mark.parametrize(
    ("written", "is_movable", "paths"),
    [
        ("true", True, ("migratability.reschedulable",)),
        ("false", False, ("migratability.reschedulable",)),
        ("True", False, ()),
        ("yes", False, ()),
        ("", False, ()),
    ],
)
def test_only_the_exact_words_say_whether_a_pod_may_be_moved(written, is_movable, paths):
    profile = classify(read_hints({MOVABLE: written}, {}), None)

    assert (profile.reschedulable, profile.hints) == (is_movable, paths)


def test_a_sensitivity_that_is_not_allowed_gives_no_hint():
    assert read_hints({CPU: "none", GPU: "extreme"}, {}) == Hints()


def test_the_second_prefix_has_the_same_keys_and_the_first_wins():
    other = {"temper.codes/workload-class": "performance", "temper.codes/cpu-sensitivity": "low"}

    hints = read_hints({**other, CPU: "high"}, {})

    assert (hints.workload_class, hints.cpu_sensitivity) == ("performance", "high")


def test_a_status_by_hints_alone_is_medium_and_its_confidence_is_the_least():
    every = {CLASS: "performance", MOVABLE: "true", CPU: "high", GPU: "low"}

    profile = classify(read_hints(every, {}), None)

    assert profile.status(datetime(2026, 11, 26, 8, 15, 4, 999, tzinfo=UTC)) == {
        "criticality": {"class": "performance"},
        "migratability": {"reschedulable": True},
        "cpu": {
            "intensity": "medium",
            "bound": "mixed",
            "avgUtilizationPct": 0.0,
            "capSensitivity": "high",
        },
        "gpu": {
            "intensity": "medium",
            "bound": "none",
            "avgUtilizationPct": 0.0,
            "capSensitivity": "low",
        },
        "classificationReason": f"{NO_METRICS}; cpu-cap-sensitivity=high (annotation override); "
        "gpu-cap-sensitivity=low (annotation override)",
        "confidence": 0.3,
        "lastUpdated": "2026-11-26T08:15:04Z",
        "hints": [
            "criticality.class",
            "migratability.reschedulable",
            "cpu.capSensitivity",
            "gpu.capSensitivity",
        ],
    }


def test_the_reason_has_its_fragments_in_the_order_of_the_rules():
    signals = Signals(
        cpu_util_pct=40,
        memory_pressure_pct=68,
        gpu_util_pct=15,
        cpu_bound_ratio=0.8,
        has_kepler=True,
        total_energy_j=10,
        io_pressure=0.31,
    )

    profile = classify(read_hints({CPU: "low", GPU: "high", CLASS: "x"}, {}), signals)

    assert profile.reason.split("; ") == [
        "cpu-intensity=medium (util 40%)",
        "cpu-bound=memory (mem-pressure 68%>50%)",
        "kepler override: cpu-bound=compute (energy ratio 0.80>0.70)",
        "psi override: cpu-bound=io (io-pressure 31%≥20%)",
        "cpu-cap-sensitivity=low (annotation override)",
        "gpu-intensity=low (util 15%<25%)",
        "gpu-cap-sensitivity=high (annotation override)",
        'workload-class "x" ignored',
    ]


@pytest.mark.parametrize(
    ("util", "annotated", "intensity", "bound", "sensitivity"),
    [
        (0, "high", "medium", "none", "high"),
        (0, "none", "none", "none", "none"),
        (92, "none", "high", "compute", "none"),
        (92, "low", "high", "compute", "low"),
    ],
)
def test_an_annotated_gpu_sensitivity_tells_of_gpu_work(
    util, annotated, intensity, bound, sensitivity
):
    gpu = classify(read_hints({GPU: annotated}, {}), Signals(gpu_util_pct=util)).gpu

    assert (gpu.intensity, gpu.bound, gpu.cap_sensitivity) == (intensity, bound, sensitivity)


@pytest.mark.parametrize(
    ("signals", "derived"),
    [
        ({"cpu_util_pct": 65}, "standard"),
        ({"cpu_util_pct": 65.1}, "performance"),
        ({"cpu_util_pct": 90, "memory_pressure_pct": 49.9}, "performance"),
        ({"cpu_util_pct": 90, "memory_pressure_pct": 50}, "standard"),
        ({"cpu_util_pct": None}, "standard"),
        ({"gpu_util_pct": 50}, "standard"),
        ({"gpu_util_pct": 50.1}, "performance"),
        ({"is_gpu_dominant": True}, "performance"),
    ],
)
def test_the_class_is_derived_on_request_only(signals, derived):
    signals = Signals(**signals)

    assert classify(Hints(), signals, derives_class=True).workload_class == derived
    assert classify(Hints(), signals).workload_class == "standard"
    assert classify(Hints(), None, derives_class=True).workload_class == "standard"


@pytest.mark.parametrize(
    ("annotations", "labels"),
    [({CLASS: "standard"}, {}), ({}, {"joulie.io/power-profile": "eco"})],
)
def test_a_class_that_a_pod_names_is_never_derived(annotations, labels):
    hints = read_hints(annotations, labels)

    profile = classify(hints, Signals(cpu_util_pct=99), derives_class=True)

    assert profile.workload_class == "standard"


ENERGY = {"has_kepler": True, "total_energy_j": 1}


@pytest.mark.parametrize(
    ("annotations", "signals", "confidence"),
    [
        ({}, {}, 0.3),
        ({CLASS: "standard"}, {}, 0.3),
        ({CLASS: "gold"}, {}, 0.3),
        ({CPU: "low"}, {}, 0.4),
        ({CPU: "low", GPU: "low"}, {}, 0.4),
        ({CLASS: "performance"}, {}, 0.5),
        ({}, {"cpu_util_pct": 0.1}, 0.5),
        ({}, {"gpu_util_pct": 90}, 0.3),
        ({GPU: "none"}, {"cpu_util_pct": 5}, 0.6),
        ({CLASS: "performance"}, {"cpu_util_pct": 5}, 0.7),
        ({}, {"cpu_util_pct": 5, **ENERGY}, 0.7),
        ({}, {"cpu_util_pct": 5, **ENERGY, "is_energy_shared": True}, 0.5),
        ({}, {"cpu_util_pct": 5, "total_energy_j": 1}, 0.5),
        ({}, {"cpu_util_pct": 5, "io_pressure": 0.2}, 0.7),
        ({}, {"cpu_util_pct": 5, "io_pressure": 0.19}, 0.5),
        ({}, {"cpu_util_pct": 5, **ENERGY, "io_pressure": 0.2}, 0.7),
        ({CPU: "low"}, {"cpu_util_pct": 5, **ENERGY}, 0.8),
        ({CLASS: "performance"}, {"cpu_util_pct": 5, **ENERGY}, 0.9),
        ({CLASS: "performance", CPU: "low"}, {"cpu_util_pct": 5, **ENERGY}, 1.0),
    ],
)
def test_the_confidence_is_an_exact_sum_of_tenths(annotations, signals, confidence):
    assert classify(read_hints(annotations, {}), Signals(**signals)).confidence == confidence


@pytest.mark.parametrize(
    ("annotations", "signals", "summary"),
    [
        ({}, {"cpu_util_pct": 90}, "medium-confidence cpu=high/compute"),
        ({CLASS: "performance"}, {"cpu_util_pct": 5}, "high-confidence cpu=low/io"),
        (
            {},
            {"gpu_util_pct": 92, "is_gpu_dominant": True},
            "low-confidence (hints only) cpu=low/mixed gpu=high/compute",
        ),
    ],
)
def test_the_summary_names_confidence_and_demands(annotations, signals, summary):
    assert classify(read_hints(annotations, {}), Signals(**signals)).summary == summary


amounts = st.floats(0, 1e9) | st.sampled_from([0, 20, 30, 50, 60, 65, 70, 75, 0.4, 0.7, 100])
perhaps = st.none() | amounts
any_signals = st.none() | st.builds(
    Signals,
    cpu_util_pct=perhaps,
    **dict.fromkeys(
        (
            *("memory_pressure_pct", "gpu_util_pct", "cpu_bound_ratio", "memory_bound_ratio"),
            *("total_energy_j", "gpu_energy_j"),
        ),
        amounts,
    ),
    **dict.fromkeys(("has_kepler", "is_gpu_dominant", "is_energy_shared"), st.booleans()),
    **dict.fromkeys(("io_pressure", "memory_stall", "ipc", "llc_mpki"), perhaps),
)
words = st.sampled_from(
    ["performance", "standard", "true", "false", "high", "medium", "low", "none", "eco", ""]
)
any_annotations = st.dictionaries(
    st.sampled_from([CLASS, MOVABLE, CPU, GPU, "temper.codes/gpu-sensitivity"]),
    words | st.text(max_size=20),
)


@given(any_annotations, any_annotations, any_signals, st.booleans())
def test_no_input_crashes_and_every_status_is_within_the_schema(
    annotations, labels, signals, derives
):
    profile = classify(read_hints(annotations, labels), signals, derives_class=derives)

    assert 0.3 <= profile.confidence <= 1.0
    assert profile.confidence == round(profile.confidence, 1)
    assert profile.workload_class in ("performance", "standard")
    assert profile.cpu.intensity in ("high", "medium", "low")
    assert profile.cpu.bound in ("compute", "memory", "io", "mixed")
    assert profile.cpu.cap_sensitivity in ("high", "medium", "low")
    assert profile.gpu.intensity in ("high", "medium", "low", "none")
    assert profile.gpu.bound in ("compute", "memory", "mixed", "none")
    assert profile.gpu.cap_sensitivity in ("high", "medium", "low", "none")
    assert profile.reason


@given(
    st.sampled_from(["performance", "standard"]),
    st.booleans(),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from(["high", "medium", "low", "none"]),
    any_signals,
    st.booleans(),
)
def test_annotations_win_over_everything_that_is_measured(
    workload_class, movable, cpu, gpu, signals, derives
):
    annotations = {CLASS: workload_class, MOVABLE: str(movable).lower(), CPU: cpu, GPU: gpu}

    profile = classify(read_hints(annotations, {}), signals, derives_class=derives)

    assert profile.workload_class == workload_class
    assert profile.reschedulable is movable
    assert profile.cpu.cap_sensitivity == cpu
    assert profile.gpu.cap_sensitivity == gpu
    assert len(profile.hints) == 4
