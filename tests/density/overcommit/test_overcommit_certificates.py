import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from attrs import evolve

from temper_core import InputError
from temper_plugin_density.overcommit import certificates, material, trust
from temper_plugin_density.overcommit.material import Terms
from temper_plugin_density.overcommit.presenting import present, server_context

NAMES = frozenset({"temper-webhook.temper.svc", "127.0.0.1"})
DAY = timedelta(days=1)
TERMS = Terms(NAMES, certificate_life=30 * DAY, authority_life=300 * DAY, overlap=DAY)
START = datetime(2026, 11, 21, tzinfo=UTC)


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


def bundle_of(made):
    return trust.bundle(made.authorities, b"", START)


@pytest.fixture
def now():
    return datetime.now(UTC)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_strict_client_takes_the_certificate_under_every_name(now, name):
    made = material.made(TERMS, now)

    got = shake_hands(serving(made), trusting(bundle_of(made)), name)

    assert got == ssl.PEM_cert_to_DER_cert(made.written()["tls.crt"].decode())


def test_another_name_is_refused(now):
    made = material.made(TERMS, now)

    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(serving(made), trusting(bundle_of(made)), "other.temper.svc")


def test_another_authority_is_refused(now):
    made, other = material.made(TERMS, now), material.made(TERMS, now)

    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(serving(made), trusting(bundle_of(other)), "127.0.0.1")


def test_a_context_that_serves_already_takes_up_the_next_certificate(now):
    first = material.made(TERMS, now - 25 * DAY)
    context, client = serving(first), trusting(bundle_of(first))
    before = shake_hands(context, client, "127.0.0.1")

    present(context, renewed(first, now))

    assert shake_hands(context, client, "127.0.0.1") != before


def known(made):
    return frozenset(map(certificates.fingerprint, made.authorities))


def renewed(made, at, terms=TERMS, trusted="all"):
    return material.renewed(made, terms, at, known(made) if trusted == "all" else trusted)


@pytest.fixture
def first():
    return material.made(TERMS, START)


def test_what_is_written_is_read_as_it_was(first):
    assert material.read(first.written()) == first


def test_nothing_changes_before_two_thirds_of_its_life(first):
    assert renewed(first, START + 20 * DAY - timedelta(seconds=1)) == first


def test_after_two_thirds_there_is_another_of_the_same_authority(first):
    second = renewed(first, START + 20 * DAY)

    assert second.certificate != first.certificate
    assert second.key.private_numbers() != first.key.private_numbers()
    assert second.authorities == first.authorities
    assert certificates.is_signed_by(second.certificate, first.newest)
    assert certificates.names_of(second.certificate) == NAMES


def test_a_renewal_needs_no_word_of_the_configuration_while_the_authority_is_the_same(first):
    assert renewed(first, START + 20 * DAY, trusted=None).certificate != first.certificate


def test_an_expired_certificate_is_replaced_at_once(first):
    assert renewed(first, START + 40 * DAY).certificate != first.certificate


def test_a_certificate_of_the_future_is_replaced_as_clocks_go_wrong(first):
    now = START - DAY

    second = renewed(first, now)

    assert certificates.is_valid(second.certificate, now)
    assert certificates.is_valid(second.newest, now)


def test_a_name_that_is_lacking_is_added_to_those_that_are_there(first):
    terms = evolve(TERMS, names=frozenset({"new.temper.svc"}))

    second = renewed(first, START, terms)

    assert certificates.names_of(second.certificate) == NAMES | {"new.temper.svc"}
    assert renewed(second, START) == second


def young(first):
    """The material once its authority is due and another is there beside it."""
    served = renewed(first, START + 199 * DAY)
    staged = renewed(served, START + 200 * DAY)
    return served, staged


def test_a_young_authority_stands_beside_the_old_and_signs_nothing_yet(first):
    served, staged = young(first)

    assert staged.authorities == (staged.newest, *first.authorities)
    assert staged.certificate == served.certificate
    assert not staged.is_of_newest


