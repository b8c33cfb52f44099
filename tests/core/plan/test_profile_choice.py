import attrs
import pytest

from temper_core.plan import ProfileCatalogue
from temper_core.records.contributions import Detection
from temper_core.records.plans import ProfileCode
from temper_core.records.pods import Container
from temper_core.records.profiles import Fingerprint, ProfileFailure, ShapeRange
from temper_core.testing import make_machine

EIGHT_CORES = make_machine(8)
ANNOTATION = "temper.codes/workload-profile"
FORMER = "infera.io/workload-profile"


@pytest.fixture
def choose(pod, with_image):
    """Choose among profiles for a pod of some image and annotations."""

    def run(*profiles, image="other:1", machine=EIGHT_CORES, detect=None, failures=(), **changes):
        catalogue = ProfileCatalogue(tuple(profiles), failures)
        chosen = with_image(pod("db", **changes), image)
        choice = catalogue.choose(chosen, machine, detect or (lambda _: None))
        return choice.loaded.source if choice.loaded else None, choice.reason

    return run


@pytest.fixture
def simple(profile, group):
    return lambda name, **changes: profile(name, group("all"), **changes)


def test_an_annotation_wins_over_detector_and_image(choose, simple):
    source, reason = choose(
        simple("asked", source="one"),
        simple("seen", source="two"),
        image="seen:1",
        detect=lambda _: Detection("seen", 1.0, "it looks so"),
        annotations={ANNOTATION: "asked"},
    )

    assert source == "one"
    assert reason == f"annotation {ANNOTATION}: asked (from one)"


def test_the_former_annotation_is_read_and_the_new_one_wins(choose, simple):
    profiles = (simple("new", source="new"), simple("old", source="old"))

    assert choose(*profiles, annotations={FORMER: "old"})[0] == "old"
    assert choose(*profiles, annotations={FORMER: "old", ANNOTATION: "new"})[0] == "new"


def test_an_unknown_annotation_never_falls_back_to_the_image(choose, simple):
    source, reason = choose(simple("db"), image="db:1", annotations={ANNOTATION: "nonsense"})

    assert source is None
    assert "there is no such profile; loaded are db" in reason
    assert "did you mean" not in reason


def test_a_mistyped_annotation_gets_the_profile_that_was_meant(choose, simple):
    _, reason = choose(simple("redis"), annotations={ANNOTATION: "redsi"})

    assert reason.endswith("loaded are redis; did you mean 'redis'?")


def test_an_annotation_for_a_profile_that_did_not_load_says_so(choose):
    failure = ProfileFailure("db.toml", "db", "line 3 is wrong")

    _, reason = choose(failures=(failure,), annotations={ANNOTATION: "db"})

    assert "could not be loaded (db.toml: line 3 is wrong)" in reason


def test_a_detector_wins_over_the_image(choose, simple):
    source, reason = choose(
        simple("imaged", source="one"),
        simple("found", source="two"),
        image="imaged:1",
        detect=lambda _: Detection("found", 0.9, "its main process"),
    )

    assert source == "two"
    assert "its main process" in reason


def test_a_detection_without_a_profile_leaves_the_image_to_tell(choose, simple):
    def detect(_):
        return Detection("unknown", 0.9, "a guess")

    assert choose(simple("db"), image="db:1", detect=detect)[0] == "shipped"
    assert "there is no such profile" in choose(simple("db"), detect=detect)[1]


@pytest.mark.parametrize(
    ("image", "glob"),
    [
        ("mysql:8.0", "mysql:*"),
        ("mysql", "mysql:*"),
        ("mysql", "mysql"),
        ("docker.io/library/mysql:8", "mysql:*"),
        ("docker.io/percona/percona-server:8", "percona/percona-server:*"),
        ("docker.io/library/mysql:8", "docker.io/*/mysql:8"),
        ("mysql:8", "docker.io/library/mysql:*"),
        ("docker.io/mysql:8", "docker.io/library/mysql:*"),
        ("percona/percona-server:8", "docker.io/percona/*"),
        ("mysql@sha256:0123456789abcdef", "mysql:*"),
        ("mysql:8@sha256:0123456789abcdef", "mysql:8"),
        ("registry.example:5000/mysql", "*/mysql:*"),
        ("registry.example:5000/shop/mysql:8.4", "registry.example:5000/*/mysql:8.*"),
        ("mysql:8@sha256:0123456789abcdef", "mysql@sha256:0123*"),
        ("mysql:8@sha256:0123456789abcdef", "mysql:8@sha256:*"),
        ("docker.io/library/mysql@sha256:0123456789abcdef", "*@sha256:0123456789abcdef"),
    ],
)
def test_an_image_is_matched_with_and_without_what_is_implied(choose, simple, image, glob):
    profile = simple("db", fingerprint=Fingerprint(images=(glob,)))

    assert choose(profile, image=image)[0] == "shipped"


