import json
from unittest.mock import call, patch

import pytest

from bench.ladder.arms import ARMS
from bench.ladder.servers import (
    NOBODY,
    SERVERS,
    Installed,
    Task,
    redis_answers,
    sysbench_answers,
)
from temper_plugin_builtin_profiles.packs import read_packs

PRINTED = """
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       0.417 |****************************************** 2
       1.044 |                                         1
     153.021 |******                                   1

Latency (ms):
         min:                                    0.42
         avg:                                    8.05
         max:                                  154.12
"""


def make_postgres(title):
    return Task("postgres", leads=True, is_child=True, title=title)


def test_sysbench_tells_each_request_by_its_bucket_and_the_longest_exactly():
    answers = sysbench_answers(PRINTED)

    assert list(answers.latencies_ms) == [0.417, 0.417, 1.044, 154.12]


def test_sysbench_cannot_tell_what_was_not_answered_nor_how_late_it_was():
    answers = sysbench_answers(PRINTED)

    assert (answers.unanswered, answers.client_late_ms) == (None, None)


def test_the_client_of_redis_tells_nanoseconds():
    seen = {"latencies_ns": [1_500_000], "unanswered": 2, "client_late_ns": 250_000}

    answers = redis_answers(json.dumps(seen))

    assert list(answers.latencies_ms) == [1.5]
    assert (answers.unanswered, answers.client_late_ms) == (2, 0.25)


@pytest.mark.parametrize("name", [name for name, server in SERVERS.items() if server.pack])
def test_the_pack_of_a_server_ships_and_has_an_arm(name):
    pack = SERVERS[name].pack

    assert pack in {profile.id for profile in read_packs()}
    assert ARMS[f"{name}-pack"].pack == pack


@pytest.mark.parametrize(
    ("server", "task", "serves"),
    [
        ("redis", Task("redis-server", leads=True), True),
        ("redis", Task("redis-server", leads=True, is_child=True), False),
        ("redis", Task("io_thd_1", leads=False), True),
        ("redis", Task("bio_aof_fsync", leads=False), False),
        ("mysql", Task("connection-1", leads=False), True),
        ("mysql", Task("mysqld", leads=True), False),
        ("mysql", Task("ib_log_writer", leads=False), False),
        ("postgresql", make_postgres("postgres: bench postgres [local] UPDATE"), True),
        ("postgresql", make_postgres("postgres: bench postgres [local] idle"), True),
        ("postgresql", make_postgres("postgres: autovacuum worker postgres"), False),
        ("postgresql", make_postgres("postgres: walwriter "), False),
        ("postgresql", Task("postgres", leads=True, title="/usr/bin/postgres -D data"), False),
    ],
)
def test_requests_wait_for_some_threads(server, task, serves):
    assert SERVERS[server].is_serving(task) is serves


def test_postgresql_gets_a_copy_of_the_data_that_is_its_own(tmp_path):
    given = tmp_path / "given"
    (given / "base").mkdir(parents=True)
    (given / "base/1").write_text("rows")
    directory = tmp_path / "server"
    directory.mkdir()

    with patch("os.chown") as chown:  # a test that runs as a user may not
        SERVERS["postgresql"].serve(Installed(postgresql_data=given), directory)

    copied = directory / "data/base/1"
    assert copied.read_text() == "rows"
    assert call(copied, NOBODY, NOBODY) in chown.mock_calls
