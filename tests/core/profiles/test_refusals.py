"""What is kept and told of profiles that could not be loaded, however much is wrong with them."""

import json

import pytest
from attrs import asdict, evolve

from temper_core import DocumentError, MachineShape, Pod, parse_profile
from temper_core.profiles.catalogue import LONGEST_REASON as LONGEST_CHOICE
from temper_core.profiles.catalogue import MOST_FAILURES, ProfileCatalogue
from temper_core.profiles.completion import Completion
from temper_core.profiles.files import LARGEST_PROFILE_BYTES, MOST_FILES, ProfileFiles, read_profile
from temper_core.profiles.loading import shipped_profiles
from temper_core.profiles.reloads import reloaded
from temper_core.records.plans import ProfileCode
from temper_core.records.profiles import (
    LONGEST_ID,
    LONGEST_REASON,
    MOST_PROBLEMS,
    LoadedProfile,
    ProfileFailure,
    ShapeRange,
)
from temper_core.rehearsal.recording_format import recording_document
from temper_core.server.replies import LARGEST_CONTENT_BYTES
from temper_core.settings.models import Settings
from temper_core.testing import make_snapshot

ROOM = LARGEST_PROFILE_BYTES - 400
GROUP = '[[thread_groups]]\nname = "a"\n'
REST = '[[thread_groups]]\nname = "rest"\n'


