import resource
import signal
import stat
from contextlib import contextmanager

import pytest
from attrs import evolve

from temper_core.errors import InputError, MachineError
from temper_core.records.pods import Container
from temper_core.rehearsal.recording_format import LARGEST_BYTES, recording_document
from temper_core.rehearsal.writer import RecordingWriter
from temper_core.settings import Settings
from temper_core.testing import make_machine, make_pod, make_thread


@contextmanager
def limited_file_size(size):
    """Let no file of this process grow beyond *size* bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("name", ["node.rec", "node.rec.gz"])
def test_what_is_read_is_what_was_written(web, plan_of, look_of, write, read_all, name):
    plan = plan_of(web)
    snapshots = [look_of(plan, number) for number in range(3)]

    head, moments = read_all(write(*snapshots, name=name))

    assert head.settings == Settings()
    assert head.machine == snapshots[0].machine
    assert [moment.snapshot for moment in moments] == snapshots
    assert [each.profile.id for each in moments[2].catalogue.profiles] == ["shop"]


def test_a_static_plan_and_a_node_without_any_plan_are_read_back_too(
    web, plan_of, look_of, write, read_all
):
    static = plan_of(web, steered=False)

    _, moments = read_all(write(look_of(None, 0), look_of(static, 1)))

    assert [moment.snapshot.plan for moment in moments] == [None, static]


def test_a_plan_is_written_again_only_when_it_is_another(web, plan_of, look_of, write, lines_of):
    one, two = plan_of(web), plan_of(web, make_pod("db", cgroups=("pods/db/",)))

    path = write(look_of(one, 0), look_of(one, 1), look_of(two, 2), look_of(two, 3))

    kinds = [line["kind"] for line in lines_of(path)]
    assert kinds == ["recording", "profiles", "plan", "look", "look", "plan", "look", "look", "end"]


def test_only_the_owner_may_read_it(plan_of, look_of, write):
    path = write(look_of(plan_of(), 0))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_annotations_of_others_and_secrets_of_plugins_are_left_out(
    web, plan_of, look_of, write, read_all
):
    ours = {"temper.codes/workload-profile": "shop"}
    pod = evolve(web, annotations={**ours, "vault.example/inject": "hunter2-annotated"})
    tables = {
        "webhook": {
            "url": "https://user:hunter2-login@hooks.example/",
            "api_token": "hunter2-token",
            "retries": 3,
            "tls": {"private_key": "hunter2-key", "verify": True},
        }
    }

    path = write(look_of(plan_of(pod), 0), settings=Settings(plugins=tables))

    head, [moment] = read_all(path)
    [assignment] = moment.snapshot.plan.assignments
    assert "hunter2" not in path.read_text()
    assert assignment.pod.annotations == ours
    assert head.settings.plugins == {"webhook": {"retries": 3, "tls": {"verify": True}}}
    assert set(head.left_out) == {
        "settings.plugins.webhook.url",
        "settings.plugins.webhook.api_token",
        "settings.plugins.webhook.tls.private_key",
    }


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_without_an_end_spoils_no_recording(plan_of, look_of, write, read_all, number):
    thread = make_thread(cpu_used=number)

    _, [moment] = read_all(write(look_of(plan_of(), 0, thread)))

    assert moment.snapshot.threads[0].cpu_used == 0.0


def test_a_file_that_is_there_is_left_as_it_is(tmp_path):
    path = tmp_path / "node.rec"
    path.write_text("precious")

    with pytest.raises(InputError, match=r"node\.rec: is there already"):
        RecordingWriter(path, 1 << 20, source="agent")

    assert path.read_text() == "precious"


def test_no_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(InputError):
        RecordingWriter(tmp_path / "link", 1 << 20, source="agent")

    assert not (tmp_path / "elsewhere").exists()


def test_a_name_without_a_folder_is_the_users_mistake(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        RecordingWriter(tmp_path / "absent" / "node.rec", 1 << 20, source="agent")


@pytest.mark.parametrize("name", ["node.rec", "node.rec.gz"])
def test_a_recording_never_grows_beyond_its_size_and_stays_whole(
    plan_of, look_of, tmp_path, catalogue, read_all, name
):
    path, plan, most = tmp_path / name, plan_of(), 40_000
    threads = [make_thread(f"w{tid}", tid=tid) for tid in range(40)]
    writer = RecordingWriter(path, most, source="agent")

    said, number = "", 0
    while not said:
        document = recording_document(look_of(plan, number, *threads), Settings(), catalogue)
        said = writer.add(document)
        number += 1
    writer.close(said)

    _, moments = read_all(path)
    assert said == "the file has its full size"
    assert path.stat().st_size <= most
    assert len(moments) == writer.looks == number - 1 > 1


def test_a_size_with_no_room_for_one_look_leaves_no_file(
    web, plan_of, look_of, tmp_path, catalogue
):
    path = tmp_path / "node.rec"
    writer = RecordingWriter(path, 2_000, source="agent")

    with pytest.raises(InputError, match="--max-bytes has no room for one look"):
        writer.add(recording_document(look_of(plan_of(web), 0), Settings(), catalogue))
    writer.close("")

    assert not path.exists()


def test_a_full_disk_keeps_the_looks_that_there_are(
    web, plan_of, look_of, tmp_path, catalogue, read_all
):
    plan = plan_of(web)
    documents = [recording_document(look_of(plan, n), Settings(), catalogue) for n in range(2)]
    path = tmp_path / "node.rec"
    writer = RecordingWriter(path, 1 << 26, source="agent")
    writer.add(documents[0])

    # The limit on a file's size is met by the kernel in the middle of a write, as a full disk is.
    with limited_file_size(path.stat().st_size + 100):
        with pytest.raises(MachineError, match="1 looks were kept"):
            writer.add(documents[1])
        writer.close("the disk is full")

    _, moments = read_all(path)
    assert [moment.snapshot.at for moment in moments] == [look_of(plan, 0).at]


@pytest.mark.parametrize(
    "change",
    [{"machine": make_machine(4)}, {"settings": Settings(node="another")}],
    ids=["machine", "settings"],
)
def test_another_machine_or_other_settings_end_a_recording(
    plan_of, look_of, tmp_path, catalogue, change
):
    writer = RecordingWriter(tmp_path / "node.rec", 1 << 26, source="agent")
    snapshot = look_of(plan_of(), 0)
    writer.add(recording_document(snapshot, Settings(), catalogue))

    later = evolve(snapshot, machine=change.get("machine", snapshot.machine))
    settings = change.get("settings", Settings())
    said = writer.add(recording_document(later, settings, catalogue))
    writer.close(said)

    assert said == "the settings or the machine have changed"
    assert writer.looks == 1


def test_a_large_node_fits_into_what_may_be_read(plan_of, look_of, write, read_all):
    pods = [
        make_pod(f"pod-{n}", cgroups=(f"pods/{n}/",), containers=(Container("c", f"i/{n}:1"),))
        for n in range(300)
    ]
    plan = plan_of(*pods)
    threads = [make_thread(f"t{tid % 90}", tid=tid, cgroup="pods/1/") for tid in range(3000)]

    path = write(look_of(plan, 0, *threads), name="node.rec.gz")

    _, [moment] = read_all(path)
    assert len(moment.snapshot.threads) == 3000
    assert path.stat().st_size < LARGEST_BYTES / 1000
