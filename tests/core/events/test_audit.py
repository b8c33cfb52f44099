import pytest

from temper_core import Requester
from temper_core.events.audit import REPEATED_S, Audit
from temper_core.events.event_log import EventLog

ROOT = Requester("socket", uid=0)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def log():
    return EventLog()


@pytest.fixture
def audit(log, clock):
    return Audit(log, clock)


@pytest.mark.parametrize(
    ("requester", "who"),
    [
        (ROOT, "socket uid 0"),
        (Requester("token", "ops", address="10.0.0.3"), "token ops from 10.0.0.3"),
        (Requester(address="10.0.0.9"), "10.0.0.9"),
    ],
)
def test_a_request_is_recorded_with_who_from_where_and_the_outcome(audit, log, requester, who):
    audit.note("PUT /safe-mode", requester, "done")

    [event] = log.after()
    assert (event.kind, event.subject, event.level) == ("request", "PUT /safe-mode", "info")
    assert (event.requester, event.outcome) == (who, "done")


def test_every_request_that_acts_is_recorded_and_a_refusal_apart(audit, log):
    audit.note("PUT /safe-mode", ROOT, "done")
    audit.note("PUT /safe-mode", ROOT, "done")
    audit.note("PUT /safe-mode", Requester(address="10.0.0.9"), "401 needs the token")

    assert [event.kind for event in log.after()] == ["request", "request", "request_refused"]
    assert log.after()[-1].outcome == "401 needs the token"


def test_a_protected_read_is_recorded_once_a_minute_for_each_who_reads(audit, log, clock):
    for _ in range(3):
        audit.note("GET /recording", ROOT, "done")
        audit.note("GET /recording", Requester("token", "ops"), "done")
        clock.now += REPEATED_S / 2

    assert [event.kind for event in log.after()] == ["capture"] * 4


def test_of_a_series_the_first_is_recorded_and_one_after_a_pause(audit, log, clock):
    for _ in range(10):
        audit.note("PUT /training/runs/a", ROOT, "done", is_series=True)
        clock.now += REPEATED_S / 2
    audit.note("PUT /training/runs/b", ROOT, "done", is_series=True)
    clock.now += REPEATED_S
    audit.note("PUT /training/runs/a", ROOT, "done", is_series=True)

    assert [event.subject[-1] for event in log.after()] == ["a", "b", "a"]
    assert {event.kind for event in log.after()} == {"request"}


def test_each_refusal_of_a_series_is_recorded(audit, log):
    for _ in range(3):
        audit.note("PUT /training/runs/a", ROOT, "400 no report", is_series=True)

    assert [event.kind for event in log.after()] == ["request_refused"] * 3


def test_a_flood_of_refusals_hides_no_request(audit, log):
    audit.note("PUT /safe-mode", ROOT, "done")
    for number in range(5000):
        audit.note("PUT /" + "x" * 10**4 + f"\r\n\0{number}", Requester(address="6.6.6.6"), "401")

    kinds = [event.kind for event in log.after()]
    assert kinds[0] == "request"
    assert len(kinds) < 300
    assert all(event.subject.isprintable() for event in log.after())
