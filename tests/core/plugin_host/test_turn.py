"""Turns of a plugin: a flood of clients' calls does not keep the agent's own from it."""

import threading
import time

from temper_core.plugin_host.turn import Turn
from tests.patience import PATIENCE_S

CALL_S = 0.2
CLIENTS = 8


def test_one_turn_is_taken_at_a_time_and_not_waited_for_without_end():
    turn = Turn()

    assert turn.acquire(0.0)
    assert not turn.acquire(0.01)
    turn.release()
    assert turn.acquire(0.01)


def test_an_agent_that_gave_up_waiting_holds_no_client_back():
    turn = Turn()
    turn.acquire()
    assert not turn.acquire(0.01)
    turn.release()

    assert turn.acquire(PATIENCE_S, is_clients=True)


def test_the_agent_comes_after_the_present_call_and_before_all_waiting_clients():
    turn, order, is_over = Turn(), [], threading.Event()

    def be_a_client():
        while not is_over.is_set():
            if turn.acquire(0.05, is_clients=True):
                order.append("client")
                time.sleep(CALL_S)
                turn.release()

    clients = [threading.Thread(target=be_a_client) for _ in range(CLIENTS)]
    for client in clients:
        client.start()
    for _ in range(5):
        while "client" not in order[-1:]:
            time.sleep(0.01)
        before = len(order)
        assert turn.acquire(PATIENCE_S)
        order.append("agent")
        turn.release()
        # The call that ran, and at most one that had begun before the agent waited.
        assert len(order) - before <= 2
    is_over.set()
    for client in clients:
        client.join()
