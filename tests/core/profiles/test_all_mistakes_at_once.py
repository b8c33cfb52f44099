"""Whatever is wrong with a profile is told at once, by its path, and never as a traceback."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import DocumentError, parse_profile
from temper_core.records.profiles import DerivedProfile

LINES = {
    "top": ["schema_version = 1", 'id = "search"', 'description = "x"', "enabled = true"],
    "fingerprint": ['images = ["search:*"]', 'versions = [">=1"]', 'annotations = ["find"]'],
    "machine_shape": ["cores = [4, 16]", "llcs = 1"],
    "traits": ['cpu_bound = "io"', "reschedulable = true"],
    "first": [
        'name = "queries"',
        'match = [{ comm_prefix = "query-" }, { comm_pattern = "^rank" }]',
        'treatment = "exclusive"',
        "cpu_fraction = 0.85",
    ],
    "second": [
        'name = "merges"',
        (
            'match = [{ title_pattern = "merge", behaviour = { run_us = [1, 9] } }, '
            '{ exe = "java", parent = "tini", is_child = false, older_than_s = 60 }]'
        ),
        'treatment = "yield"',
    ],
    "rest": ['name = "rest"'],
    "evidence": ['date = "2026-01-01"', 'effect = "not measured"'],
}
HEADS = {
    "top": "",
    "first": "[[thread_groups]]",
    "second": "[[thread_groups]]",
    "rest": "[[thread_groups]]",
}
MISTAKES = [
    ("top", "schema_version = 1", "schema_version = 2", "schema_version: "),
    ("top", 'id = "search"', "id = 3", "id: must be a string"),
    ("top", 'description = "x"', "colour = 3", "document: unknown key 'colour'"),
    ("top", "enabled = true", 'enabled = "no"', "enabled: must be true or false"),
    ("fingerprint", 'images = ["search:*"]', 'images = "search"', "fingerprint.images: must be a"),
    ("fingerprint", 'versions = [">=1"]', 'versions = ["~1"]', "fingerprint.versions[0]: must be"),
    ("fingerprint", '"find"]', '"find", "F"]', "fingerprint.annotations[1]: must match regex"),
    ("machine_shape", "cores = [4, 16]", "cores = [16, 4]", "machine_shape.cores: must be [min"),
    ("machine_shape", "llcs = 1", 'llcs = "two"', "machine_shape.llcs: must be a whole number"),
    ("traits", 'cpu_bound = "io"', "cpu_bound = true", "traits.cpu_bound: must be one of"),
    ("traits", "reschedulable = true", "reschedulable = 1", "traits.reschedulable: must be true"),
    ("first", '"^rank"', '"("', "thread_groups[0].match[1].comm_pattern: must be a regular"),
    ("first", '"query-"', '"query-queryquery"', "thread_groups[0].match[0].comm_prefix: must be"),
    ("first", '"exclusive"', '"turbo"', "thread_groups[0].treatment: must be one of"),
    ("first", "0.85", "1.5", "thread_groups[0].cpu_fraction: "),
    ("second", '"merge"', '"$merge"', "thread_groups[1].match[0].title_pattern: can never match"),
    ("second", "[1, 9]", "[9, 1]", "thread_groups[1].match[0].behaviour.run_us: must be [min"),
    (
        "second",
        '"java"',
        '"/bin/java"',
        "thread_groups[1].match[1].exe: must be the name",
    ),
    (
        "second",
        '"tini"',
        '"mysqld_safe_start"',
        "thread_groups[1].match[1].parent: must be at",
    ),
    ("second", "= false", '= "no"', "thread_groups[1].match[1].is_child: must be true or false"),
    ("second", "= 60", "= -60", "thread_groups[1].match[1].older_than_s: must be > 0: -60"),
    ("second", '"yield"', "1", "thread_groups[1].treatment: must be one of"),
    ("rest", 'name = "rest"', 'name = "Rest"', "thread_groups[2].name: must match regex"),
    (
        "evidence",
        '"2026-01-01"',
        "2026-01-01",
        "evidence.date: must be a string, not 2026-01-01 without",
    ),
    ("evidence", '"not measured"', '"faster"', "evidence.effect: must be one of 'better'"),
]


def document(mistakes=()):
    said = {table: "\n".join(lines) for table, lines in LINES.items()}
    for table, good, bad, _ in mistakes:
        assert good in said[table]
        said[table] = said[table].replace(good, bad)
    return "\n".join(f"{HEADS.get(table, f'[{table}]')}\n{text}" for table, text in said.items())


def problems_of(text):
    try:
        parse_profile(text, "x.toml")
    except DocumentError as error:
        return error.problems
    return ()


def test_the_document_without_a_mistake_is_sound():
    assert problems_of(document()) == ()


@given(st.lists(st.sampled_from(MISTAKES), min_size=1, unique=True))
def test_each_of_any_number_of_mistakes_is_told_by_its_path(mistakes):
    problems = problems_of(document(mistakes))

    for *_, told in mistakes:
        assert any(problem.startswith(told) for problem in problems), (told, problems)
    assert len(problems) == len(mistakes)


def test_mistakes_between_groups_are_told_beside_those_within():
    two = [each for each in MISTAKES if each[3].endswith(("comm_prefix: must be", "without"))]
    text = document(two).replace('name = "merges"', 'name = "queries"')
    text += (
        '\n[[thread_groups]]\nname = "late"\nmatch = [{ comm_pattern = "^rank", leader = true }]'
    )

    problems = problems_of(text)

    assert any("two thread groups are named 'queries'" in each for each in problems)
    assert any(each.startswith("thread_groups[0].match[0].comm_prefix") for each in problems)
    assert any(each.startswith("evidence.date") for each in problems)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["exclusive", "yield", "^a", "remove", ">=8", "a^b", "(", "search",
                       "compute", "standard", "better", "not measured"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["name", "match", "treatment", "comm_prefix", "comm_pattern", "leader",
                         "exe", "parent", "is_child", "older_than_s",
                         "cores", "images", "versions", "behaviour", "run_us", "override", "x",
                         "criticality", "cpu_bound", "reschedulable", "effect", "figures",
                         "measure", "tiers_only", "profile", "spread"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
tables = st.dictionaries(
    st.sampled_from([
        "id", "extends", "schema_version", "description", "fingerprint", "machine_shape", "traits",
        "thread_groups", "evidence", "enabled", "other",
    ]),
    values | st.just("search"),
    max_size=8,
)  # fmt: skip


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(letter):08X}" for letter in value) + '"'
    return "0" if value is None else repr(value)


@settings(max_examples=150)
@given(tables)
def test_any_table_is_a_profile_or_a_document_error(table):
    text = "\n".join(f"{key} = {toml(value)}" for key, value in table.items())

    problems = problems_of(text)

    assert problems or "id" in table
    assert all(isinstance(problem, str) and ": " in problem for problem in problems)


def test_what_extends_another_is_no_complete_profile():
    profile = parse_profile('id = "a"\nextends = "b"', "a.toml")

    assert isinstance(profile, DerivedProfile)
    assert profile.thread_groups == ()


def test_every_wrong_item_of_a_list_is_told():
    text = document().replace('[">=1"]', '["~1", ">=1", 2, "new"]')

    with pytest.raises(DocumentError) as refused:
        parse_profile(text, "search.toml")

    told = [problem.partition(":")[0] for problem in refused.value.problems]
    assert told == [f"fingerprint.versions[{number}]" for number in (0, 2, 3)]


def test_what_is_wrong_between_groups_is_told_by_the_path_of_the_later_or_the_early_one():
    rest = '[[thread_groups]]\nname = "rest"\n'
    broken = "[[thread_groups]]\nname = 3\n"

    with pytest.raises(DocumentError) as refused:
        parse_profile(f'id = "search"\n{rest}{broken}{rest}', "search.toml")

    assert [problem.partition(": ")[0] for problem in refused.value.problems] == [
        "thread_groups[0]",
        "thread_groups[1].name",
        "thread_groups[2].name",
    ]
