import copy
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import DocumentError
from temper_core.node.podlist import read_pods
from tests.podlists import make_podlist

PODLIST = make_podlist(6, seed=5)
PODLIST_JSON = json.dumps(PODLIST)
PODLIST_YAML = yaml.safe_dump(make_podlist(1, seed=5))

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def is_read_or_refused(text):
    try:
        pods = read_pods(text, source="pods", node="worker-3")
    except DocumentError as error:
        return bool(error.problems) and "\n" not in error.problems[0]
    return all(pod.uid and pod.cpu_request_millis >= 0 for pod in pods)


def paths_in(value, path=()):
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in children:
        if isinstance(inner, dict | list):
            yield from paths_in(inner, (*path, key))
        else:
            yield (*path, key)


PATHS = [path for path in paths_in(PODLIST) if path and "managedFields" not in path]


@given(path=st.sampled_from(PATHS), value=values)
def test_any_value_in_any_place_is_read_or_refused(path, value):
    document = copy.deepcopy(PODLIST)
    place = document
    for key in path[:-1]:
        place = place[key]

    place[path[-1]] = value

    assert is_read_or_refused(json.dumps(document))


@given(start=st.integers(0, len(PODLIST_JSON)), length=st.integers(1, 40), junk=st.text(max_size=5))
def test_json_with_a_piece_torn_out_is_read_or_refused(start, length, junk):
    assert is_read_or_refused(PODLIST_JSON[:start] + junk + PODLIST_JSON[start + length :])


@given(start=st.integers(0, len(PODLIST_YAML)), length=st.integers(1, 40), junk=st.text(max_size=5))
def test_yaml_with_a_piece_torn_out_is_read_or_refused(start, length, junk):
    assert is_read_or_refused(PODLIST_YAML[:start] + junk + PODLIST_YAML[start + length :])


@given(st.text(max_size=60) | st.text("{}[]:,-&*!|>'\"#% \nabkind", max_size=40))
def test_any_text_is_read_or_refused(text):
    assert is_read_or_refused(text)


@pytest.mark.parametrize("cut", [1, 2, 100, len(PODLIST_JSON) // 2])
def test_a_list_that_was_cut_off_is_refused(cut):
    with pytest.raises(DocumentError, match="is not JSON"):
        read_pods(PODLIST_JSON[:-cut], source="pods")