@pytest.mark.parametrize("image", ["mysql:8", "mysql:8@sha256:abcd", "mysql"])
def test_a_glob_with_a_digest_takes_no_other(choose, simple, image):
    profile = simple("db", fingerprint=Fingerprint(images=("mysql@sha256:0123*",)))

    assert choose(profile, image=image) == (None, "")


@pytest.mark.parametrize("image", ["notmysql:8", "mysql-exporter:1", "x/mysql:8", "MYSQL:8", ""])
def test_an_image_that_only_resembles_is_not_matched(choose, simple, image):
    profile = simple("db", fingerprint=Fingerprint(images=("mysql:*",)))

    assert choose(profile, image=image) == (None, "")


def test_the_main_process_tells_where_the_image_does_not(pod, simple):
    profile = simple("db", fingerprint=Fingerprint(processes=("mysqld-with-a-long-name",)))
    cut = (Container("c", "own:1", processes=("mysqld-with-a-l",)),)
    catalogue = ProfileCatalogue((profile,))

    choice = catalogue.choose(pod("own", containers=cut), EIGHT_CORES)

    assert choice.loaded is profile
    assert "process mysqld-with-a-l" in choice.reason


def test_a_profile_for_another_shape_is_passed_over_with_the_reason(choose, simple):
    tuned = simple("db", machine_shape=ShapeRange(cores=8), source="tuned.toml")

    source, reason = choose(tuned, image="db:1", machine=make_machine(64))

    assert source is None
    assert "not applied" in reason
    assert "tuned.toml: it is for 8 cores, this machine has 64" in reason


@pytest.mark.parametrize(
    "shape",
    [
        ShapeRange(threads_per_core=1),
        ShapeRange(sockets=(2, 4)),
        ShapeRange(numa_nodes=2),
        ShapeRange(llcs=(2, 8)),
        ShapeRange(architecture="aarch64"),
        ShapeRange(cores=(9, 16)),
        ShapeRange(cores=(1, 7)),
    ],
)
def test_every_given_key_of_a_shape_must_fit(choose, simple, shape):
    assert choose(simple("db", machine_shape=shape), image="db:1")[0] is None


def test_bounds_of_a_shape_are_inclusive(choose, simple):
    assert choose(simple("db", machine_shape=ShapeRange(cores=(8, 16))), image="db:1")[0]
    assert choose(simple("db", machine_shape=ShapeRange(cores=(4, 8))), image="db:1")[0]


def test_a_file_overrides_what_is_shipped(choose, simple):
    shipped = simple("db", machine_shape=ShapeRange(cores=8), source="shipped")
    file = simple("db", source="a.toml", is_file=True)

    assert choose(shipped, file, image="db:1")[0] == "a.toml"


def test_what_is_shipped_serves_where_the_file_is_for_another_machine(choose, simple):
    file = simple("db", machine_shape=ShapeRange(cores=4), source="a.toml", is_file=True)

    assert choose(simple("db"), file, image="db:1")[0] == "shipped"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (ShapeRange(cores=8), ShapeRange(cores=(1, 64), threads_per_core=None)),
        (ShapeRange(cores=8, threads_per_core=2), ShapeRange(cores=8)),
        (ShapeRange(cores=(4, 12)), ShapeRange(cores=(1, 64))),
        (ShapeRange(cores=(1, 64)), ShapeRange()),
        (ShapeRange(architecture="x86_64"), ShapeRange(cores=(8, 8))),
    ],
)
def test_the_most_specific_shape_is_chosen(choose, simple, better, worse):
    first = simple("db", machine_shape=better, source="z.toml", is_file=True)
    second = simple("db", machine_shape=worse, source="a.toml", is_file=True)

    assert choose(first, second, image="db:1")[0] == "z.toml"
    assert choose(second, first, image="db:1")[0] == "z.toml"


def test_of_equal_shapes_the_name_of_the_source_decides(choose, simple):
    first, second = (simple("db", source=name, is_file=True) for name in ("a.toml", "b.toml"))

    assert choose(second, first, image="db:1")[0] == "a.toml"


def test_a_profile_that_is_not_applied_is_a_note_of_the_plan(plan, pod, codes):
    made = plan(pod("a", annotations={ANNOTATION: "nonsense"}), pod("b"))

    assert codes(made) == {("profile_not_applied", "default/a")}


def test_a_disabled_profile_is_a_reason_and_no_note(plan, pod, simple, with_image, codes):
    disabled = attrs.evolve(simple("db"), disabled="disabled by default: it is worse")

    made = plan(with_image(pod("a"), "db:1"), profiles=(disabled,))

    assert made.assignments[0].profile is None
    assert made.assignments[0].profile_reason.endswith("disabled by default: it is worse")
    assert codes(made) == set()


def versioned(simple, name, *versions, images=("mysql:*",), **more):
    known = Fingerprint(images=images, versions=versions, **more)
    return simple(name, fingerprint=known, source=f"{name}.toml")


