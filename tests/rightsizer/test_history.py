"""The history on disk: what is kept, for how long, and what survives."""

import json
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core import MachineError
from temper_plugin_rightsizer.demand.histogram import MOST_BUCKETS
from temper_plugin_rightsizer.demand.interval import IntervalDemand, cpu_histogram
from temper_plugin_rightsizer.demand.window import ContainerKey
from temper_plugin_rightsizer.store import history as history_module
from temper_plugin_rightsizer.store.history import (
    DAY_S,
    DETAIL_S,
    FILE,
    HOUR_S,
    HOURLY_S,
    History,
)
from temper_plugin_rightsizer.store.packing import DamagedError, pack, unpack
from tests.patience import PATIENCE_S
from tests.rightsizer.shapes import learned, window

MIB = 1024 * 1024
NOW = 1_800_000_000 // HOUR_S * HOUR_S
WEB = ContainerKey("uid-web", "shop", "web-0", "app")
DB = ContainerKey("uid-db", "shop", "db-0", "mysql")
INTERVAL_S = 300


def five_minutes(used=0.9):
    return learned([window(("hot", used), idle=0.1)] * 30)


@pytest.fixture
def now():
    return [float(NOW)]


@pytest.fixture
def history(tmp_path, now):
    return History(lambda: tmp_path, 4 * MIB, clock=lambda: now[0])


def fill(history, now, hours, keys=(WEB,)):
    """Add each interval of some hours that end now, as an agent would."""
    end = int(now[0])
    for at in range(end - hours * HOUR_S, end, INTERVAL_S):
        now[0] = float(at + INTERVAL_S)
        history.add(at, INTERVAL_S, {key: five_minutes() for key in keys})
        if at % HOUR_S == 0:
            history.compact()
    history.compact()


def test_what_was_added_is_read_back(history):
    history.add(NOW - 600, INTERVAL_S, {WEB: five_minutes(0.9), DB: five_minutes(0.3)})
    history.add(NOW - 300, INTERVAL_S, {WEB: five_minutes(0.9)})

    demands = history.read(NOW - HOUR_S)

    assert demands[WEB].cpu.seconds == 600
    assert demands[WEB].names == {"hot": 600}
    assert demands[DB] == five_minutes(0.3)


def test_a_container_whose_name_is_no_text_is_kept(history):
    """A cgroup's name may have any bytes, which Python reads as lone surrogates."""
    odd = ContainerKey("unit:\udcff\udc80", "", "\udcff.service", "\x1b[2J")

    history.add(NOW, INTERVAL_S, {odd: five_minutes()})

    assert history.read(NOW) == {odd: five_minutes()}


def test_only_the_window_is_read(history):
    history.add(NOW - 7200, INTERVAL_S, {WEB: five_minutes()})
    history.add(NOW - 600, INTERVAL_S, {WEB: five_minutes()})

    assert history.read(NOW - HOUR_S)[WEB].cpu.seconds == INTERVAL_S


def test_an_interval_that_two_agents_measured_is_their_sum(history):
    for _ in range(2):
        history.add(NOW, INTERVAL_S, {WEB: five_minutes()})

    assert history.read(NOW)[WEB].cpu.seconds == 2 * INTERVAL_S


def test_old_intervals_are_merged_by_the_hour_and_nothing_is_lost(history, now):
    fill(history, now, hours=24)

    intervals = list(history.intervals(0))

    assert sum(demand.cpu.seconds for _, _, demand in intervals) == 24 * HOUR_S
    detailed = [at for _, at, _ in intervals if at >= now[0] - DETAIL_S]
    assert len(detailed) == DETAIL_S // INTERVAL_S
    assert len(intervals) - len(detailed) == 22


def test_old_hours_are_merged_by_the_day_and_a_window_begins_with_a_whole_one(history, now):
    fill(history, now, hours=5 * 24)

    begun = [at for _, at, _ in history.intervals(0)]

    assert begun == sorted(begun, reverse=True)
    days = [at for at in begun if at < now[0] - HOURLY_S - DAY_S]
    assert days
    assert all(later - at == DAY_S for later, at in pairwise(days))
    three_days = history.read(now[0] - 3 * DAY_S)[WEB].cpu.seconds
    assert 3 * DAY_S <= three_days <= 4 * DAY_S


