import json
import os

import pytest
from click.testing import CliRunner

from temper_core import InputError
from temper_core.cli.profiles import command


def run(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.mark.parametrize("arguments", [["list"], []])
def test_every_profile_is_listed_with_its_source(arguments, write):
    path = write("search.toml")

    result = run(*arguments, "--profiles", write.directory, "--output", "json")

    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert ("search", str(path)) in [(p["id"], p["source"]) for p in document["profiles"]]
    assert ("mysql-innodb", "builtin-profiles") in [
        (p["id"], p["source"]) for p in document["profiles"]
    ]


def test_the_table_names_the_profile_and_its_groups(write):
    write("search.toml", extra="[machine_shape]\ncores = [4, 16]")

    result = run("--profiles", write.directory)

    assert "search" in result.stdout
    assert "cores 4-16" in result.stdout


def test_a_profile_that_could_not_be_loaded_is_a_finding_on_stderr(write):
    write("bad.toml", extra="colour = 3")

    result = run("--profiles", write.directory, "--output", "json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["failures"][0]["profile"] == "search"
    assert "bad.toml (profile 'search'): document: unknown key 'colour'" in result.stderr


def test_one_profile_is_shown_with_its_groups(write):
    result = run("show", "mysql-innodb", "--profiles", write.directory)

    assert result.exit_code == 0
    assert "comm_prefix connection" in result.stdout
    assert "effect        within the spread" in result.stdout


def test_one_profile_is_shown_as_json(write):
    result = run("show", "mysql-innodb", "--profiles", write.directory, "--output", "json")

    [document] = json.loads(result.stdout)
    assert document["thread_groups"][0]["treatment"] == "exclusive"


def test_an_unknown_id_names_those_that_exist(write):
    write("search.toml")

    result = run("show", "serach", "--profiles", write.directory)

    assert isinstance(result.exception, InputError)
    assert "no profile is called 'serach'" in str(result.exception)
    assert "search" in str(result.exception).split("there are: ")[1]
    assert str(result.exception).endswith("; did you mean 'search'?")


def test_an_id_that_failed_to_load_says_why(write):
    write("bad.toml", extra="colour = 3")

    result = run("show", "search", "--profiles", write.directory)

    assert "could not be loaded" in str(result.exception)
    assert "unknown key 'colour'" in str(result.exception)


def test_a_good_file_is_well_formed(write):
    result = run("check", write("search.toml"))

    assert result.exit_code == 0
    assert "profile 'search' is well formed" in result.stdout


def test_groups_that_only_steering_can_match_are_told(write):
    text = """
id = "web"
[[thread_groups]]
name = "workers"
match = [{ comm_pattern = "^worker-[0-9]+$" }]
"""

    result = run("check", write("web.toml", text))

    assert "without steering the engine cannot match workers" in result.stdout


def test_every_mistake_of_every_file_is_told_and_the_exit_code_is_2(write):
    good, bad = write("good.toml"), write("bad.toml", extra="colour = 3\nsize = 4")

    result = run("check", bad, good, write.directory / "none.toml")

    assert result.exit_code == 2
    assert "good.toml: profile 'search' is well formed" in result.stdout
    assert "unknown key 'colour'" in result.stderr
    assert "unknown key 'size'" in result.stderr
    assert "none.toml: No such file or directory" in result.stderr


def test_a_directory_is_checked_file_by_file(write):
    write("good.toml")
    write("bad.toml", extra="colour = 3")
    write("notes.txt", "no profile")

    result = run("check", write.directory)

    assert result.exit_code == 2
    assert "good.toml: profile 'search' is well formed" in result.stdout
    assert "bad.toml: document: unknown key 'colour'" in result.stderr
    assert "notes" not in result.output


def test_a_directory_without_profiles_is_told(write):
    result = run("check", write.directory)

    assert isinstance(result.exception, InputError)
    assert "holds no profile" in str(result.exception)


def test_a_file_that_the_agent_would_not_read_is_not_well_formed(write):
    result = run("check", write("large.toml", extra="#" * 300_000))

    assert result.exit_code == 2
    assert "is larger than 262144 bytes" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming somebody else needs root")
@pytest.mark.parametrize("below", ["", "/search.toml", "/inner"])
def test_what_lies_in_a_directory_that_this_user_may_not_enter_is_one_line(write, below):
    write("search.toml")
    closed = write.directory / "closed"
    (closed / "inner").mkdir(parents=True)
    write.directory.chmod(0o755)
    closed.chmod(0o700)
    run("check", write.directory)  # imports what another user may not read

    os.seteuid(65534)
    try:
        result = run("check", f"{closed}{below}")
    finally:
        os.seteuid(0)

    assert result.exit_code == 2
    assert str(closed) in result.stderr
    assert "Permission denied" in result.stderr or "is not readable" in result.stderr


def test_what_a_profile_extends_and_that_its_evidence_is_old_is_shown(write):
    write("a.toml")
    old = 'id = "mine"\nextends = "search"\n[evidence]\nexpires = "2020-01-01"\n'
    path = write("b.toml", old)

    shown = run("show", "mine", "--profiles", write.directory)
    [document] = json.loads(
        run("show", "mine", "--profiles", write.directory, "--output", "json").stdout
    )
    checked = run("check", path)

    assert f"extends       search ({write.directory / 'a.toml'})" in shown.stdout
    assert "its evidence expired on 2020-01-01: measure again" in shown.stdout
    assert (document["extends"], document["expired"]) == (
        [f"search ({write.directory / 'a.toml'})"],
        "2020-01-01",
    )
    assert "it extends 'search', which temper profiles lint looks up" in checked.stdout