def test_a_young_authority_signs_once_it_is_known_for_the_overlap(first):
    served, staged = young(first)

    early = renewed(staged, START + 201 * DAY - timedelta(seconds=1))
    late = renewed(staged, START + 201 * DAY)

    assert early.certificate == served.certificate
    assert late.is_of_newest


@pytest.mark.parametrize("trusted", [None, frozenset()])
def test_a_young_authority_that_the_api_server_does_not_know_signs_nothing(first, trusted):
    served, staged = young(first)

    assert renewed(staged, START + 205 * DAY, trusted=trusted).certificate == served.certificate


def test_it_signs_all_the_same_once_there_is_nothing_else_to_serve(first):
    _, staged = young(first)

    late = renewed(staged, START + 240 * DAY, trusted=None)

    assert late.is_of_newest


def test_an_old_authority_goes_when_it_is_over(first):
    _, staged = young(first)

    assert len(renewed(staged, START + 299 * DAY).authorities) == 2
    assert len(renewed(staged, START + 300 * DAY).authorities) == 1


def test_no_certificate_outlives_its_authority(first):
    late = renewed(first, START + 199 * DAY)
    terms = evolve(TERMS, certificate_life=1000 * DAY)

    longest = renewed(late, START + 199 * DAY + 20 * DAY, terms, trusted=None)

    for made in (late, longest):
        issuer = next(
            each for each in made.authorities if certificates.is_signed_by(made.certificate, each)
        )
        assert made.certificate.not_valid_after_utc <= issuer.not_valid_after_utc


def test_material_whose_every_part_is_over_begins_anew(first):
    now = START + 1000 * DAY

    again = renewed(first, now)

    assert len(again.authorities) == 1
    assert again.newest != first.newest
    assert again.is_of_newest
    assert certificates.is_valid(again.certificate, now)


OTHER = material.made(TERMS, START).written()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tls.crt": b""}, "tls.crt: holds no certificate"),
        ({"ca.crt": b"rubbish"}, "ca.crt: holds no certificate"),
        ({"tls.key": b"rubbish"}, "tls.key: holds no private key"),
        ({"ca.key": b""}, "ca.key: holds no private key"),
        ({"tls.key": OTHER["tls.key"]}, "tls.key: is not the key of tls.crt"),
        ({"ca.key": OTHER["ca.key"]}, "ca.key: is not the key of the first of ca.crt"),
        (
            {"tls.crt": OTHER["tls.crt"], "tls.key": OTHER["tls.key"]},
            "tls.crt: is signed by none of ca.crt",
        ),
    ],
)
def test_rubbish_is_named(first, change, problem):
    with pytest.raises(InputError) as caught:
        material.read({**first.written(), **change})

    assert str(caught.value) == problem


def test_no_key_is_shown(first):
    assert "key" not in repr(first).replace("authority_key", "").replace("public_key", "")


def test_a_bundle_keeps_what_another_replica_may_still_serve(first):
    other = material.made(TERMS, START)

    found = trust.bundle(first.authorities, trust.bundle(other.authorities, b"", START), START)

    assert trust.fingerprints(found) == known(first) | known(other)
    assert trust.bundle(first.authorities, found, START) == found


def test_a_bundle_loses_what_is_over_and_what_is_not_ours(first):
    over = material.made(TERMS, START - 400 * DAY)
    key = certificates.make_key()
    name = certificates.ValidityPeriod(START, START + DAY)
    foreign = certificates.make_certificate(key, ["x"], name, first.newest, first.authority_key)

    found = certificates.written([*over.authorities, foreign])

    assert trust.bundle(first.authorities, found, START) == trust.bundle(
        first.authorities, b"rubbish", START
    )


def test_a_bundle_does_not_grow_for_ever(first):
    others = [each for _ in range(9) for each in material.made(TERMS, START).authorities]

    found = trust.bundle(first.authorities, certificates.written(others), START)

    assert len(trust.fingerprints(found)) == 1 + trust.MOST_KEPT
