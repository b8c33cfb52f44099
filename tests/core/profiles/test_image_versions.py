import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.profiles.image_versions import contradict, satisfies, version_of
from temper_core.records.versions import require_condition


@pytest.mark.parametrize(
    ("tag", "numbers"),
    [
        ("8.0.36", (8, 0, 36)),
        ("v1.29", (1, 29)),
        ("8", (8,)),
        ("8.0.36-debian-12", (8, 0, 36)),
        ("17-alpine", (17,)),
        ("1.2_3", (1, 2)),
    ],
)
def test_a_tag_that_begins_with_a_version_tells_it(tag, numbers):
    assert version_of(tag) == numbers


@pytest.mark.parametrize("tag", ["", "latest", "bookworm", "15rc1", "1234567abc", "sha-8", "v"])
def test_a_tag_that_is_no_version_tells_none(tag):
    assert version_of(tag) is None
    assert satisfies(tag, [">=1"]) is None


@pytest.mark.parametrize(
    ("tag", "conditions", "verdict"),
    [
        ("8.0.27", [">=8.0.27"], True),
        ("8.0.26", [">=8.0.27"], False),
        ("8.4", [">=8.0.27", "<9"], True),
        ("9.0", [">=8.0.27", "<9"], False),
        ("8", [">=8.0.27"], None),
        ("8", [">=8", "<9"], True),
        ("8.0", ["==8"], True),
        ("8", ["==8.0"], None),
        ("8.1", ["==8.0"], False),
        ("8.0", ["== 8.0"], True),
        ("8", [">=9", ">=8.0.27"], False),
        ("8.0", [], True),
    ],
)
def test_a_condition_holds_fails_or_cannot_be_known(tag, conditions, verdict):
    assert satisfies(tag, conditions) is verdict


@pytest.mark.parametrize("text", ["", "8", ">8", "<=8", ">=", ">=8.", "~=8", ">=8.0.0.0.1", "<9 "])
def test_what_is_no_condition_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match="must be >=, < or == and a version"):
        require_condition(text)


versions = st.lists(st.integers(0, 30), min_size=1, max_size=4).map(tuple)


@given(versions, versions)
def test_at_least_and_below_are_never_both_true_nor_both_false(version, bound):
    tag, limit = ".".join(map(str, version)), ".".join(map(str, bound))

    at_least, below = satisfies(tag, [f">={limit}"]), satisfies(tag, [f"<{limit}"])

    assert (at_least, below) in {(True, False), (False, True), (None, None)}


@given(versions, st.integers(0, 9), versions)
def test_a_longer_tag_never_contradicts_what_a_shorter_one_tells(version, more, bound):
    limit = ".".join(map(str, bound))
    short = version[:3]
    for sign in (">=", "<", "=="):
        told = satisfies(".".join(map(str, short)), [f"{sign}{limit}"])
        longer = satisfies(".".join(map(str, (*short, more))), [f"{sign}{limit}"])
        assert told is None or longer is told


@pytest.mark.parametrize(
    ("conditions", "verdict"),
    [
        ([], False),
        ([">=8", "<9"], False),
        ([">=9", "<9.0.0"], True),
        (["==8", ">=8.4"], False),
        (["==8", ">=9"], True),
        (["==8", "==9"], True),
        (["==8.0", "==8"], False),
        (["<0"], True),
    ],
)
def test_conditions_contradict_each_other_where_no_version_keeps_all(conditions, verdict):
    assert contradict(conditions) is verdict