def test_of_intervals_before_the_window_the_peak_of_memory_counts_and_nothing_else(history):
    before, since = five_minutes(), five_minutes()
    before.memory.add(900 * MIB, INTERVAL_S)
    before.counts.oom_kill = 1
    since.memory.add(100 * MIB, INTERVAL_S)
    history.add(NOW - 5 * DAY_S, INTERVAL_S, {WEB: before, DB: before})
    history.add(NOW, INTERVAL_S, {WEB: since})

    demands = history.read(NOW - HOUR_S)

    assert {key for key, demand in demands.items() if demand.seconds} == {WEB}
    assert demands[WEB].peak_bytes() == pytest.approx(900 * MIB, rel=0.05)
    assert demands[WEB].cpu == since.cpu
    assert demands[WEB].counts.oom_kill == 0


def test_only_the_pods_that_are_asked_for_are_read(history):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes(), DB: five_minutes()})

    assert set(history.read(0, {DB.uid, "another"})) == {DB}
    assert history.read(0, set()) == {}


def test_a_history_that_takes_long_to_read_is_read_from_its_newest_end(history, now, monkeypatch):
    fill(history, now, hours=10)
    monkeypatch.setattr(history_module, "READ_S", 0.0)

    assert history.read(0)[WEB].cpu.seconds == INTERVAL_S


def test_what_is_too_old_is_forgotten(history):
    history.keep_s = 24 * HOUR_S
    history.add(NOW - 25 * HOUR_S, INTERVAL_S, {WEB: five_minutes()})
    history.add(NOW - 300, INTERVAL_S, {DB: five_minutes()})

    history.compact()

    assert set(history.read(0)) == {DB}


def test_intervals_of_a_clock_that_was_set_back_are_forgotten(history):
    history.add(NOW + 30 * 24 * HOUR_S, INTERVAL_S, {WEB: five_minutes()})
    history.add(NOW - 300, INTERVAL_S, {DB: five_minutes()})

    history.compact()

    assert set(history.read(0)) == {DB}


def test_the_oldest_hours_go_where_the_bound_is_reached(tmp_path, now):
    bound = 160 * 1024
    history = History(lambda: tmp_path, bound, clock=lambda: now[0])

    fill(history, now, 30, [ContainerKey(f"uid-{n}", "shop", f"web-{n}", "a") for n in range(20)])

    assert (tmp_path / FILE).stat().st_size <= bound
    kept = [at for _, at, _ in history.intervals(0)]
    assert max(kept) == NOW - INTERVAL_S
    assert NOW - 30 * HOUR_S < min(kept) < NOW - HOUR_S


def test_a_tenant_makes_the_history_of_another_no_shorter(tmp_path, now):
    history = History(lambda: tmp_path, 320 * 1024, clock=lambda: now[0])
    fill(history, now, 6)
    now[0] += 3 * HOUR_S

    fill(history, now, 3, [ContainerKey(f"uid-{n}", "evil", f"p-{n}", "c") for n in range(100)])

    hours = {(key.namespace, at // HOUR_S) for key, at, _ in history.intervals(0)}
    ours, theirs = ([h for name, h in hours if name == tenant] for tenant in ("shop", "evil"))
    assert len(ours) == 6
    assert 0 < len(theirs) < 3


def test_an_interval_is_kept_where_the_hour_fills_the_file(tmp_path, now):
    history = History(lambda: tmp_path, 200 * 1024, clock=lambda: now[0])
    for number in range(12):
        keys = [ContainerKey(f"uid-{number}-{n}", "evil", f"p-{n}", "c") for n in range(40)]
        history.add(NOW - HOUR_S + number * INTERVAL_S, 300, {key: five_minutes() for key in keys})

    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})

    assert WEB in history.read(0)


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path):
    mounted = tmp_path / "small"
    mounted.mkdir()
    if os.geteuid() != 0 or not _mount(mounted):
        pytest.skip("a small file system cannot be mounted here")
    try:
        history = History(lambda: mounted, 4 * MIB)
        history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
        with pytest.raises(OSError, match="No space"):
            (mounted / "filler").write_bytes(bytes(2 * MIB))
        many = {ContainerKey(f"u{n}", "a", f"p{n}", "c"): five_minutes() for n in range(2000)}

        with pytest.raises(MachineError, match=r"demand\.sqlite: .*(full|I/O)"):
            history.add(NOW, INTERVAL_S, many)

        assert history.read(0) == {WEB: five_minutes()}
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def _mount(directory):
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("damage", [b"", b"no database at all, " * 400])
def test_a_damaged_file_is_set_aside(history, tmp_path, damage):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(damage or content[:100] + bytes(4000) + content[4100:])

    history.add(NOW, INTERVAL_S, {DB: five_minutes()})

    assert set(history.read(0)) == {DB}
    assert "begun anew" in history.defect
    assert (tmp_path / "demand.damaged").exists()


