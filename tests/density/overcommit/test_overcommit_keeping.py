import base64
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import MachineError
from temper_kube.failures import ConflictError
from temper_plugin_density.overcommit import certificates, material, trust
from temper_plugin_density.overcommit.cluster import Configured, StoredSecret
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.material import Terms

DAY = timedelta(days=1)
TERMS = Terms(frozenset({"webhook"}), 30 * DAY, 300 * DAY, DAY)
START = datetime(2026, 11, 21, tzinfo=UTC)


class Memory:
    """The Secret and the configuration in memory, versioned as the API server does it."""

    def __init__(self):
        self.held = None
        self.configured = Configured({"overcommit": b""}, "1")
        self.written = []
        self.forbidden = set()
        self.meanwhile = None
        self.now = START

    def _called(self, what):
        if what in self.forbidden:
            raise MachineError(f"{what} is forbidden")
        if what not in ("secret", "configuration"):
            self.written.append(what)
            if self.meanwhile:
                meanwhile, self.meanwhile = self.meanwhile, None
                meanwhile()

    def secret(self):
        self._called("secret")
        return self.held

    def create_secret(self, data):
        self._called("create_secret")
        if self.held is not None:
            raise ConflictError("already exists")
        self.held = StoredSecret(dict(data), "1")

    def update_secret(self, seen, data):
        self._called("update_secret")
        if self.held is None or seen.version != self.held.version:
            raise ConflictError("has been modified")
        self.held = StoredSecret({**seen.data, **data}, str(int(seen.version) + 1))

    def configuration(self):
        self._called("configuration")
        return self.configured

    def set_bundles(self, seen, bundles):
        self._called("set_bundles")
        if seen.version != self.configured.version:
            raise ConflictError("has been modified")
        together = {**seen.bundles, **bundles}
        self.configured = Configured(together, str(int(seen.version) + 1))

    def keeper(self):
        return CertificateKeeper(self, TERMS, lambda: self.now)

    def kept(self):
        return material.read(self.held.data)

    def trusts(self, made):
        issuers = [
            each for each in made.authorities if certificates.is_signed_by(made.certificate, each)
        ]
        wanted = frozenset(map(certificates.fingerprint, issuers))
        bundles = self.configured.bundles.values()
        return bool(wanted) and all(wanted & trust.fingerprints(each) for each in bundles)


@pytest.fixture
def memory():
    return Memory()


def test_the_first_look_makes_all_of_it(memory):
    keeper = memory.keeper()

    keeper.check()

    assert memory.kept() == keeper.material
    assert memory.trusts(keeper.material)
    assert keeper.is_trusted
    assert memory.written == ["create_secret", "set_bundles"]


def test_further_looks_write_nothing(memory):
    keeper = memory.keeper()
    keeper.check()
    memory.written.clear()

    keeper.check()
    memory.keeper().check()

    assert memory.written == []


def test_of_two_that_start_at_once_the_second_takes_what_the_first_made(memory):
    first, second = memory.keeper(), memory.keeper()
    memory.meanwhile = first.check

    second.check()

    assert second.material == first.material == memory.kept()


def test_a_secret_that_somebody_made_empty_is_filled(memory):
    memory.held = StoredSecret({}, "7")

    memory.keeper().check()

    assert memory.kept()
    assert memory.written[0] == "update_secret"


def test_what_else_is_in_the_secret_stays(memory):
    memory.held = StoredSecret({"other": b"x"}, "7")

    memory.keeper().check()

    assert memory.held.data["other"] == b"x"


def test_a_deleted_secret_is_written_as_it_was(memory):
    keeper = memory.keeper()
    keeper.check()
    before = memory.held.data

    memory.held = None
    keeper.check()

    assert memory.held.data == before


def test_rubbish_is_replaced_by_what_is_served(memory):
    keeper = memory.keeper()
    keeper.check()
    before = memory.held.data

    memory.held = StoredSecret({**before, "tls.key": b"rubbish"}, "9")
    keeper.check()

    assert memory.held.data == before


def test_rubbish_at_start_begins_anew_and_what_others_serve_stays_trusted(memory):
    running = memory.keeper()
    running.check()
    served = running.material
    memory.held = StoredSecret({"ca.crt": b"rubbish"}, "9")

    starting = memory.keeper()
    starting.check()

    assert starting.material.newest != served.newest
    assert memory.trusts(served)
    assert memory.trusts(starting.material)
    running.check()
    assert running.material == starting.material


def test_one_replica_renews_and_the_other_takes_it_up(memory):
    first, second = memory.keeper(), memory.keeper()
    for keeper in (first, second):
        keeper.check()
    before = first.material

    memory.now += 20 * DAY
    for keeper in (first, second):
        keeper.check()

    assert first.material == second.material != before


def test_whatever_is_served_is_trusted_through_a_whole_life_of_authorities(memory):
    first, second = memory.keeper(), memory.keeper()
    authorities, served = set(), set()

    for hour in range(0, 700 * 24, 23):
        memory.now = START + timedelta(hours=hour)
        for keeper in (first, second):
            before = keeper.material
            keeper.check()
            for made in filter(None, (before, keeper.material)):
                assert memory.trusts(made)
            authorities.add(keeper.material.newest)
            served.add(keeper.material.certificate)
            assert certificates.is_valid(keeper.material.certificate, memory.now)

    assert len(authorities) == 4
    assert len(served) > 30


