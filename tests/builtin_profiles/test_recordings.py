from pathlib import Path

import pytest

from temper_plugin_trainer.thread_tables import read_thread_table, thread_table_text

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted((ROOT / "plugins/builtin_profiles/recordings").glob("*.json"))
LARGEST_BYTES = 60_000


@pytest.fixture(params=RECORDINGS, ids=lambda path: path.stem)
def path(request):
    return request.param


def test_there_are_recordings():
    assert RECORDINGS


def test_a_recording_is_small_and_written_as_the_recorder_writes_it(path):
    text = path.read_text()

    assert thread_table_text(read_thread_table(path)) == text
    assert len(text) < LARGEST_BYTES


def test_a_recording_is_called_after_program_and_version(path):
    table = read_thread_table(path)

    assert path.stem.startswith(f"{table.program}-{table.version}")


def test_the_command_that_repeats_a_recording_is_there(path):
    script = read_thread_table(path).command.split()[0]

    assert (ROOT / script).is_file()


def test_a_recording_is_of_a_program_at_work(path):
    table = read_thread_table(path)

    assert table.seconds >= 9
    assert table.cpus_used > 0.1


def test_most_of_the_cpu_time_was_seen(path):
    table = read_thread_table(path)

    assert table.unseen_cpus <= 0.1 * (table.cpus_used + table.unseen_cpus)


def test_a_recording_tells_nothing_of_where_it_was_made(path):
    text = path.read_text()

    for place in ("/home/", "/root/", "/tmp/", "/usr/", "/var/"):
        assert place not in text
