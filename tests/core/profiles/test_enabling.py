"""A disabled profile is chosen by an annotation alone, unless the settings enable it."""

import json

import pytest
from click.testing import CliRunner

from temper_core import Container, hookimpl, parse_profile
from temper_core.cli.profiles import command
from temper_core.profiles.catalogue import Choice
from temper_core.profiles.completion import Completion
from temper_core.profiles.enabling import disabled_reason
from temper_core.profiles.loading import load_catalogue
from temper_core.profiles.watch import ProfileWatch
from temper_core.records.contributions import Detection
from temper_core.records.profiles import LoadedProfile
from temper_core.settings.models import ProfileSettings, Settings
from temper_core.testing import make_machine, make_pod

MEASURED = """
[evidence]
effect = "{effect}"
kernel = "6.18.15"
engine = "1.1.4"
command = "make ladder"
[[evidence.figures]]
measure = "p99"
unit = "ms"
tiers_only = 5.4
profile = {value}
spread = 0.5
"""
WORSE = MEASURED.format(effect="worse", value=9.1)
WITHIN = MEASURED.format(effect="within the spread", value=5.2)
BETTER = MEASURED.format(effect="better", value=3.1)
ANNOTATION = "temper.codes/workload-profile"


def document(name="db", *, enabled=False, extra="", processes=(), **kind):
    text = f"""
id = "{name}"
enabled = {str(enabled).lower()}
[fingerprint]
images = ["{kind.get("image", name)}:*"]
processes = {json.dumps(list(processes))}
annotations = {json.dumps(kind.get("aliases", []))}
[[thread_groups]]
name = "rest"
{extra}
"""
    return parse_profile(text, f"{name}.toml")


def entry(name="db", **kind):
    return LoadedProfile(document(name, **kind), f"{name}.toml")


def choose(*entries, image="db:1", enable=(), detected="", process="", **pod):
    catalogue = Completion(enable=enable).catalogue(entries)
    container = Container("main", image=image, processes=(process,) if process else ())
    seen = Detection(detected, 0.9, "a guess") if detected else None
    return catalogue.choose(
        make_pod(containers=(container,), **pod), make_machine(8), lambda _: seen
    )


@pytest.mark.parametrize("how", [{}, {"image": "own:1", "process": "dbd"}, {"detected": "db"}])
def test_what_recognises_a_pod_passes_over_a_disabled_profile_and_says_so(how):
    choice = choose(entry(processes=["dbd"], extra=WORSE), **how)

    assert (choice.loaded, choice.code) == (None, None)
    assert "not applied: db.toml: disabled by default: it is worse than its tier alone" in (
        choice.reason
    )
    assert "the annotation temper.codes/workload-profile: db chooses it" in choice.reason
    assert '[profiles] enable = ["db"] enables it' in choice.reason
    assert "\n" not in choice.reason


@pytest.mark.parametrize("wanted", ["db", "database"])
def test_an_annotation_still_chooses_it(wanted):
    choice = choose(entry(aliases=["database"]), annotations={ANNOTATION: wanted})

    assert choice.loaded.profile.id == "db"


@pytest.mark.parametrize("how", [{}, {"image": "own:1", "process": "dbd"}, {"detected": "db"}])
def test_the_settings_enable_it(how):
    choice = choose(entry(processes=["dbd"]), enable=("db",), **how)

    assert choice.loaded.profile.id == "db"


def test_an_enabled_profile_of_the_same_image_is_chosen_instead():
    choice = choose(entry(), entry("own", enabled=True, image="db"))

    assert choice.loaded.profile.id == "own"


def test_a_main_process_is_looked_at_where_the_image_says_a_disabled_profile():
    choice = choose(entry(), entry("own", enabled=True, processes=["dbd"]), process="dbd")

    assert choice.loaded.profile.id == "own"


def test_a_file_of_its_id_takes_its_place():
    shipped = LoadedProfile(document(extra=WORSE), "builtin-profiles")
    own = LoadedProfile(document(enabled=True), "db.toml", is_file=True)

    assert choose(shipped, own).loaded.source == "db.toml"


def test_no_claim_is_no_reason():
    assert choose(entry(), image="other:1") == Choice()


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ("", "its document says enabled = false"),
        (BETTER, "its document says enabled = false"),
        ('[evidence]\neffect = "not measured"', "its effect was not measured"),
        (WORSE, "it is worse than its tier alone, p99 9.1 ms with the profile, 5.4 ms without"),
        (WITHIN, "it does not beat its tier alone beyond the spread, p99 5.2 ms with the profile"),
    ],
)
def test_the_reason_is_from_the_evidence(extra, why):
    assert disabled_reason(document(extra=extra), ()).startswith(f"disabled by default: {why}")


def test_an_enabled_profile_has_no_reason():
    assert disabled_reason(document(enabled=True, extra=WORSE), ()) == ""


