import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding

from temper_core import InputError
from temper_plugin_density.overcommit import certificates, material
from temper_plugin_density.overcommit.certificates import ValidityPeriod
from temper_plugin_density.overcommit.material import Authority, Terms
from temper_plugin_density.overcommit.presenting import present
from temper_serving.tls import server_context

NAMES = frozenset({"temper-webhook.temper.svc", "127.0.0.1"})
DAY = timedelta(days=1)
TERMS = Terms(NAMES, certificate_life=30 * DAY, overlap=DAY)
START = datetime(2026, 11, 21, tzinfo=UTC)


def authority(now=START, life=300 * DAY):
    key = certificates.make_key()
    return Authority(certificates.make_authority(key, ValidityPeriod(now, now + life)), key)


def bundle_of(*authorities):
    return certificates.written(each.certificate for each in authorities)


def trusting(bundle):
    """A client as strict as Python 3.13's is by itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=bundle.decode())
    return context


def shake_hands(server, client, name):
    """Return the certificate that *client* gets and accepts under *name*."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=answer, args=(server, ours))
    thread.start()
    try:
        with client.wrap_socket(theirs, server_hostname=name) as shaken:
            return shaken.getpeercert(binary_form=True)
    finally:
        thread.join()


def answer(server, connection):
    try:
        server.wrap_socket(connection, server_side=True).close()
    except (ssl.SSLError, OSError):
        connection.close()


def serving(made):
    context = server_context()
    present(context, made)
    return context


@pytest.fixture
def now():
    return datetime.now(UTC)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_strict_client_takes_the_certificate_under_every_name(now, name):
    signer = authority(now)
    made = material.signed(signer, TERMS, now)

    got = shake_hands(serving(made), trusting(bundle_of(signer)), name)

    assert got == made.certificate.public_bytes(Encoding.DER)


def test_another_name_is_refused(now):
    signer = authority(now)
    made = material.signed(signer, TERMS, now)

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(serving(made), trusting(bundle_of(signer)), "other.temper.svc")


def test_another_authority_is_refused(now):
    made = material.signed(authority(now), TERMS, now)

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(serving(made), trusting(bundle_of(authority(now))), "127.0.0.1")


def test_a_context_that_serves_already_takes_up_the_next_certificate(now):
    signer = authority(now)
    context = serving(material.signed(signer, TERMS, now))
    client = trusting(bundle_of(signer))
    before = shake_hands(context, client, "127.0.0.1")

    present(context, material.signed(signer, TERMS, now))

    assert shake_hands(context, client, "127.0.0.1") != before


def test_the_certificate_names_the_identifier_that_its_authority_carries():
    key = certificates.make_key()
    own = certificates.make_authority(key, ValidityPeriod(START, START + DAY))
    carried = own.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value

    made = material.signed(Authority(own, key), TERMS, START).certificate

    named = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert named.key_identifier == carried.digest


@pytest.fixture
def signer():
    return authority()


@pytest.fixture
def first(signer):
    return material.signed(signer, TERMS, START)


def test_nothing_is_signed_before_two_thirds_of_its_life(signer, first):
    at = START + 20 * DAY

    assert not material.must_sign(first, signer, TERMS, at - timedelta(seconds=1))
    assert material.must_sign(first, signer, TERMS, at)


def test_an_expired_certificate_is_replaced_at_once(signer, first):
    assert material.must_sign(first, signer, TERMS, START + 40 * DAY)


def test_a_certificate_of_the_future_is_replaced_as_clocks_go_wrong(signer, first):
    assert material.must_sign(first, signer, TERMS, START - DAY)


def test_a_name_that_is_lacking_needs_another_certificate(signer, first):
    terms = evolve(TERMS, names=frozenset({"new.temper.svc"}))

    assert material.must_sign(first, signer, terms, START)


def test_another_authority_signs_once_it_is_older_than_the_overlap(first):
    begins = START + 5 * DAY
    young = authority(begins)

    assert not material.must_sign(first, young, TERMS, begins + DAY - timedelta(seconds=1))
    assert material.must_sign(first, young, TERMS, begins + DAY)


def test_another_authority_signs_at_once_where_the_certificate_is_refused(first):
    assert material.must_sign(first, authority(START), TERMS, START, is_refused=True)


def test_no_certificate_outlives_its_authority(signer):
    longest = material.signed(signer, evolve(TERMS, certificate_life=1000 * DAY), START)

    assert longest.certificate.not_valid_after_utc == signer.certificate.not_valid_after_utc


def test_a_certificate_is_trusted_by_its_authority_and_by_no_other(signer, first):
    assert first.is_trusted_by(bundle_of(authority(), signer))
    assert not first.is_trusted_by(bundle_of(authority()))
    assert not first.is_trusted_by(b"rubbish")
    assert not first.is_trusted_by(b"")


def entries(signer):
    return {
        "ca.crt": certificates.written([signer.certificate]),
        "ca.key": certificates.written_key(signer.key),
    }


def test_an_authority_is_read_as_it_was_written(signer):
    assert material.read_authority(entries(signer)) == signer


def test_the_first_of_several_authorities_signs(signer):
    together = bundle_of(signer, authority())

    assert material.read_authority({**entries(signer), "ca.crt": together}) == signer


def test_a_certificate_from_elsewhere_is_presented_with_its_chain(now):
    signer = authority(now)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    span = ValidityPeriod(now, now + DAY)
    own = certificates.make_certificate(key, NAMES, span, signer.certificate, signer.key)
    chain = certificates.written([own, signer.certificate])

    given = material.read_given({"tls.crt": chain, "tls.key": certificates.written_key(key)})

    assert given.chain == (own, signer.certificate)
    assert given.is_trusted_by(bundle_of(signer))
    assert shake_hands(serving(given), trusting(bundle_of(signer)), "127.0.0.1")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"ca.crt": b"rubbish"}, "ca.crt: holds no certificate"),
        ({"ca.crt": b""}, "ca.crt: holds no certificate"),
        ({"ca.key": b""}, "ca.key: holds no private key"),
        ({"ca.key": "other"}, "ca.key: is not the key of the first of ca.crt"),
    ],
)
def test_a_malformed_authority_is_named(signer, change, problem):
    changed = {
        key: entries(authority())[key] if value == "other" else value
        for key, value in change.items()
    }

    with pytest.raises(InputError) as caught:
        material.read_authority({**entries(signer), **changed})

    assert str(caught.value) == problem


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tls.crt": b""}, "tls.crt: holds no certificate"),
        ({"tls.key": b"rubbish"}, "tls.key: holds no private key"),
        ({"tls.key": "other"}, "tls.key: is not the key of tls.crt"),
    ],
)
def test_a_malformed_certificate_from_elsewhere_is_named(first, signer, change, problem):
    other = certificates.written_key(material.signed(signer, TERMS, START).key)
    changed = {key: other if value == "other" else value for key, value in change.items()}
    good = {
        "tls.crt": certificates.written(first.chain),
        "tls.key": certificates.written_key(first.key),
    }

    with pytest.raises(InputError) as caught:
        material.read_given({**good, **changed})

    assert str(caught.value) == problem


def test_no_key_is_shown(first, signer):
    shown = f"{first!r} {signer!r}"

    assert "key" not in shown.replace("public_key", "")
