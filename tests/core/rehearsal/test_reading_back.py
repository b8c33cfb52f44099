"""Whatever is in a file, reading it ends soon: with looks, or with one line that says where."""

import gzip
import json
import os

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from temper_core.errors import DocumentError
from temper_core.records.snapshots import Section
from temper_core.records.wakes import WaitHistogram, WakeWindow, read_wake_window
from temper_core.rehearsal.recording_format import LARGEST_BYTES, LONGEST_LINE_BYTES
from temper_core.settings.models import Settings
from temper_core.testing import make_machine, make_thread


@pytest.fixture
def recorded(web, plan_of, look_of, write):
    plan = plan_of(web)
    return write(look_of(plan, 0), look_of(plan, 1))


@pytest.fixture
def spoilt(recorded, tmp_path):
    """Return a function that changes the line of a kind, and returns the path of the result."""

    def spoil(kind, change):
        path, is_done = tmp_path / "spoilt.rec", False
        with path.open("w") as file:
            for text in recorded.read_text().splitlines():
                line = json.loads(text)
                if line["kind"] == kind and not is_done:
                    change(line)
                    is_done = True
                file.write(json.dumps(line) + "\n")
        assert is_done
        return path

    return spoil


def put(value, *keys):
    def change(line):
        for key in keys[:-1]:
            line = line[key]
        line[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("recording", put(2, "schema_version"), ":1: schema_version: must be in [1]"),
        ("recording", put("x", "settings", "plan", "reserve_cores"), ":1: settings.plan.reserve"),
        ("recording", put([], "machine", "cpus"), ":1: machine.cpus:"),
        ("recording", put(7, "settings", "nonsense"), ":1: settings: unknown key 'nonsense'"),
        ("recording", put("look", "kind"), ":1: is no recording of a node"),
        ("plan", put([], "plan", "layers"), ":3: plan: must have at least one layer"),
        ("plan", put([], "plan", "assignments"), ":3: plan: must have one assignment for each"),
        ("plan", put(9, "plan", "assignments", 0, "profile"), ":3: plan: an assignment has a prof"),
        ("plan", put("no", "plan", "assignments", 0, "tier"), ":3: plan.assignments[0].tier: must"),
        ("plan", put(-4, "plan", "pods", 0, "cpu_request_millis"), ":3: plan.pods[0].cpu_request"),
        ("look", put("1", "look", "threads", 0, "cpu"), ":4: look.threads[0].cpu: must be a whole"),
        ("look", put(1e999, "look", "threads", 0, "cpu_used"), ":4: look.threads[0].cpu_used: mus"),
        ("look", put(1 << 70, "look", "threads", 0, "tid"), ":4: look.threads[0].tid: is too long"),
        ("look", put("god", "look", "threads", 0, "tier"), ":4: look.threads[0].tier: must be"),
        ("look", put([None], "look", "threads"), ":4: look.threads[0]: must be a table"),
        ("look", put({}, "look", "threads", 0), ":4: look.threads[0].comm: is required (and 7"),
        ("look", put({}, "look", "plan"), ":4: look: unknown key 'plan'"),
        ("look", put(1e300, "look", "at"), ":4: look.at: must be from 0 to"),
        ("look", put(-1.0, "look", "window_s"), ":4: look.window_s: must be from 0 to"),
        ("look", put(1e9, "look", "monotonic_s"), ":5: look.monotonic_s: is before"),
        ("look", put(1, "more"), ":4: a line 'look' has the key 'look', and no other"),
        ("look", put("glance", "kind"), ":4: kind: is 'glance'"),
        ("end", put(7, "looks"), ":6: looks: must be 2"),
        ("end", put("pause", "kind"), ":6: kind: is 'pause'"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line_with_file_line_and_key(
    spoilt, read_all, kind, change, said
):
    path = spoilt(kind, change)

    with pytest.raises(DocumentError) as caught:
        read_all(path)

    assert f"{path}{said}" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["x" * 1_000_000, "\x1b[2J\n" * 50, [[]] * 10_000])
def test_a_complaint_is_short_and_steers_no_terminal(spoilt, read_all, value):
    path = spoilt("look", put(value, "look", "threads", 0, "cpu"))

    with pytest.raises(DocumentError) as caught:
        read_all(path)

    said = str(caught.value).removeprefix(str(path))
    assert len(said) < 300
    assert said.isprintable()


@pytest.mark.parametrize("name", ["node.rec", "node.rec.gz"])
def test_a_recording_that_is_cut_anywhere_is_refused(
    plan_of, look_of, write, read_all, tmp_path, name
):
    path = write(look_of(plan_of(), 0), name=name)
    whole, cut = path.read_bytes(), tmp_path / f"cut-{name}"

    for length in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        cut.write_bytes(whole[:length])
        with pytest.raises(DocumentError):
            read_all(cut)


def test_without_its_last_line_a_recording_is_cut(recorded, read_all):
    lines = recorded.read_bytes().splitlines(keepends=True)
    recorded.write_bytes(b"".join(lines[:-1]))

    with pytest.raises(DocumentError, match=r"is cut: after 2 looks there is no line 'end'"):
        read_all(recorded)


def test_nothing_may_follow_the_end(recorded, read_all):
    recorded.write_bytes(recorded.read_bytes() + b'{"kind": "look"}\n')

    with pytest.raises(DocumentError, match=":6: is the end, but another line follows"):
        read_all(recorded)


def test_a_line_that_unpacks_to_more_than_one_may_be_is_refused_soon(tmp_path, read_all):
    bomb = tmp_path / "bomb.rec.gz"
    with gzip.open(bomb, "wb", compresslevel=1) as file:
        for _ in range(LONGEST_LINE_BYTES // (1 << 20) + 2):
            file.write(b" " * (1 << 20))

    with pytest.raises(DocumentError, match=f":1: is longer than {LONGEST_LINE_BYTES} bytes"):
        read_all(bomb)


def test_a_file_of_empty_members_is_refused_soon(tmp_path, read_all):
    path = tmp_path / "empty.rec.gz"
    path.write_bytes(gzip.compress(b"") * 200_000)

    with pytest.raises(DocumentError, match=":1: cannot be unpacked from here on"):
        read_all(path)


def test_a_file_that_unpacks_to_more_than_a_recording_is_refused(recorded, read_all, monkeypatch):
    monkeypatch.setattr("temper_core.rehearsal.recording_lines.LARGEST_BYTES", 4_000)

    with pytest.raises(DocumentError, match=r":\d: more than 4000 bytes of text"):
        read_all(recorded)

    assert LARGEST_BYTES > 100 * LONGEST_LINE_BYTES / 10


def test_a_pipe_a_folder_and_no_file_are_refused_at_once(tmp_path, read_all):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    for path, why in ((pipe, "regular file"), (tmp_path, "."), (tmp_path / "absent", "No such")):
        with pytest.raises(DocumentError, match=why):
            read_all(path)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a+)+$",
        "(?:a|a)(?:a|a)(?:a|a)x",
        "(?:(?:(?:a|b)))",
        "a{1,99999}",
        "(a)",
        "(?=a)",
        "(?:a",
        "a)",
        "x" * 300_000,
    ],
)
def test_a_pattern_that_no_plan_has_is_refused(spoilt, read_all, pattern):
    matcher = [[{"kind": "CgroupRegex", "value": pattern}]]
    path = spoilt("plan", put(matcher, "plan", "layers", 0, "matches"))

    with pytest.raises(DocumentError, match="matches by a pattern that no plan has"):
        read_all(path)