def test_a_young_authority_is_told_before_it_signs(memory):
    keeper = memory.keeper()
    keeper.check()
    memory.now = START + 200 * DAY
    keeper.check()
    old = keeper.material.certificate
    assert len(trust.fingerprints(memory.configured.bundles["overcommit"])) == 2

    memory.forbidden = {"configuration"}
    memory.now += 2 * DAY
    with pytest.raises(MachineError, match="configuration is forbidden"):
        keeper.check()
    assert keeper.material.certificate == old

    memory.forbidden = set()
    keeper.check()
    assert keeper.material.is_of_newest


def test_every_webhook_of_the_configuration_is_told(memory):
    memory.configured = Configured({"a": b"", "b": b"rubbish"}, "1")

    keeper = memory.keeper()
    keeper.check()

    assert memory.trusts(keeper.material)


def test_a_configuration_that_is_not_there_is_waited_for(memory):
    there, memory.configured = memory.configured, None
    keeper = memory.keeper()

    with pytest.raises(MachineError, match="no webhook configuration"):
        keeper.check()
    assert keeper.material == memory.kept()
    assert not keeper.is_trusted

    memory.configured = there
    keeper.check()
    assert keeper.is_trusted


def test_without_the_secret_a_running_webhook_renews_by_itself(memory):
    keeper = memory.keeper()
    keeper.check()
    before = keeper.material

    memory.forbidden, memory.now = {"secret"}, START + 25 * DAY
    with pytest.raises(MachineError, match="secret is forbidden"):
        keeper.check()

    assert keeper.material.certificate != before.certificate
    assert keeper.material.newest == before.newest
    memory.forbidden = set()
    keeper.check()
    assert memory.kept() == keeper.material


def test_a_secret_that_cannot_be_written_keeps_nobody_from_renewing_once(memory):
    keeper = memory.keeper()
    keeper.check()
    before = keeper.material

    memory.forbidden, memory.now = {"update_secret"}, START + 25 * DAY
    renewed = []
    for _ in range(3):
        with pytest.raises(MachineError, match="update_secret is forbidden"):
            keeper.check()
        renewed.append(keeper.material.certificate)

    assert before.certificate not in renewed
    assert len(set(renewed)) == 1
    memory.forbidden = set()
    keeper.check()
    assert memory.kept() == keeper.material
    assert keeper.material.certificate == renewed[0]


def test_without_a_secret_that_may_be_made_replicas_go_on_trusted(memory):
    replicas = [memory.keeper(), memory.keeper()]
    for keeper in replicas:
        keeper.check()
    memory.held, memory.forbidden = None, {"create_secret"}

    for day in range(400):
        memory.now = START + day * DAY
        for keeper in replicas:
            with pytest.raises(MachineError, match="create_secret is forbidden"):
                keeper.check()
            assert certificates.is_valid(keeper.material.certificate, memory.now)
            assert memory.trusts(keeper.material)


def test_without_anything_to_serve_a_failure_leaves_nothing(memory):
    memory.forbidden = {"secret"}
    keeper = memory.keeper()

    with pytest.raises(MachineError):
        keeper.check()

    assert keeper.material is None


def test_replicas_that_are_always_first_are_told_of(memory):
    keeper = memory.keeper()

    def somebody_else():
        version = "1" if memory.held is None else str(int(memory.held.version) + 1)
        memory.held = StoredSecret({"tls.crt": b"rubbish"}, version)
        memory.meanwhile = somebody_else

    memory.meanwhile = somebody_else

    with pytest.raises(MachineError, match="other replicas wrote first 5 times"):
        keeper.check()


def test_terms_that_change_take_effect_with_the_next_certificate(memory):
    memory.keeper().check()
    before = memory.kept()

    longer = CertificateKeeper(
        memory, evolve(TERMS, names=TERMS.names | {"more"}), lambda: memory.now
    )
    longer.check()

    assert certificates.names_of(longer.material.certificate) == {"webhook", "more"}
    assert longer.material.newest == before.newest


GOOD = material.made(TERMS, START).written()


@st.composite
def damaged(draw, key):
    """One entry of a Secret with other bytes: still base64, often a certificate at first sight."""
    first, *lines, last = GOOD[key].decode().strip().split("\n")
    data = bytearray(base64.b64decode("".join(lines)))
    for _ in range(draw(st.integers(1, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return "\n".join([first, base64.b64encode(data).decode(), last, ""]).encode()


@given(st.sampled_from(sorted(GOOD)).flatmap(lambda key: st.tuples(st.just(key), damaged(key))))
@settings(max_examples=300)
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_whatever_became_of_the_secret_a_webhook_that_starts_serves(changed):
    memory = Memory()
    memory.held = StoredSecret({**GOOD, changed[0]: changed[1]}, "1")
    keeper = memory.keeper()

    keeper.check()

    assert memory.trusts(keeper.material)


@given(damaged("ca.crt"))
@settings(max_examples=300)
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_whatever_somebody_put_into_the_bundle_our_authority_is_in_it_then(found):
    memory = Memory()
    memory.configured = Configured({"overcommit": found}, "1")
    keeper = memory.keeper()

    keeper.check()

    assert memory.trusts(keeper.material)