@pytest.mark.parametrize(
    ("name", "given", "disabled"),
    [
        ("db", "", True),
        ("db", "enabled = true", False),
        ("mine", "", False),
        ("mine", "enabled = false", True),
    ],
)
def test_only_a_profile_of_the_same_id_is_disabled_as_its_parent_is(name, given, disabled):
    shipped = LoadedProfile(document(extra=WORSE), "builtin-profiles")
    text = f'id = "{name}"\nextends = "db"\n{given}'
    mine = LoadedProfile(parse_profile(text, "mine.toml"), "mine.toml", is_file=True)

    catalogue = Completion().catalogue([mine, shipped])

    [made] = [loaded for loaded in catalogue.profiles if loaded.is_file]
    assert bool(made.disabled) is disabled


def test_an_unknown_id_in_the_settings_is_told_and_hides_no_alias():
    catalogue = Completion(enable=("database", "db", "db2")).catalogue(
        [entry(aliases=["database"])]
    )

    assert [failure.source for failure in catalogue.failures] == ["[profiles] enable"] * 2
    assert catalogue.failures[0].reason == "no profile has the id 'database'"
    pod = make_pod(annotations={ANNOTATION: "database"})
    assert catalogue.choose(pod, make_machine(8)).loaded.profile.id == "db"


class Pack:
    @hookimpl
    def temper_profiles(self):
        return [document(extra=WORSE)]


@pytest.mark.parametrize("enable", [(), ("db",)])
def test_agent_and_commands_heed_the_settings(host, tmp_path, enable):
    host.add(Pack(), "pack")
    settings = Settings(profiles=ProfileSettings(directory=str(tmp_path), enable=enable))

    for catalogue in (load_catalogue(settings, host), ProfileWatch(settings, host).catalogue):
        assert bool(catalogue.profiles[0].disabled) is not bool(enable)
        assert catalogue.failures == ()


def profiles(write, *arguments):
    write("db.toml", extra="enabled = false\n" + WORSE)
    text = (write.directory / "db.toml").read_text()
    head, _, evidence = text.partition("[evidence]")
    evidence, rest, group = evidence.partition("[[thread_groups]]")
    (write.directory / "db.toml").write_text(f"{head}{rest}{group}[evidence]{evidence}")
    given = [*arguments, "--profiles", str(write.directory)]
    return CliRunner(env={"COLUMNS": "250"}).invoke(command, given)


def test_the_list_says_what_is_disabled_and_why(write):
    result = profiles(write, "list")

    [row] = [line for line in result.stdout.splitlines() if line.startswith("search  ")]
    assert row.split()[3:5] == ["no", "worse"]
    assert "disabled by default: it is worse than its tier alone, p99 9.1 ms" in result.stdout
    assert result.exit_code == 0


def test_profiles_of_one_source_and_reason_share_a_line_of_the_list(write):
    result = profiles(write, "list")

    shipped = [
        line for line in result.stdout.splitlines() if "(builtin-profiles): disabled" in line
    ]
    [unmeasured] = [line for line in shipped if "its effect was not measured" in line]
    assert unmeasured.startswith("cassandra, ")
    assert "temper.codes/workload-profile: ID chooses it" in unmeasured
    measured = [line for line in shipped if line != unmeasured]
    for line, name in zip(measured, ("mysql-innodb", "redis"), strict=True):
        assert line.startswith(f"{name} (builtin-profiles): disabled by default: it does not beat")


def test_the_list_tells_machines_too(write):
    listed = json.loads(profiles(write, "list", "--output", "json").stdout)["profiles"]

    [one] = [each for each in listed if each["id"] == "search"]
    assert one["enabled"] is False
    assert one["disabled"].startswith("disabled by default")
    assert one["evidence"]["effect"] == "worse"
    assert one["evidence"]["figures"][0]["tiers_only"] == 5.4
    assert {bool(each["disabled"]) for each in listed if each["id"] != "search"} == {True}


def test_one_profile_is_shown_with_effect_figures_and_reason(write):
    shown = profiles(write, "show", "search").stdout

    assert "  effect        worse\n" in shown
    assert (
        "  figure        p99 9.1 ms with the profile, 5.4 ms without, spread 0.5 ms: worse" in shown
    )
    assert "  but           disabled by default: " in shown


@pytest.mark.parametrize(
    ("extra", "remarks"),
    [("enabled = false\n", 0), ("enabled = true\n", 1), ("", 1)],
)
@pytest.mark.parametrize("evidence", [WORSE, WITHIN])
def test_an_enabled_profile_that_does_not_help_is_remarked(write, extra, remarks, evidence):
    text = f'id = "db"\n{extra}[fingerprint]\nimages = ["db:*"]\n[[thread_groups]]\nname = "rest"\n'
    path = write("db.toml", text + evidence)

    result = CliRunner().invoke(command, ["lint", str(path), "--profiles", str(write.directory)])

    assert result.stdout.count("[no_benefit]") == remarks
