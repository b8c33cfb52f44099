"""What the recognition of pods may cost: globs of profiles, and images of pods."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import Container, DocumentError, Pod, parse_profile
from temper_core.profiles import image_globs, recognition
from temper_core.profiles.completion import Completion
from temper_core.profiles.fingerprints import MOST_IMAGES, containers_of
from temper_core.profiles.image_globs import MOST_EXPRESSIONS, MOST_GLOBS
from temper_core.profiles.recognition import Recognition
from temper_core.records.profiles import LONGEST_SIGN, MOST_SIGNS, LoadedProfile

REST = '[[thread_groups]]\nname = "rest"\n'
LISTS = {"images": "i{}:*", "processes": "p{}", "annotations": "a{}", "versions": ">={}"}


def listed(key, count):
    entries = ", ".join(f'"{LISTS[key].format(number)}"' for number in range(count))
    return f'id = "db"\nfingerprint.{key} = [{entries}]\n{REST}'


def loaded(name, *globs, processes=()):
    images = ", ".join(f'"{glob}"' for glob in globs)
    names = ", ".join(f'"{process}"' for process in processes)
    text = f'id = "{name}"\nfingerprint = {{ images = [{images}], processes = [{names}] }}\n{REST}'
    return LoadedProfile(parse_profile(text, name), f"{name}.toml", is_file=True)


def a_pod(*images, processes=()):
    containers = tuple(
        Container(f"c{at}", image=image, processes=tuple(processes))
        for at, image in enumerate(images)
    )
    return Pod(uid="1", name="db-0", namespace="shop", containers=containers)


def by_id(*profiles):
    return Recognition({each.profile.id: (each,) for each in profiles})


@pytest.mark.parametrize("key", LISTS)
def test_a_list_of_a_fingerprint_has_a_bound(key):
    parse_profile(listed(key, MOST_SIGNS), "a.toml")

    with pytest.raises(DocumentError) as refused:
        parse_profile(listed(key, MOST_SIGNS + 1), "a.toml")

    assert refused.value.problems == (f"fingerprint.{key}: has 65 entries, and may have 64",)


@pytest.mark.parametrize("key", ["images", "processes"])
def test_an_entry_has_one_too(key):
    text = f'id = "db"\nfingerprint.{key} = ["{"x" * (LONGEST_SIGN + 1)}"]\n{REST}'

    with pytest.raises(DocumentError) as refused:
        parse_profile(text, "a.toml")

    assert refused.value.problems == (
        f"fingerprint.{key}: an entry has 513 characters, and may have 512",
    )


def test_the_profiles_that_have_too_many_globs_together_are_left_out():
    each = 32
    entries = [
        loaded(f"p{at:02}", *(f"{at}-{glob}:*" for glob in range(each)))
        for at in range(MOST_GLOBS // each + 1)
    ]

    catalogue = Completion().catalogue([*entries, loaded("z", "0-0:*")])

    assert [profile.profile.id for profile in catalogue.profiles] == [
        *(entry.profile.id for entry in entries[:-1]),
        "z",
    ]
    (failure,) = catalogue.failures
    assert failure.profile == "p32"
    assert failure.reason == "all profiles together may have 1024 globs in fingerprint.images"


def test_globs_that_need_an_expression_have_a_bound_of_their_own():
    entries = [loaded(f"p{at:02}", f"{at}?:*") for at in range(MOST_EXPRESSIONS + 1)]

    catalogue = Completion().catalogue([*entries, loaded("z", "plain:*")])

    (failure,) = catalogue.failures
    assert failure.profile == "p32"
    assert failure.reason.startswith("all profiles together may have 32 globs with ? or [")
    assert catalogue.profiles[-1].profile.id == "z"


@pytest.mark.parametrize(
    ("glob", "problem"),
    [
        ("*a" * 9, "a glob has 9 wildcards, and may have 8"),
        ("a?" + "b" * 127, "a glob with ? or [ has 129 characters, and may have 128"),
    ],
)
def test_a_glob_that_takes_long_is_refused(glob, problem):
    with pytest.raises(DocumentError) as refused:
        loaded("db", glob)

    assert refused.value.problems == (f"fingerprint.images: {problem}",)


PARTS = st.lists(
    st.sampled_from(["a", "b", "ab", "/", ":", "1", "*", "**", "?", "[a]"]), max_size=8
)


@given(PARTS, st.text(alphabet="ab/:1", min_size=1, max_size=12))
def test_a_glob_matches_what_fnmatch_says(parts, image):
    glob = "".join(parts)

    assert image_globs._fits(glob, image) == fnmatchcase(image, glob)


def test_an_image_is_compared_once(monkeypatch):
    compared = []
    takes = image_globs.takes_image
    monkeypatch.setattr(
        recognition, "takes_image", lambda *pair: compared.append(pair) or takes(*pair)
    )
    recognised = by_id(loaded("one", "*/a:*"), loaded("two", "b:*"))
    pod = a_pod("x/a:1", "x/a:1", "other:1")

    assert [recognised.image_signs(pod) for _ in range(3)] == [[("one", "image x/a:1")]] * 3
    assert len(compared) == 2 * 2


def test_images_that_are_no_longer_seen_are_forgotten(monkeypatch):
    monkeypatch.setattr(recognition, "MOST_REMEMBERED", 2)
    recognised = by_id(loaded("one", "a*:*"))

    for image in ("a1:1", "a2:1", "a3:1", "a1:1"):
        assert recognised.image_signs(a_pod(image)) == [("one", f"image {image}")]

    assert len(recognised._ids_by_image) == 2


def test_a_process_is_known_by_its_full_and_its_truncated_name():
    recognised = by_id(loaded("one", processes=["a-very-long-program-name"]), loaded("two"))

    assert recognised.process_signs(a_pod("x:1", processes=["a-very-long-pro"])) == [
        ("one", "process a-very-long-pro")
    ]
    assert recognised.process_signs(a_pod("x:1", processes=["a-very-long"])) == []


def test_images_after_the_first_sixteen_containers_are_not_compared():
    profile = loaded("one", "a:*").profile
    pod = a_pod("a:1", *["x:1"] * (MOST_IMAGES - 1), "a:1")

    assert [each.name for each in containers_of(pod, profile.fingerprint)] == ["c0"]