def filled(head, item, tail="", most=ROOM):
    """Return a document with *item* at most so many times as a file has room for."""
    return head + item * min(most, ROOM // len(item.encode())) + tail + "\n"


LARGE = {
    "id": filled('id = "', "é", '"'),
    "key": filled("", "k", " = 1"),
    "keys": "".join(f"k{number} = 1\n" for number in range(20_000)),
    "trait": filled('traits."', "k", '" = 1'),
    "description": filled("description = [", "1,", "]"),
    "images": filled("fingerprint.images = [", "1,", "]"),
    "image": filled('fingerprint.images = "', "é", '"'),
    "long images": filled("fingerprint.images = [", f'"{"x" * 4_000}",', "]", 64),
    "processes": filled("fingerprint.processes = [", "[1,2],", "]"),
    "nested processes": filled("fingerprint.processes = [", f"[{'1,' * 2_000}],", "]", 64),
    "annotations": filled("fingerprint.annotations = [", "1,", "]"),
    "long annotations": filled("fingerprint.annotations = [", f'"{"é" * 2_000}",', "]", 64),
    "versions": filled("fingerprint.versions = [", '"a=b",', "]"),
    "long versions": filled("fingerprint.versions = [", f'"{"x" * 4_000}",', "]", 64),
    "cores": filled("machine_shape.cores = [", "1,", "]"),
    "groups": filled("", f'[[thread_groups]]\nname = "{"N" * 900}"\nmatch = [{{}}]\n', "", 257),
    "group keys": filled("", GROUP + "".join(f"k{n} = 1\n" for n in range(120)), "", 257),
    "matches": filled(f"{GROUP}match = [", "1,", "]", 256),
    "match keys": filled(
        f"{GROUP}match = [", f"{{ {','.join(f'k{n} = 1' for n in range(120))} }},", "]", 256
    ),
    "names": filled(f"{GROUP}match = [", f'{{ comm_prefix = "{"x" * 900}" }},', "]", 256),
    "patterns": filled(f"{GROUP}match = [", f'{{ comm_pattern = "{"(" * 900}" }},', "]", 60),
    "behaviour": filled(
        f"{GROUP}match = [", f"{{ behaviour = {{ run_us = [{'1,' * 400}] }} }},", "]", 256
    ),
    "figures": filled("evidence.figures = [", f'{{ measure = "{"m" * 7_000}" }},', "]", 32),
    "evidence": filled('evidence.date = "', "é", '"'),
    "doubled": f"{'k' * 120_000} = 1\n" * 2,
}


def sizes(failure):
    return len(failure.profile), len(failure.reason), len(failure.problems)


def is_bounded(failure):
    most = (LONGEST_ID + 1, LONGEST_REASON + 1, MOST_PROBLEMS)
    kept = sum(map(len, failure.problems))
    return all(map(int.__le__, sizes(failure), most)) and kept <= LONGEST_REASON


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_the_reason_of_any_large_file_is_bounded(tmp_path, text):
    path = tmp_path / "large.toml"
    path.write_text(text if text.startswith("id") else f'id = "large"\n{text}')

    failure = read_profile(path)

    assert isinstance(failure, ProfileFailure)
    assert failure.reason
    assert is_bounded(failure)


def test_the_last_problem_counts_those_that_are_left_out(tmp_path):
    path = tmp_path / "many.toml"
    groups = "".join(f'[[thread_groups]]\nname = "G{number}"\n' for number in range(150))
    path.write_text(f'id = "many"\n{groups}')

    failure = read_profile(path)

    assert failure.problems[-1].startswith("and ")
    assert failure.reason == "; ".join(failure.problems)


def test_a_last_good_version_is_told_of_behind_any_reason(tmp_path):
    path = tmp_path / "web.toml"
    path.write_text(f'id = "web"\n{REST}')
    files = ProfileFiles(tmp_path)
    files.look()
    path.write_text(LARGE["groups"])

    _, failure = sorted(files.look(), key=lambda entry: isinstance(entry, ProfileFailure))

    assert failure.reason.endswith("; its last good version stays in force")
    assert is_bounded(failure)


def test_a_claim_of_plugins_is_bounded_too():
    class Claim:
        plugins = ("one", "two")
        name = "é" * ROOM
        reason = "x" * ROOM

    class Host:
        def gather(self, *_):
            return ()

        def contested(self, _):
            return (Claim(),)

    (failure,) = shipped_profiles(Host())

    assert is_bounded(failure)


def test_children_keep_a_bounded_part_of_what_is_wrong_with_their_parents():
    removed = "".join(
        f'[[thread_groups]]\nname = "g{number}"\noverride = "remove"\n' for number in range(250)
    )
    texts = [f'id = "base"\n{REST}', f'id = "c0"\nextends = "base"\n{removed}']
    texts += [f'id = "c{n}"\nextends = "c{n - 1}"\n' for n in range(1, 60)]
    entries = [
        LoadedProfile(parse_profile(text, ""), f"{number:03}.toml", is_file=True)
        for number, text in enumerate(texts)
    ]

    failures = Completion().catalogue(entries).failures

    assert len(failures) == 60
    assert all(map(is_bounded, failures))


def many_failures():
    return tuple(
        ProfileFailure.of(f"/profiles/{number:04}.toml", "é" * ROOM, ["é" * ROOM] * 200)
        for number in range(MOST_FILES)
    )


def test_a_recording_and_a_reload_have_the_first_failures_and_a_count():
    catalogue = ProfileCatalogue(failures=many_failures())

    answered = reloaded(ProfileCatalogue(), catalogue).failures
    recorded = recording_document(make_snapshot(), Settings(), catalogue)["profiles"]["failures"]

    assert answered[:-1] == catalogue.failures[:MOST_FAILURES]
    assert answered[-1].reason == "900 more could not be loaded"
    assert len(recorded) == MOST_FAILURES + 1
    assert len(json.dumps(recorded)) < LARGEST_CONTENT_BYTES / 2
    assert len(json.dumps([asdict(failure) for failure in answered])) < LARGEST_CONTENT_BYTES / 2


def loaded(number, shape=None):
    profile = parse_profile(f'id = "p{"x" * 50}-{number}"\n{REST}', "")
    if shape is not None:
        profile = evolve(profile, id="web", machine_shape=shape)
    return LoadedProfile(profile, f"/profiles/{'n' * 200}{number}.toml", is_file=True)


def of_shapes(shapes):
    return [loaded(number, shape) for number, shape in enumerate(shapes)]


UNFIT = [ShapeRange(cores=number + 1_000) for number in range(MOST_FILES)]
TIED = [
    ShapeRange(cores=(1, 1_000 + number), sockets=(1, 5_000 - number))
    for number in range(MOST_FILES)
]


@pytest.mark.parametrize(
    ("profiles", "failures", "code"),
    [
        ([], [ProfileFailure("a.toml", "web", "é" * ROOM)], ProfileCode.NOT_LOADED),
        ([loaded(number) for number in range(MOST_FILES)], [], ProfileCode.UNKNOWN_ID),
        (of_shapes(UNFIT), [], ProfileCode.SHAPE),
        (of_shapes(TIED), [], ProfileCode.TIE),
    ],
    ids=["not loaded", "unknown", "other machines", "tied"],
)
def test_the_reason_of_a_pods_choice_is_bounded(profiles, failures, code):
    pod = Pod(
        uid="1",
        name="web-0",
        namespace="shop",
        annotations={"temper.codes/workload-profile": "web"},
    )

    choice = ProfileCatalogue(profiles, failures).choose(pod, MachineShape.uniform(4))

    assert choice.code is code
    assert choice.reason.startswith("annotation temper.codes/workload-profile: web")
    assert len(choice.reason) <= LONGEST_CHOICE + 1


def test_problems_of_one_value_are_not_as_long_as_the_value():
    with pytest.raises(DocumentError) as refused:
        parse_profile(LARGE["image"], "large.toml")

    assert max(map(len, refused.value.problems)) < 2_100