def test_the_patterns_of_a_plan_of_many_pods_are_taken(web, plan_of, look_of, write, read_all):
    pods = [evolved(web, number) for number in range(60)]
    plan = plan_of(*pods, steered=False)

    _, [moment] = read_all(write(look_of(plan, 0)))

    kinds = {m.kind for layer in plan.layers for block in layer.matches for m in block}
    assert "CgroupRegex" in kinds
    assert moment.snapshot.plan == plan


def evolved(pod, number):
    cgroups = (f"kubepods.slice/pod.{number}/", f"other/{number % 7}/")
    return evolve(pod, uid=f"u{number}", name=f"web-{number}", cgroups=cgroups)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_whatever_make_a_traceback(data, fuzzed):
    whole = fuzzed.whole
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 40))
    noise = data.draw(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"null", b"-1", b"1e999", b"[]", b"{}", b'"\\ud800"', b"\n", b"NaN"]),
        )
    )

    fuzzed.path.write_bytes(whole[:start] + noise + whole[start + length :])

    fuzzed.try_to_read()


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["open", "Grouped", "critical", "CgroupRegex", 0, -1, 1 << 63]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(data=st.data())
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_at_any_key_makes_a_traceback(data, fuzzed):
    lines = [json.loads(line) for line in fuzzed.whole.splitlines()]
    place = data.draw(st.sampled_from(lines))
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        inner = place[key]
        if not (isinstance(inner, dict | list) and inner) or data.draw(st.integers(0, 5)) == 0:
            break
        place = inner
    place[key] = data.draw(json_values)

    fuzzed.path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    fuzzed.try_to_read()


