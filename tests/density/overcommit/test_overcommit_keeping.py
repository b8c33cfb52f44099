import base64
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core import MachineError
from temper_plugin_density.overcommit import certificates, material
from temper_plugin_density.overcommit.certificates import ValidityPeriod
from temper_plugin_density.overcommit.keeping import CertificateKeeper
from temper_plugin_density.overcommit.material import Authority, Terms

DAY = timedelta(days=1)
TERMS = Terms(frozenset({"webhook"}), 30 * DAY, DAY)
START = datetime(2026, 11, 21, tzinfo=UTC)


def authority(now=START, life=3650 * DAY):
    key = certificates.make_key()
    return Authority(certificates.make_authority(key, ValidityPeriod(now, now + life)), key)


def entries(signer):
    return {
        "ca.crt": certificates.written([signer.certificate]),
        "ca.key": certificates.written_key(signer.key),
    }


def bundle_of(*authorities):
    return certificates.written(each.certificate for each in authorities)


class Memory:
    """The Secret and the configuration in memory."""

    def __init__(self, signer):
        self.signer = signer
        self.held = entries(signer)
        self.trusted = {"overcommit": bundle_of(signer)}
        self.forbidden = set()
        self.now = START

    def secret(self):
        return self._unless_forbidden("secret", self.held)

    def bundles(self):
        return self._unless_forbidden("configuration", self.trusted)

    def _unless_forbidden(self, what, answer):
        if what in self.forbidden:
            raise MachineError(f"{what} is forbidden")
        return answer

    def keeper(self):
        return CertificateKeeper(self, TERMS, lambda: self.now)


@pytest.fixture
def memory():
    return Memory(authority())


def test_the_first_check_signs_a_certificate_that_is_trusted(memory):
    keeper = memory.keeper()

    keeper.check()

    assert keeper.is_trusted
    assert keeper.authority == memory.signer.certificate
    assert certificates.names_of(keeper.material.certificate) == TERMS.names


def test_further_checks_keep_the_certificate(memory):
    keeper = memory.keeper()
    keeper.check()
    before = keeper.material

    memory.now += 19 * DAY
    keeper.check()

    assert keeper.material == before


def test_a_valid_and_trusted_certificate_is_served_for_years(memory):
    keeper = memory.keeper()
    served = set()

    for day in range(0, 3600, 3):
        memory.now = START + day * DAY
        keeper.check()
        assert keeper.is_trusted
        assert certificates.is_valid(keeper.material.certificate, memory.now)
        served.add(keeper.material.certificate)

    assert 150 < len(served) < 200


@pytest.mark.parametrize("now", [START + 3651 * DAY, datetime.max.replace(tzinfo=UTC)])
def test_an_authority_that_has_expired_is_a_problem_until_another_one_signs(memory, now):
    keeper = memory.keeper()
    keeper.check()
    before, memory.now = keeper.material, now

    with pytest.raises(MachineError, match=r"ca\.crt: is valid until 2036-11-18"):
        keeper.check()
    assert not keeper.is_trusted
    assert keeper.material == before

    young = authority(START)
    memory.held, memory.now = entries(young), START + DAY
    memory.trusted = {"overcommit": bundle_of(young)}
    keeper.check()
    assert keeper.is_trusted


def test_a_certificate_from_elsewhere_that_has_expired_is_not_trusted(memory):
    given = material.signed(memory.signer, TERMS, START)
    memory.held = {
        "tls.crt": certificates.written(given.chain),
        "tls.key": certificates.written_key(given.key),
    }
    keeper = memory.keeper()
    keeper.check()
    assert keeper.is_trusted
    memory.now = START + TERMS.certificate_life

    with pytest.raises(MachineError, match="served was valid until 2026-12-21"):
        keeper.check()

    assert not keeper.is_trusted


def test_a_certificate_from_elsewhere_that_is_not_yet_valid_is_not_trusted(memory):
    given = material.signed(memory.signer, TERMS, START + DAY)
    memory.held = {
        "tls.crt": certificates.written(given.chain),
        "tls.key": certificates.written_key(given.key),
    }
    keeper = memory.keeper()

    with pytest.raises(MachineError, match="served is valid only from"):
        keeper.check()

    assert not keeper.is_trusted


