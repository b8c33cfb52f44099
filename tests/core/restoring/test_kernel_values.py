"""Values of the kernel's files: recorded before they change, and given back by whoever comes."""

import json
import os
import signal
import subprocess
import sys
import threading

import pytest

from temper_core import KernelValues, MachineError, Restored
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.restoring.changed_values import CHANGED_SINCE, MOST_VALUES
from temper_core.restoring.host_files import Sparing, restore_files
from temper_core.restoring.kernel_values import give_back_values

RECORD = "kernel-values.json"


@pytest.fixture
def limit(tmp_path):
    path = tmp_path / "sys/limit"
    path.parent.mkdir()
    path.write_text("150\n")
    return path


@pytest.fixture
def state(made):
    return InstrumentDirectory(made.state, "power", 1_000_000)


def test_a_value_is_recorded_before_it_changes_and_given_back(state, limit):
    values = KernelValues(state)

    now = values.change(limit, "90")
    values.change(limit, "80")

    assert (now, limit.read_text(), values.changed) == ("90", "80", (limit,))
    assert json.loads((state.path / RECORD).read_text())["values"] == [
        {"path": str(limit), "before": "150", "now": "80"}
    ]
    assert values.give_back(limit)
    assert (limit.read_text(), values.changed) == ("150", ())


def test_the_next_process_gives_back_what_a_crash_has_left(state, limit):
    KernelValues(state).change(limit, "90")

    done = KernelValues(state).take_over()

    assert done == Restored((f"{limit}: 150 again",))
    assert limit.read_text() == "150"


def test_a_crash_between_the_record_and_the_file_gives_the_value_back_too(state, limit):
    state.write(RECORD, json.dumps({"values": [{"path": str(limit), "before": "150"}]}).encode())
    limit.write_text("89")  # the kernel has rounded it

    KernelValues(state).take_over()

    assert limit.read_text() == "150"


KILLED_AFTER_THE_SECOND_WRITE = """
import os, signal, sys
from pathlib import Path
from temper_core import KernelValues
from temper_core.instruments.state_directory import InstrumentDirectory
from temper_core.restoring import kernel_values

values = KernelValues(InstrumentDirectory(Path(sys.argv[1]), "power", 1_000_000))
limit = Path(sys.argv[2])
values.change(limit, "90")
write = kernel_values.write_value

def write_and_die(path, value):
    write(path, value)
    os.kill(os.getpid(), signal.SIGKILL)

kernel_values.write_value = write_and_die
values.change(limit, "80")
"""


def test_a_kill_within_a_second_change_gives_the_first_value_back(made, state, limit):
    program = [sys.executable, "-c", KILLED_AFTER_THE_SECOND_WRITE, str(made.state), str(limit)]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    assert limit.read_text() == "80"

    done = KernelValues(state).take_over()

    assert (done.left, limit.read_text()) == ((), "150")


def test_a_value_that_somebody_else_has_changed_since_stays(state, limit):
    values = KernelValues(state)
    values.change(limit, "90")
    limit.write_text("70")

    done = values.give_back_all()

    assert (limit.read_text(), values.changed) == ("70", ())
    assert [(each.path, each.why) for each in done.left] == [(str(limit), CHANGED_SINCE)]


def test_a_file_that_is_gone_has_nothing_to_give_back(state, limit):
    values = KernelValues(state)
    values.change(limit, "90")
    limit.unlink()

    assert values.give_back_all().left == ()
    assert values.changed == ()


def test_a_file_that_cannot_be_written_keeps_its_record(state, limit):
    values = KernelValues(state)
    values.change(limit, "90")
    limit.unlink()
    limit.symlink_to("elsewhere")
    (limit.parent / "elsewhere").write_text("90")

    done = values.give_back_all()

    assert [each.is_failure for each in done.left] == [True]
    assert values.changed == (limit,)
    assert (limit.parent / "elsewhere").read_text() == "90"


def test_without_a_record_no_value_changes(made, limit):
    full = InstrumentDirectory(made.state, "power", 10)
    values = KernelValues(full)

    with pytest.raises(MachineError, match="do not fit"):
        values.change(limit, "90")

    assert (limit.read_text(), values.changed) == ("150\n", ())