@pytest.fixture
def fuzzed(recorded, read_all):
    return Fuzzed(recorded, recorded.read_bytes(), read_all)


class Fuzzed:
    """A whole recording, and where a spoilt one is written."""

    def __init__(self, path, whole, read_all):
        self.path = path
        self.whole = whole
        self.read_all = read_all

    def try_to_read(self):
        """Read it; a complaint must be one line that begins with the file's name."""
        complaint = ""
        try:
            self.read_all(self.path)
        except DocumentError as error:
            complaint = str(error)
        assert not complaint or complaint.startswith(str(self.path))
        assert "\n" not in complaint


def test_a_thread_with_every_field_is_read_as_it_was(plan_of, look_of, write, read_all):
    thread = make_thread(
        affinity=(0, 2), policy="fifo", rt_priority=3, nice=-5, waiting_s=0.25, is_kthread=True
    )

    _, [moment] = read_all(write(look_of(plan_of(), 0, thread)))

    assert moment.snapshot.threads == (thread,)


def test_a_machine_larger_than_any_is_refused(spoilt, read_all):
    cpus = [{"id": number, "core": number} for number in range(4097)]

    with pytest.raises(DocumentError, match="must be at most 4096"):
        read_all(spoilt("recording", put(cpus, "machine", "cpus")))


def test_a_machine_with_one_cpu_twice_is_refused(spoilt, read_all):
    cpus = [{"id": 3, "core": 0}, {"id": 3, "core": 1}]

    with pytest.raises(DocumentError, match="an id is given twice"):
        read_all(spoilt("recording", put(cpus, "machine", "cpus")))


def test_the_same_machine_is_read_for_every_look(recorded, read_all):
    head, moments = read_all(recorded)

    assert head.machine == make_machine(8)
    assert all(moment.snapshot.machine is head.machine for moment in moments)


def test_sections_of_instruments_are_read_back_as_they_were(web, plan_of, look_of, write, read_all):
    sections = {"shop": Section(3, {"orders": [1, 2.5, None], "open": True}), "none": Section(1)}

    _, (moment,) = read_all(write(evolve(look_of(plan_of(web), 0), sections=sections)))

    assert moment.snapshot.sections == sections


OLD_WINDOW = {
    "at": 1_750_000_000.5,
    "length_s": 0.25,
    "every_s": 20.0,
    "switches_per_s": 1e4,
    "edges": [],
    "blockings": [],
    "waits": [{"subject": "node", "counts": [1, 2], "total_s": 0.5}],
    "lost": 3,
}


def test_a_window_of_a_version_before_sections_is_read_as_the_section_of_the_tracer(
    spoilt, read_all
):
    path = spoilt("look", put(OLD_WINDOW, "look", "wakes"))

    _, (first, second) = read_all(path)

    window = read_wake_window(first.snapshot.sections["tracer"])
    assert window == WakeWindow(
        1_750_000_000.5, 0.25, 20.0, 1e4, waits=(WaitHistogram("node", (1, 2), 0.5),), lost=3
    )
    assert second.snapshot.sections == {}


def test_a_recorded_number_of_windows_below_what_was_needed_is_read_as_it_was_applied(
    spoilt, read_all
):
    head, _ = read_all(spoilt("recording", put(2, "settings", "lint", "windows")))

    assert (head.settings.lint.windows, head.settings.lint.fire_after) == (2, 2)


@pytest.mark.parametrize(
    ("section", "key"), [("safe_mode", "file"), ("safe_mode", "state"), ("server", "socket")]
)
def test_a_recorded_path_that_was_relative_is_that_of_no_file(spoilt, read_all, section, key):
    head, _ = read_all(spoilt("recording", put("run/x", "settings", section, key)))

    assert getattr(getattr(head.settings, section), key).startswith("/")


def test_settings_and_looks_of_a_version_before_the_tracer_are_read(spoilt, read_all):
    head, _ = read_all(spoilt("recording", put(False, "settings", "observe", "edges")))
    _, moments = read_all(spoilt("look", put(None, "look", "wakes")))

    assert head.settings == Settings()
    assert [moment.snapshot.sections for moment in moments] == [{}, {}]
