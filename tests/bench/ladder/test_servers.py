import json

import pytest

from bench.ladder.arms import ARMS
from bench.ladder.servers import SERVERS, redis_answers, sysbench_answers
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


@pytest.mark.parametrize("name", SERVERS)
def test_the_pack_of_a_server_ships_and_has_an_arm(name):
    pack = SERVERS[name].pack

    assert pack in {profile.id for profile in read_packs()}
    assert ARMS[f"{name}-pack"].pack == pack


@pytest.mark.parametrize(
    ("server", "comm", "leads", "serves"),
    [
        ("redis", "redis-server", True, True),
        ("redis", "io_thd_1", False, True),
        ("redis", "bio_aof_fsync", False, False),
        ("mysql", "connection-1", False, True),
        ("mysql", "mysqld", True, False),
        ("mysql", "ib_log_writer", False, False),
    ],
)
def test_requests_wait_for_some_threads(server, comm, leads, serves):
    assert SERVERS[server].is_serving(comm, leads) is serves
