"""What a killed agent leaves is removed; what is somebody else's stays."""

import errno
import os
import socket

from temper_core.scheduler.engine_process.leftovers import remove_leftovers, remove_stale_socket
from temper_core.settings import Settings

LEFT = ["engine-1.json", "engine-2.json", "engine-2.gate", "engine.pid", "engine-next.pid"]


def test_a_dead_agents_files_go_and_all_others_stay(node):
    for name in (*LEFT, "agent.lock", "agent.sock", "engine.toml"):
        node.put(f"run/{name}", "")

    remove_leftovers(Settings(), node.roots)

    left = {one.name for one in node.roots.run.iterdir()}
    assert left == {"agent.lock", "agent.sock", "engine.toml"}


def test_the_socket_of_an_engine_that_is_gone_goes_and_one_that_answers_stays(node):
    path = node.roots.stats_socket
    path.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        remove_leftovers(Settings(), node.roots)
        assert path.exists()

    remove_leftovers(Settings(), node.roots)

    assert not path.exists()


def test_without_a_free_descriptor_the_socket_stays_and_nothing_is_raised(node, monkeypatch):
    def refuse(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(socket, "socket", refuse)

    remove_stale_socket(node.roots.stats_socket)


def test_a_node_without_any_of_it_is_left_alone(node):
    remove_leftovers(Settings(), node.roots)

    assert not node.roots.run.exists()


def test_what_cannot_be_removed_ends_nothing(node):
    node.put("run/engine-1.json/in", "the way")

    remove_leftovers(Settings(), node.roots)

    assert (node.roots.run / "engine-1.json/in").exists()
