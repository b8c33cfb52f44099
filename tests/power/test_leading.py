"""Which of several replicas leads, by a Lease."""

import copy

import pytest

from temper_core import MachineError
from temper_kube.failures import ConflictError
from temper_plugin_power.controller.leading import (
    DURATION_S,
    MARGIN_S,
    Leader,
    LeaseName,
    NotLeadingError,
)


class Leases:
    """An API server with one Lease, which fails if it is told to."""

    def __init__(self):
        self.lease, self.version, self.is_away = None, 0, False

    def find(self, _path):
        if self.is_away:
            raise MachineError("away")
        return copy.deepcopy(self.lease)

    def post(self, _path, body):
        if self.lease is not None:
            raise ConflictError("it exists")
        self._keep(body)

    def put(self, _path, body):
        if body["metadata"].get("resourceVersion") != self.lease["metadata"]["resourceVersion"]:
            raise ConflictError("it has changed")
        self._keep(body)

    def _keep(self, body):
        self.version += 1
        self.lease = copy.deepcopy(body)
        self.lease["metadata"]["resourceVersion"] = str(self.version)


@pytest.fixture
def leases():
    return Leases()


@pytest.fixture
def clock():
    return [0.0]


@pytest.fixture
def replica(leases, clock):
    def made(name):
        return Leader(leases, LeaseName("temper", "power", name), lambda: clock[0])

    return made


def test_the_first_one_leads_and_the_second_does_not(replica):
    first, second = replica("a"), replica("b")

    first.turn()
    second.turn()

    assert (first.is_leading, second.is_leading) == (True, False)


@pytest.mark.parametrize(("after_s", "leads"), [(DURATION_S, False), (DURATION_S + 1, True)])
def test_a_lease_that_is_not_renewed_is_taken_after_its_duration(replica, clock, after_s, leads):
    first, second = replica("a"), replica("b")
    first.turn()
    second.turn()

    clock[0] = after_s
    second.turn()

    assert second.is_leading is leads
    assert not first.is_leading


def test_a_lease_that_is_renewed_is_kept(replica, clock):
    first, second = replica("a"), replica("b")
    for _ in range(20):
        first.turn()
        second.turn()
        clock[0] += 3

    assert not second.is_leading


@pytest.mark.parametrize(
    ("after_s", "leads"), [(DURATION_S - MARGIN_S - 1, True), (DURATION_S - MARGIN_S, False)]
)
def test_a_leader_without_an_api_server_stops_before_others_begin(
    replica, leases, clock, after_s, leads
):
    first = replica("a")
    first.turn()
    leases.is_away = True

    clock[0] = after_s
    first.turn()

    assert first.is_leading is leads


@pytest.mark.parametrize("after_s", [0, 4, DURATION_S - MARGIN_S - 1])
def test_a_write_may_take_until_others_may_begin(replica, clock, after_s):
    first = replica("a")
    first.turn()
    clock[0] = after_s

    assert first.permit() == DURATION_S - after_s


def test_a_replica_that_does_not_lead_may_not_write(replica, clock):
    first, second = replica("a"), replica("b")
    first.turn()
    second.turn()
    clock[0] = DURATION_S - MARGIN_S

    for each in (first, second):
        with pytest.raises(NotLeadingError):
            each.permit()


def test_a_lease_that_is_given_back_is_taken_at_once(replica):
    first, second = replica("a"), replica("b")
    first.turn()

    first.release()
    second.turn()

    assert second.is_leading
    assert not first.is_leading


def test_two_that_take_an_expired_lease_at_once_do_not_both_lead(replica, leases, clock):
    first, second, third = replica("a"), replica("b"), replica("c")
    first.turn()
    second.turn()
    third.turn()
    clock[0] = DURATION_S + 1
    stale = leases.find("")
    second.turn()
    leases.find = lambda _: stale

    third.turn()

    assert (second.is_leading, third.is_leading) == (True, False)