def test_a_file_of_another_shape_is_set_aside(history, tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(f"CREATE VIEW interval AS {endless}")
        database.execute(f"PRAGMA user_version = {history_module.VERSION}")

    assert history.read(0) == {}
    assert "it is no history of this version" in history.defect
    assert (tmp_path / "demand.damaged").exists()


def test_an_upgrade_and_a_rollback_lose_no_history(history, tmp_path, monkeypatch):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})

    kept = f"demand.v{history_module.VERSION}.sqlite"
    monkeypatch.setattr(history_module, "VERSION", history_module.VERSION + 1)
    history.add(NOW, INTERVAL_S, {DB: five_minutes()})
    assert set(history.read(0)) == {DB}
    assert f"it is kept as {kept}" in history.defect
    monkeypatch.undo()

    assert set(history.read(0)) == {WEB}
    monkeypatch.setattr(history_module, "VERSION", history_module.VERSION + 1)
    assert set(history.read(0)) == {DB}
    assert not (tmp_path / "demand.damaged").exists()


@pytest.mark.parametrize("version", history_module.TAKEN_UP)
def test_a_file_of_a_version_before_is_taken_up(history, tmp_path, version):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(f"PRAGMA user_version = {version}")

    assert set(history.read(0)) == {WEB}
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        (now,) = database.execute("PRAGMA user_version").fetchone()
    assert now == history_module.VERSION


def test_an_interval_without_the_newest_counter_is_read(history, tmp_path):
    """As versions before 4 wrote it, and without the waits of version 5."""
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        (packed,) = database.execute("SELECT demand FROM interval").fetchone()
        length = int.from_bytes(packed[:2], "little")
        names, counts, _ = json.loads(packed[2 : 2 + length])
        head = json.dumps([names, counts[:-1]]).encode()
        older = len(head).to_bytes(2, "little") + head + packed[2 + length :]
        database.execute("UPDATE interval SET demand = ?", (older,))

    assert history.read(0) == {WEB: five_minutes()}


def hour(used=0.5):
    demand = IntervalDemand()
    demand.cpu.add(used, HOUR_S)
    demand.counts.unwatched_s = HOUR_S
    return demand


def test_hours_are_filled_in_before_the_first_interval_and_once(history):
    history.add(NOW - 300, INTERVAL_S, {WEB: five_minutes()})
    begin = (NOW - 300) // HOUR_S * HOUR_S
    hours = [(WEB, begin - n * HOUR_S, hour()) for n in range(4)]

    assert history.fill(HOUR_S, hours) == 3  # the first would end after the interval begins
    assert history.fill(HOUR_S, hours) == 0
    assert history.fill(HOUR_S, [(DB, begin, hour())]) == 1

    demand = history.read(0)[WEB]
    assert demand.cpu.seconds == 3 * HOUR_S + INTERVAL_S
    assert demand.ranks[0].seconds == demand.watched_s == INTERVAL_S


LONG = "\u00e9" * 30_000
"""A name whose bytes as JSON are more than a part of a row can have."""


def test_long_names_of_hours_do_not_keep_others_from_being_merged(history):
    for hours_ago in (90, 91):
        at = NOW - hours_ago * HOUR_S
        filled = IntervalDemand(names={f"{'x' * 60_000}{hours_ago}": 60})
        filled.cpu.add(0.5, HOUR_S)
        history.fill(HOUR_S, [(DB, at, filled)])
        history.add(at, HOUR_S, {WEB: five_minutes()})

    history.compact()

    found = {key: demand for key, _, demand in history.intervals(0)}
    assert found[WEB].cpu.seconds == 2 * five_minutes().cpu.seconds
    assert found[DB].names == {"x" * 64: 120}