def test_another_authority_that_is_trusted_beside_the_first_signs_after_the_overlap(memory):
    keeper = memory.keeper()
    keeper.check()
    before, young = keeper.material, authority(START + DAY)

    memory.held, memory.now = entries(young), START + DAY
    memory.trusted = {"overcommit": bundle_of(young, memory.signer)}
    keeper.check()
    assert keeper.material == before
    assert keeper.is_trusted

    memory.now += DAY
    keeper.check()
    assert keeper.material != before
    assert keeper.is_trusted
    assert keeper.authority == young.certificate


def test_another_authority_that_alone_is_trusted_signs_at_once(memory):
    keeper = memory.keeper()
    keeper.check()
    young = authority()
    memory.held, memory.trusted = entries(young), {"overcommit": bundle_of(young)}

    keeper.check()

    assert keeper.is_trusted


def test_a_certificate_from_elsewhere_is_presented_and_followed(memory):
    keeper = memory.keeper()
    for _ in range(2):
        given = material.signed(memory.signer, TERMS, START)
        memory.held = {
            "tls.crt": certificates.written(given.chain),
            "tls.key": certificates.written_key(given.key),
        }

        keeper.check()

        assert keeper.material == given
        assert keeper.is_trusted
        assert keeper.authority is None


def test_an_authority_that_no_webhook_trusts_is_a_problem_and_not_ready(memory):
    memory.trusted = {"a": bundle_of(memory.signer), "b": b"rubbish"}
    keeper = memory.keeper()

    with pytest.raises(MachineError, match=r"does not trust what is served: b$"):
        keeper.check()

    assert keeper.material is not None
    assert not keeper.is_trusted


def test_a_bundle_that_is_taken_away_is_noticed(memory):
    keeper = memory.keeper()
    keeper.check()
    memory.trusted = {"overcommit": b""}

    with pytest.raises(MachineError, match="does not trust"):
        keeper.check()

    assert not keeper.is_trusted


def test_a_configuration_that_is_not_there_is_waited_for(memory):
    there, memory.trusted = memory.trusted, None
    keeper = memory.keeper()

    with pytest.raises(MachineError, match="no webhook configuration"):
        keeper.check()
    assert not keeper.is_trusted

    memory.trusted = there
    keeper.check()
    assert keeper.is_trusted


def test_a_configuration_without_a_webhook_trusts_nothing(memory):
    memory.trusted = {}
    keeper = memory.keeper()

    with pytest.raises(MachineError, match="it has no webhook"):
        keeper.check()

    assert not keeper.is_trusted


@pytest.mark.parametrize("change", ["forbidden", "deleted", "rubbish"])
def test_without_the_secret_a_running_webhook_goes_on_and_renews(memory, change):
    keeper = memory.keeper()
    keeper.check()
    before = keeper.material
    if change == "forbidden":
        memory.forbidden = {"secret"}
    memory.held = {"deleted": None, "rubbish": {**memory.held, "ca.crt": b"x"}}.get(change)

    memory.now += 25 * DAY
    with pytest.raises(MachineError, match=r"secret is forbidden|no Secret|ca\.crt: holds no"):
        keeper.check()

    assert keeper.material.certificate != before.certificate
    assert keeper.is_trusted


def test_what_cannot_be_asked_does_not_make_it_unready(memory):
    keeper = memory.keeper()
    keeper.check()
    memory.forbidden = {"configuration"}

    with pytest.raises(MachineError, match="configuration is forbidden"):
        keeper.check()

    assert keeper.is_trusted


@pytest.mark.parametrize("held", [None, {}, {"ca.key": b"x"}, {"tls.crt": b"x"}])
def test_without_anything_to_serve_a_failure_leaves_nothing(memory, held):
    memory.held = held
    keeper = memory.keeper()

    with pytest.raises(MachineError):
        keeper.check()

    assert keeper.material is None
    assert not keeper.is_trusted


SIGNER = authority()
GOOD = entries(SIGNER)


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
def test_no_damage_of_the_secret_stops_a_running_webhook(changed):
    memory = Memory(SIGNER)
    keeper = memory.keeper()
    keeper.check()
    memory.held = {**GOOD, changed[0]: changed[1]}

    with suppress(MachineError):
        keeper.check()

    assert keeper.is_trusted


@given(damaged("ca.crt"))
@settings(max_examples=300)
@pytest.mark.filterwarnings("ignore:Parsed a serial number")
def test_no_bundle_breaks_the_check(found):
    memory = Memory(SIGNER)
    memory.trusted = {"overcommit": found}
    keeper = memory.keeper()

    with suppress(MachineError):
        keeper.check()

    assert keeper.is_trusted == keeper.material.is_trusted_by(found)
