import pytest

from temper_core.plan import ProfileCatalogue
from temper_core.records.contributions import Detection
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
        ("mysql@sha256:0123456789abcdef", "mysql:*"),
        ("mysql:8@sha256:0123456789abcdef", "mysql:8"),
        ("registry.example:5000/mysql", "*/mysql:*"),
    ],
)
def test_an_image_is_matched_as_written_and_without_what_is_implied(choose, simple, image, glob):
    profile = simple("db", fingerprint=Fingerprint(images=(glob,)))

    assert choose(profile, image=image)[0] == "shipped"


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
