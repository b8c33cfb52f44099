"""Traits have the values of the WorkloadProfile resource (joulie.io/v1alpha1), and no others."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_core.profiles.files import read_profile
from temper_core.records.profiles import ProfileFailure
from temper_core.records.traits import Traits

DEGREES = ["high", "medium", "low"]
ALLOWED = {
    "criticality": ["performance", "standard"],
    "cpu_bound": ["compute", "memory", "io", "mixed"],
    "cpu_intensity": DEGREES,
    "cap_sensitivity": DEGREES,
    "gpu_bound": ["compute", "memory", "mixed", "none"],
    "reschedulable": [True, False],
}


def text_of(key, value):
    escaped = "".join(f"\\U{ord(letter):08X}" for letter in str(value))
    written = str(value).lower() if isinstance(value, bool) else f'"{escaped}"'
    return f'id = "a"\n[traits]\n{key} = {written}\n[[thread_groups]]\nname = "rest"\n'


@pytest.mark.parametrize(("key", "values"), ALLOWED.items())
def test_every_value_of_the_resource_is_read(key, values):
    read = [getattr(parse_profile(text_of(key, value), "a.toml").traits, key) for value in values]

    assert read == values


def test_there_are_no_other_traits_and_none_is_assumed():
    assert attrs.asdict(Traits()) == dict.fromkeys(ALLOWED)


def test_an_unknown_value_is_told_in_one_line_with_file_key_value_and_what_is_allowed(write):
    failure = read_profile(write("search.toml", extra='[traits]\ncriticality = "critical"'))

    assert isinstance(failure, ProfileFailure)
    assert failure.source.endswith("search.toml")
    assert failure.reason == (
        "traits.criticality: must be one of 'performance', 'standard', not 'critical'"
    )


words = st.sampled_from(["High", "HIGH", " high", "none", "compute", "critical", "true", ""])
texts = words | st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.sampled_from(sorted(ALLOWED)), texts | st.booleans())
def test_any_other_value_is_refused_by_its_key(key, value):
    is_allowed = any(type(value) is type(known) and value == known for known in ALLOWED[key])

    try:
        traits = parse_profile(text_of(key, value), "a.toml").traits
    except DocumentError as error:
        assert not is_allowed
        [problem] = error.problems
        assert problem.startswith(f"traits.{key}: must be ")
        assert problem.partition("; did you mean ")[0].endswith(f"not {value!r}")
    else:
        assert is_allowed
        assert getattr(traits, key) == value


@pytest.mark.parametrize("key", ALLOWED)
def test_a_plugin_cannot_make_traits_of_other_values(key):
    with pytest.raises(TypeError):
        Traits(**{key: "critical"})