def test_names_that_another_agent_kept_are_cut_when_they_are_read():
    packed = pack(IntervalDemand(names={"x" * 30_000: 60, "x" * 30_001: 30}))

    assert unpack(packed).names == {"x" * 64: 90}


def test_a_name_that_is_longer_once_it_is_packed_is_cut():
    """JSON has characters that are not ASCII in two bytes, or in the six of an escape."""
    empty = pack(IntervalDemand())
    (length,) = struct.unpack_from("<H", empty)
    head = json.loads(empty[2 : 2 + length])
    raw = json.dumps([{LONG: 60}, head[1]], ensure_ascii=False).encode()

    demand = unpack(struct.pack("<H", len(raw)) + raw + empty[2 + length :])

    assert unpack(pack(demand)).names == {LONG[:64]: 60}


def test_a_demand_that_fits_no_row_is_forgotten_and_the_others_are_kept(history):
    oversized = IntervalDemand(startup=IntervalDemand())
    for _ in range(8):
        oversized.startup.ranks.append(cpu_histogram())
        oversized.startup.rests.append(cpu_histogram())
        for histogram in (oversized.startup.ranks[-1], oversized.startup.rests[-1]):
            histogram.buckets.update(dict.fromkeys(range(MOST_BUCKETS), 2**60))

    history.add(NOW - 300, INTERVAL_S, {DB: oversized, WEB: five_minutes()})

    assert history.read(NOW - HOUR_S).keys() == {WEB}


def test_what_is_filled_in_keeps_the_bound(tmp_path):
    history = History(lambda: tmp_path, MIB, clock=lambda: float(NOW))
    keys = [ContainerKey(f"uid-{n}", "shop", f"web-{n}", "app") for n in range(250)]
    history.add(NOW - HOUR_S, INTERVAL_S, {key: five_minutes() for key in keys})

    for number in range(1, 48):
        at = NOW - (number + 1) * HOUR_S
        history.fill(HOUR_S, [(key, at, hour()) for key in keys])
        history.compact()

    assert (tmp_path / FILE).stat().st_size <= MIB
    assert len(history.read(NOW - HOUR_S)) == len(keys)


def test_a_file_of_another_version_that_cannot_be_kept_is_told(history, tmp_path, monkeypatch):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    kept = tmp_path / f"demand.v{history_module.VERSION}.sqlite"
    (kept / "something").mkdir(parents=True)
    monkeypatch.setattr(history_module, "VERSION", history_module.VERSION + 1)

    with pytest.raises(MachineError, match="it cannot be kept"):
        history.add(NOW, INTERVAL_S, {DB: five_minutes()})
    assert (tmp_path / FILE).exists()


def test_a_file_with_damaged_texts_is_set_aside(history, tmp_path):
    """sqlite3 raises UnicodeDecodeError for what SQLite says of such a file."""
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(
        content.replace(b"CREATE TABLE container", b"CREATE TAB\xe8\x8a conta\xff")
    )

    history.add(NOW, INTERVAL_S, {DB: five_minutes()})

    assert set(history.read(0)) == {DB}


def test_a_damaged_file_that_cannot_be_set_aside_is_told(history, tmp_path):
    (tmp_path / FILE).write_bytes(b"no database at all, " * 400)
    (tmp_path / "demand.damaged" / "something").mkdir(parents=True)

    with pytest.raises(MachineError, match="stays in the way"):
        history.add(NOW, INTERVAL_S, {WEB: five_minutes()})


def test_a_history_of_a_later_version_is_set_aside(history, tmp_path):
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})

    assert "version 99" in history.defect


def test_a_damaged_interval_does_not_hide_the_others(history, tmp_path):
    history.add(NOW - 300, INTERVAL_S, {WEB: five_minutes(), DB: five_minutes()})
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE interval SET demand = x'ff00ff' WHERE container = 1")
    database.close()

    assert set(history.read(0)) == {DB}
    assert "damaged" in history.defect


@pytest.mark.parametrize("seconds", ["30\0", 0.5, b"300", -1, 2**62])
def test_an_interval_of_no_duration_is_left_out_of_the_hour(history, now, tmp_path, seconds):
    fill(history, now, 1)
    with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        database.execute(
            "UPDATE interval SET seconds = ? WHERE at >= ?", (seconds, NOW - 2 * INTERVAL_S)
        )

    now[0] += DETAIL_S
    history.compact()

    assert history.read(0)[WEB].cpu.seconds == HOUR_S - 2 * INTERVAL_S


