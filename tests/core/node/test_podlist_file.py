"""PodLists in files, of which the agent holds one pod at a time."""

import json
import os
import tracemalloc

import pytest
import yaml

from temper_core.errors import DocumentError
from temper_core.node.podlist import read_pods
from temper_core.node.podlist_file import read_pod_file
from tests.podlists import NODE, make_podlist


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pods.json"

    def write(document):
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return path

    return write


def both(path):
    """Return what is read pod by pod, and what is read whole."""
    return read_pod_file(path, node=NODE), read_pods(path.read_text(), source="pods", node=NODE)


def reversed_keys(document):
    return dict(reversed(document.items()))


@pytest.mark.parametrize("kind", ["List", "PodList"])
@pytest.mark.parametrize("order", [dict, reversed_keys])
def test_a_list_read_pod_by_pod_is_the_list_read_whole(file, kind, order):
    by_pod, whole = both(file(order(make_podlist(60, seed=3) | {"kind": kind})))

    assert by_pod == whole
    assert len(whole) > 40


def test_doubled_pods_items_without_a_kind_and_others_are_as_in_the_list_read_whole(file):
    document = make_podlist(6, seed=4)
    del document["items"][0]["kind"]
    document["items"] += [document["items"][1], {"kind": "Service", "spec": 5}]

    by_pod, whole = both(file(document))

    assert by_pod == whole


@pytest.mark.parametrize(
    "write", [yaml.safe_dump, lambda document: "\ufeff" + json.dumps(document)]
)
def test_what_is_no_plain_json_is_read_whole(file, write):
    by_pod, whole = both(file(write(make_podlist(4))))

    assert by_pod
    assert by_pod == whole


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"kind": "List"}', "items: must be a list"),
        ('{"kind": "ConfigMapList", "items": []}', "kind: must be one of Pod, PodList, List"),
        ('{"kind": "List", "items": [', "is not JSON: Expecting value: line 1 column 28"),
        ('{"kind": "List", "items": [3]}', r"items\[0\]: must be an object"),
        ('{"kind": "List", "items": [{"metadata": 3}]}', r"items\[0\].metadata: must be an object"),
        ('{"kind": "List", "items": ' + "[" * 200_000, "is nested too deeply|nested"),
    ],
)
def test_every_misfit_is_told_with_its_place(file, text, problem):
    with pytest.raises(DocumentError, match=problem):
        read_pod_file(file(text))


def test_a_pipe_and_a_missing_file_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for name, problem in (("pipe", "is not a regular file"), ("none", "No such file")):
        with pytest.raises(DocumentError, match=problem):
            read_pod_file(tmp_path / name)


def test_a_list_of_500_pods_takes_no_more_memory_than_its_pods_and_some(file):
    path = file(make_podlist(500))
    read_pod_file(path)  # imports

    tracemalloc.start()
    try:
        pods = read_pod_file(path)
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(pods) > 400
    assert peak - kept < path.stat().st_size / 4
