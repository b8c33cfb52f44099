import json

import pytest
from click.testing import CliRunner

from temper_core.cli.profiles import command

CLEAN = """
id = "search"
[fingerprint]
images = ["search:*"]
[machine_shape]
cores = [4, 16]
[[thread_groups]]
name = "queries"
match = [{ comm_prefix = "query-", process = "searchd" }]
treatment = "exclusive"
cpu_fraction = 0.85
[[thread_groups]]
name = "rest"
treatment = "yield"
[evidence]
before = "p99 9 ms"
after = "p99 3 ms"
date = "2026-01-01"
"""


@pytest.fixture
def lint(write):
    def run(text, *arguments, name="search.toml"):
        path = write(name, text)
        given = ["lint", str(path), "--profiles", str(write.directory), *arguments]
        return CliRunner().invoke(command, given)

    return run


def codes(result):
    return [
        (remark["code"], remark["path"])
        for document in json.loads(result.stdout)
        for remark in document["remarks"]
    ]


def test_a_profile_without_anything_to_remark_is_clean(lint):
    result = lint(CLEAN)

    assert (result.exit_code, result.stderr) == (0, "")
    assert "profile 'search': no remarks" in result.stdout


@pytest.mark.parametrize(
    ("written", "instead", "code", "path"),
    [
        ('images = ["search:*"]', "", "annotation_only", "fingerprint"),
        ('"search:*"', '"*:*"', "broad_fingerprint", "fingerprint.images[0]"),
        ('"search:*"', '"host:5000/search"', "never_recognised", "fingerprint.images[0]"),
        ('"search:*"', '"x:*", ""', "never_recognised", "fingerprint.images[1]"),
        (
            'images = ["search:*"]',
            'processes = ["searchd", "search*"]',
            "never_recognised",
            "fingerprint.processes[1]",
        ),
        (
            'images = ["search:*"]',
            'images = ["search:*"]\nversions = [">=4", "<4"]',
            "never_recognised",
            "fingerprint.versions",
        ),
        (
            'images = ["search:*"]',
            'processes = ["java"]',
            "broad_fingerprint",
            "fingerprint.processes[0]",
        ),
        ('"query-"', '"worker-1"', "prefix_of_index", "thread_groups[0].match[0].comm_prefix"),
        (
            'comm_prefix = "query-", process = "searchd"',
            'comm_prefix = "worker"',
            "generic_name",
            "thread_groups[0].match[0].comm_prefix",
        ),
        *(
            (
                'comm_prefix = "query-", process = "searchd"',
                f'comm_prefix = "{name}"',
                "generic_name",
                "thread_groups[0].match[0].comm_prefix",
            )
            for name in ("MainThread", "sh", "timer_thread", "signal_handler")
        ),
        (
            'comm_prefix = "query-", process = "searchd"',
            'process = "MainThread"',
            "generic_name",
            "thread_groups[0].match[0].process",
        ),
        ("comm_prefix", "comm_pattern", "needs_steering", "thread_groups[0]"),
        ("comm_prefix", 'exe = "searchd", comm_prefix', "needs_steering", "thread_groups[0]"),
        ("comm_prefix", "older_than_s = 60, comm_prefix", "needs_steering", "thread_groups[0]"),
        (
            'comm_prefix = "query-"',
            'comm_pattern = "q*"',
            "matches_all",
            "thread_groups[0].match[0].comm_pattern",
        ),
        ("cores = [4, 16]", "", "any_machine", "machine_shape"),
        ("cpu_fraction = 0.85", "", "whole_request", "thread_groups[0]"),
        ('treatment = "yield"', 'treatment = "latency"', "latency_for_all", "thread_groups[1]"),
        (
            'name = "rest"',
            'name = "b"\nmatch = [{ comm_prefix = "b", process = "c" }]',
            "no_rest",
            "thread_groups",
        ),
        (
            '"searchd" }]',
            (
                '"searchd" }, { comm_prefix = "query-x", process = "searchd" }]\n'
                'treatment = "latency"\n[[thread_groups]]\nname = "again"\n'
                'match = [{ comm_prefix = "q", process = "s" }, '
                '{ comm_prefix = "query-y", process = "searchd" }]'
            ),
            "hidden_match",
            "thread_groups[1].match[1]",
        ),
        ('before = "p99 9 ms"', "", "no_evidence", "evidence"),
        ('"2026-01-01"', '"last winter"', "no_date", "evidence.date"),
        (
            'date = "2026-01-01"',
            'expires = "2020-01-01"',
            "expired",
            "evidence.expires",
        ),
    ],
)
def test_what_may_be_wrong_is_a_warning_with_its_path(lint, written, instead, code, path):
    assert written in CLEAN

    result = lint(CLEAN.replace(written, instead), "--output", "json")

    assert result.exit_code == 1
    assert (code, path) in codes(result)


def test_exclusive_groups_that_take_more_than_all_are_told(lint):
    more = CLEAN.replace(
        '[[thread_groups]]\nname = "rest"',
        '[[thread_groups]]\nname = "b"\nmatch = [{ comm_prefix = "b", process = "c" }]\n'
        'treatment = "exclusive"\ncpu_fraction = 0.5\n[[thread_groups]]\nname = "rest"',
    )

    result = lint(more)

    assert "exclusive groups take 1.35 of the request, which is more than all" in result.stdout


def test_every_error_is_told_and_the_exit_code_is_2(lint):
    bad = CLEAN.replace('"query-"', '"a-name-that-is-too-long"').replace("0.85", "2")

    result = lint(bad + 'expires = "2020-01-01"\n')

    assert result.exit_code == 2
    assert result.stderr.count("search.toml: error: thread_groups[0].") == 2


def test_a_hidden_group_is_an_error(lint):
    hidden = CLEAN.replace('process = "searchd" }', '}, { process = "searchd" }').replace(
        'name = "rest"', 'name = "b"\nmatch = [{ comm_prefix = "query-9" }]'
    )

    result = lint(hidden)

    assert result.exit_code == 2
    assert "thread_groups[1]: is hidden: every thread that it matches is taken by queries" in (
        result.stderr
    )


def test_a_profile_that_extends_another_is_judged_with_what_it_takes(lint, write):
    write("search.toml", CLEAN)

    result = lint('id = "mine"\nextends = "search"', "--output", "json", name="mine.toml")

    assert codes(result) == [("annotation_only", "fingerprint"), ("no_evidence", "evidence")]


def test_one_that_extends_what_is_not_there_is_an_error(lint):
    result = lint('id = "mine"\nextends = "nobody"')

    assert result.exit_code == 2
    assert "error: extends 'nobody', which is not there" in result.stderr


def test_files_that_extend_one_another_are_judged_together(write):
    paths = [
        write("b.toml", 'id = "b"\nextends = "a"'),
        write("a.toml", CLEAN.replace('"search"', '"a"')),
    ]

    result = CliRunner().invoke(command, ["lint", *map(str, paths)])

    assert result.exit_code == 1
    assert "error" not in result.output
