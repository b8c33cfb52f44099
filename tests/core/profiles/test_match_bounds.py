"""What the matches of a profile may cost: their number, and the comparison of each with others."""

import pytest

from temper_core import DocumentError, documents
from temper_core.profiles import match_reach
from temper_core.profiles.documents import parse_profile
from temper_core.profiles.files import LARGEST_PROFILE_BYTES, read_profile
from temper_core.profiles.match_reach import hidden
from temper_core.records.thread_groups import MOST_MATCHES, ThreadGroup, ThreadMatch

HEAD = """
schema_version = 1
id = "many"
fingerprint.images = ["many:*"]
"""


def profile_with(matches):
    """Return the text of a profile whose first of two groups has so many matches."""
    listed = ", ".join(f'{{ comm_prefix = "m{number:03}" }}' for number in range(matches))
    group = f'[[thread_groups]]\nname = "many"\ntreatment = "latency"\nmatch = [{listed}]\n'
    return f'{HEAD}{group}[[thread_groups]]\nname = "rest"\ntreatment = "normal"\n'


def test_as_many_matches_as_allowed_are_read():
    profile = parse_profile(profile_with(MOST_MATCHES), "many.toml")

    assert len(profile.thread_groups[0].match) == MOST_MATCHES


def test_one_match_more_is_refused_in_one_line():
    with pytest.raises(DocumentError) as refused:
        parse_profile(profile_with(MOST_MATCHES + 1), "many.toml")

    (problem,) = refused.value.problems
    assert problem == "thread_groups: have 257 matches, and a profile may have 256"


GROUP = '[[thread_groups]]\nname = "a"\n'
ROOM = LARGEST_PROFILE_BYTES - 200
"""Bytes of a file beside its head."""


@pytest.fixture
def fitted(monkeypatch):
    """Note what is structured."""
    tables, fit = [], documents.fit

    def noting(table, model, *, source):
        tables.append(table)
        return fit(table, model, source=source)

    monkeypatch.setattr(documents, "fit", noting)
    return tables


@pytest.mark.parametrize(
    ("head", "item", "tail", "problem"),
    [
        (f"{GROUP}match = [", "{},", "]", "thread_groups: have 87314 matches, and"),
        (f"{GROUP}match = [", '{comm_pattern="a"},', "]", "thread_groups: have 13786 matches, and"),
        ("", GROUP, "", "thread_groups: has 9032 groups, and a profile may have 257"),
        ("fingerprint.images = [", '"a",', "]", "fingerprint.images: has 65486 entries, and"),
        ("fingerprint.processes = [", '"a",', "]", "fingerprint.processes: has 65486 entries, and"),
        ("fingerprint.annotations = [", '"a",', "]", "fingerprint.annotations: has 65486"),
        ("fingerprint.versions = [", '"a",', "]", "fingerprint.versions: has 65486 entries, and"),
        ("evidence.figures = [", "{},", "]", "evidence.figures: has 87314 entries, and may have"),
    ],
)
def test_a_file_with_too_many_entries_is_refused_before_anything_is_structured(
    tmp_path, fitted, head, item, tail, problem
):
    path = tmp_path / "many.toml"
    path.write_text(f'id = "many"\n{head}{item * (ROOM // len(item))}{tail}\n')

    refused = read_profile(path)

    (told,) = refused.problems
    assert told.startswith(problem)
    assert refused.profile == "many"
    assert fitted == []


def test_a_file_is_parsed_once_also_if_it_is_refused(tmp_path, monkeypatch):
    parsed, parse = [], documents.parse_toml
    monkeypatch.setattr(
        documents, "parse_toml", lambda text, **more: parsed.append(text) or parse(text, **more)
    )
    path = tmp_path / "odd.toml"
    path.write_text('id = "odd"\ncolour = 3\n')

    assert read_profile(path).profile == "odd"
    assert len(parsed) == 1


def group(name, *matches):
    return ThreadGroup(name, match=[ThreadMatch(**match) for match in matches])


def test_matches_of_other_prefixes_are_not_compared(monkeypatch):
    compared = []
    covers = match_reach.covers
    monkeypatch.setattr(match_reach, "covers", lambda *pair: compared.append(pair) or covers(*pair))
    groups = [group(f"g{n}", {"comm_prefix": f"a{n:03}"}) for n in range(100)]

    assert [*hidden(groups)] == []
    assert compared == []


def test_the_first_group_that_takes_a_match_is_named():
    groups = [
        group("shorter", {"comm_prefix": "io", "leader": True}),
        group("longer", {"comm_prefix": "io-r"}),
        group("any", {"comm_prefix": "io"}),
        group("last", {"comm_prefix": "io-read"}, {"comm_prefix": "io-write"}),
    ]

    assert [*hidden(groups)] == [(3, "longer and any")]


def test_each_match_of_a_sound_profile_is_structured_once(monkeypatch):
    built, build = [], documents._build

    def noting(kind, *more):
        built.append(kind)
        return build(kind, *more)

    monkeypatch.setattr(documents, "_build", noting)

    parse_profile(profile_with(MOST_MATCHES), "many.toml")

    assert built.count(ThreadMatch) == MOST_MATCHES