@pytest.mark.parametrize("at", ["noon", b"noon", float("-inf")])
def test_a_history_whose_oldest_interval_begins_at_no_time_is_set_aside(history, tmp_path, at):
    history.add(NOW, INTERVAL_S, {WEB: five_minutes()})
    with closing(sqlite3.connect(tmp_path / FILE)) as database, database:
        database.execute("UPDATE interval SET at = ?", (at,))

    with pytest.raises(MachineError, match="begins at no time"):
        history.fill(HOUR_S, [(WEB, NOW - DAY_S, five_minutes())])

    assert (tmp_path / "demand.damaged").exists()


WRITER = """
import pathlib, sys, time
from temper_plugin_rightsizer.store.history import History
from tests.rightsizer.test_history import NOW, WEB, DB, five_minutes
history = History(lambda: pathlib.Path(sys.argv[1]), 4 << 20, clock=lambda: NOW)
for number in range(100_000):
    history.add(NOW - 300 * (number % 40), 300, {WEB: five_minutes(), DB: five_minutes()})
    print(number, flush=True)
"""


@pytest.mark.parametrize("pause_s", [0.0, 0.003, 0.02])
def test_a_kill_in_the_middle_loses_no_finished_interval(history, tmp_path, pause_s):
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    finished = [int(writer.stdout.readline()) for _ in range(3)][-1] + 1
    time.sleep(pause_s)
    writer.send_signal(signal.SIGKILL)
    with writer.stdout as rest:
        finished += len(list(rest))
    writer.wait(PATIENCE_S)

    demands = history.read(0)

    assert not history.defect
    # Each is of both containers or of none: one more may have been written and not printed.
    assert demands[WEB].cpu.seconds == demands[DB].cpu.seconds
    assert demands[WEB].cpu.seconds // INTERVAL_S in (finished, finished + 1)


@given(st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=6))
def test_an_interval_is_read_back_from_its_bytes(windows):
    demand = learned(
        window(*((f"t{number}", used) for number, used in enumerate(uses))) for uses in windows
    )

    assert unpack(pack(demand)) == demand


def test_a_start_up_is_kept_apart_and_older_intervals_tell_when_it_was(history):
    demand = five_minutes(0.3)
    demand.startup = five_minutes(1.0)
    demand.counts.least_bytes = 70 * MIB
    history.add(NOW - 7 * DAY_S, INTERVAL_S, {WEB: demand})
    later = five_minutes(0.3)
    later.counts.least_bytes = 80 * MIB
    history.add(NOW - 600, INTERVAL_S, {WEB: later})

    read = history.read(NOW - HOUR_S)[WEB]

    assert unpack(pack(demand)) == demand
    assert read.startup is None
    assert {at: floor.begins_anew for at, floor in read.floors.items()} == {
        NOW - 7 * DAY_S: True,
        NOW - 600: False,
    }
    assert history.read(NOW - 8 * DAY_S)[WEB].startup.cpu.seconds == INTERVAL_S


def test_a_start_up_in_a_start_up_is_damage():
    demand = five_minutes()
    demand.startup = five_minutes()
    demand.startup.startup = five_minutes()

    with pytest.raises(DamagedError):
        unpack(pack(demand))


@pytest.mark.parametrize("count", ["Infinity", "NaN", "-1", "1" + "0" * 400])
def test_counters_that_nothing_counts_to_are_damage(count):
    packed = pack(IntervalDemand())
    (length,) = struct.unpack_from("<H", packed)
    head = f"[{{}}, [{count}]]".encode()

    with pytest.raises(DamagedError):
        unpack(struct.pack("<H", len(head)) + head + packed[2 + length :])


@given(st.binary(max_size=300))
def test_any_bytes_are_an_interval_or_damaged(packed):
    try:
        unpack(packed)
    except DamagedError:
        return
    raise AssertionError("bytes of no interval were read")


@given(st.data())
def test_a_damaged_interval_is_read_or_refused(data):
    packed = bytearray(pack(five_minutes()))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    try:
        demand = unpack(bytes(packed))
    except DamagedError:
        return
    pack(demand)