def test_a_change_during_a_restoration_is_undone(made, limit):
    class Restoring(InstrumentDirectory):
        """Refuses the second record, as a restoration that begins in between does."""

        writes = 0

        def write(self, name, content):
            self.writes += 1
            if self.writes == 2:
                raise MachineError("a restoration is active: nothing is written on this host")
            return super().write(name, content)

    values = KernelValues(Restoring(made.state, "power", 1_000_000))

    with pytest.raises(MachineError, match="a restoration is active"):
        values.change(limit, "90")

    assert limit.read_text() == "150"


class Hanging(InstrumentDirectory):
    """A directory on a disk that hangs in the third write, that of the second change."""

    def __init__(self, *place):
        super().__init__(*place)
        self.writes, self.hangs, self.answers = 0, threading.Event(), threading.Event()

    def write(self, name, content):
        self.writes += 1
        if self.writes == 3:
            self.hangs.set()
            self.answers.wait()
        return super().write(name, content)


def test_values_are_let_go_while_the_disk_hangs_and_stay_so(made, limit):
    disk = Hanging(made.state, "power", 1_000_000)
    values, refused = KernelValues(disk), []
    values.change(limit, "90")

    def change_again():
        with pytest.raises(MachineError, match="let go") as caught:
            values.change(limit, "80")
        refused.append(caught)

    thread = threading.Thread(target=change_again)
    thread.start()
    disk.hangs.wait()
    done = values.let_go()
    during = limit.read_text()
    disk.answers.set()
    thread.join()

    assert (done, during) == (Restored((f"{limit}: 150 again",)), "150")
    assert (len(refused), limit.read_text()) == (1, "150")
    values.give_back_all()
    assert json.loads((disk.path / RECORD).read_text()) == {"values": []}


def test_more_values_than_a_record_holds_are_refused(state, tmp_path):
    values = KernelValues(state)
    paths = [tmp_path / f"limit-{number}" for number in range(MOST_VALUES + 1)]
    for path in paths:
        path.write_text("150")
    for path in paths[:-1]:
        values.change(path, "90")

    with pytest.raises(MachineError, match="64 values"):
        values.change(paths[-1], "90")

    assert paths[-1].read_text() == "150"


@pytest.mark.parametrize("text", ["{", "[]", '{"values": [{"path": "relative", "before": "1"}]}'])
def test_a_damaged_record_is_named_and_stays(state, text):
    state.write(RECORD, text.encode())

    with pytest.raises(MachineError, match=r"the values in it are not given back"):
        KernelValues(state).take_over()
    (left,) = give_back_values(state.path).left

    assert (left.path, left.is_failure) == (str(state.path / RECORD), True)


def test_a_restoration_gives_values_back_and_removes_the_directory(made, state, limit):
    KernelValues(state).change(limit, "90")

    said = restore_files(made.settings, made.roots, Sparing(), is_dry=True)
    before = limit.read_text()
    done = restore_files(made.settings, made.roots, Sparing())

    assert (before, limit.read_text()) == ("90", "150")
    assert said.removed == done.removed
    assert f"{limit}: 150 again" in done.removed
    assert not made.state.exists()


def test_a_restoration_keeps_the_directory_of_a_value_that_it_cannot_give_back(made, state, limit):
    KernelValues(state).change(limit, "90")
    limit.unlink()
    os.mkfifo(limit)

    done = restore_files(made.settings, made.roots, Sparing())

    assert [each.path for each in done.left if each.is_failure] == [str(limit)]
    assert (state.path / RECORD).exists()


def test_a_restoration_tells_of_a_value_that_somebody_else_has_changed(made, state, limit):
    KernelValues(state).change(limit, "90")
    limit.write_text("70")

    done = restore_files(made.settings, made.roots, Sparing())

    assert [(each.path, each.is_kept) for each in done.left] == [(str(limit), True)]
    assert (limit.read_text(), (made.state / "instruments").exists()) == ("70", False)