@pytest.mark.parametrize(
    ("image", "source"),
    [
        ("mysql:8.0.27", "new.toml"),
        ("mysql:8.4", "new.toml"),
        ("docker.io/library/mysql:8.0.36-debian", "new.toml"),
        ("mysql:5.7", "old.toml"),
        ("mysql:8.0.26", "old.toml"),
        ("mysql:8", None),
        ("mysql:latest", None),
        ("mysql", None),
        ("mysql@sha256:0123", None),
    ],
)
def test_the_version_that_the_tag_tells_chooses_and_one_that_tells_none_leaves_it(
    choose, simple, image, source
):
    profiles = (versioned(simple, "new", ">=8.0.27"), versioned(simple, "old", "<8.0.27"))

    assert choose(*profiles, image=image)[0] == source


def test_a_version_that_is_not_told_fits_where_the_annotation_names_the_profile(choose, simple):
    profile = versioned(simple, "new", ">=8.0.27")
    named = {"annotations": {ANNOTATION: "new"}}

    assert choose(profile, image="mysql:latest", **named)[0] == "new.toml"
    assert choose(profile, image="shop/own-build:1.4", **named)[0] == "new.toml"
    source, reason = choose(profile, image="mysql:5.7", **named)
    assert source is None
    assert "it is for versions >=8.0.27, and image mysql:5.7 is of another" in reason


def test_a_detected_profile_of_another_version_leaves_the_image_to_tell(choose, simple):
    def detect(_):
        return Detection("new", 0.9, "its main process")

    profiles = (versioned(simple, "new", ">=8.0.27"), versioned(simple, "old", "<8.0.27"))

    assert choose(*profiles, image="mysql:5.7", detect=detect)[0] == "old.toml"
    source, reason = choose(*profiles, image="own:1", detect=detect)
    assert source is None
    assert "no image tag gives the pod's" in reason


def test_an_annotation_may_name_a_profile_by_a_further_id_and_the_version_decides(choose, simple):
    profiles = (
        versioned(simple, "mysql8", ">=8", annotations=("mysql",)),
        versioned(simple, "mysql5", "<8", annotations=("mysql",)),
    )

    source, reason = choose(*profiles, image="mysql:5.7", annotations={ANNOTATION: "mysql"})

    assert source == "mysql5.toml"
    assert reason == f"annotation {ANNOTATION}: mysql, as mysql5 is called too (from mysql5.toml)"


def test_an_id_comes_before_further_ones_even_where_it_could_not_be_loaded(choose, simple):
    other = versioned(simple, "other", annotations=("db",))
    named = {"annotations": {ANNOTATION: "db"}}

    assert choose(other, simple("db", source="db.toml"), **named)[0] == "db.toml"
    assert choose(other, failures=(ProfileFailure("db.toml", "db", "bad"),), **named)[0] is None


def test_a_tie_goes_by_the_name_of_the_file_and_says_so(
    choose, simple, plan, pod, with_image, codes
):
    first, second = (
        simple(name, fingerprint=Fingerprint(images=("db:*",)), source=source, is_file=True)
        for name, source in (("one", "b.toml"), ("two", "a.toml"))
    )

    source, reason = choose(first, second, image="db:1")
    made = plan(with_image(pod("a"), "db:1"), profiles=(first, second))

    assert source == "a.toml"
    assert reason.endswith("; a tie with one (b.toml), decided by the name of the source")
    assert ("profile_tie", "default/a") in codes(made)


def test_no_tie_is_where_one_is_more_specific(choose, simple):
    known = Fingerprint(images=("db:*",))
    first = simple("one", fingerprint=known, source="a.toml", is_file=True)
    second = simple(
        "two", fingerprint=known, source="b.toml", is_file=True, machine_shape=ShapeRange(cores=8)
    )

    source, reason = choose(first, second, image="db:1")

    assert source == "b.toml"
    assert "tie" not in reason


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"annotations": {ANNOTATION: "nonsense"}}, ProfileCode.UNKNOWN_ID),
        ({"annotations": {ANNOTATION: "bad"}}, ProfileCode.NOT_LOADED),
        ({"annotations": {ANNOTATION: "large"}}, ProfileCode.SHAPE),
        ({"image": "mysql:5.7"}, ProfileCode.VERSION),
        ({"image": "other:1"}, None),
    ],
)
def test_why_none_is_applied_is_told_as_a_code(pod, simple, with_image, given, code):
    catalogue = ProfileCatalogue(
        (simple("large", machine_shape=ShapeRange(cores=64)), versioned(simple, "new", ">=8")),
        (ProfileFailure("bad.toml", "bad", "is bad"),),
    )
    chosen = pod("db", annotations=given.get("annotations", {}))

    choice = catalogue.choose(with_image(chosen, given.get("image", "own:1")), EIGHT_CORES)

    assert (choice.loaded, choice.code) == (None, code)


def test_expired_evidence_is_told_and_the_profile_is_applied(plan, pod, simple, with_image, codes):
    old = attrs.evolve(simple("db"), expired="2026-01-01")

    made = plan(with_image(pod("a"), "db:1"), profiles=(old,))

    assert made.assignments[0].profile is old
    assert "its evidence expired on 2026-01-01" in made.assignments[0].profile_reason
    assert codes(made) == {("profile_expired", "default/a")}
