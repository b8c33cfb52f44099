"""Certificate authorities and the certificates they sign, valid for Go's and Python 3.13's checks.

Keys are ECDSA with P-256. Instants are aware datetimes. Certificates hold whole seconds.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from temper_core import InputError
from temper_serving import validity

ValidityPeriod = validity.ValidityPeriod
Certificate = x509.Certificate
Key = ec.EllipticCurvePrivateKey
PrivateKey = PrivateKeyTypes

BACKDATED = timedelta(minutes=5)
"""The start of validity lies this long before the creation of a certificate: clocks differ."""
AUTHORITY_NAME = "temper-webhook authority"
LONGEST_COMMON_NAME = 64
MISFITS = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""Errors of malformed certificates and keys. Some are raised only when a field is read."""


def begun(certificate: Certificate) -> datetime:
    """Return when *certificate* was made."""
    return certificate.not_valid_before_utc + BACKDATED


def period_of(certificate: Certificate) -> ValidityPeriod:
    """Return when *certificate* is valid."""
    return ValidityPeriod(certificate.not_valid_before_utc, certificate.not_valid_after_utc)


def is_valid(certificate: Certificate, now: datetime) -> bool:
    """Whether *certificate* is neither expired nor from the future."""
    return not period_of(certificate).why_invalid(now)


def is_due(certificate: Certificate, now: datetime) -> bool:
    """Whether two thirds of its life are over, so that it must be replaced."""
    start, end = begun(certificate), certificate.not_valid_after_utc
    return not is_valid(certificate, now) or now >= start + (end - start) * 2 / 3


def is_signed_by(certificate: Certificate, authority: Certificate) -> bool:
    """Whether *authority* issued *certificate*."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (*MISFITS, InvalidSignature):
        return False
    return True


def names_of(certificate: Certificate) -> frozenset[str]:
    """Return the names and addresses that *certificate* is for."""
    try:
        alternatives = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    addresses = map(str, alternatives.get_values_for_type(x509.IPAddress))
    return frozenset([*alternatives.get_values_for_type(x509.DNSName), *addresses])


def make_key() -> Key:
    """Make a private key."""
    return ec.generate_private_key(ec.SECP256R1())


def make_authority(key: Key, span: ValidityPeriod) -> Certificate:
    """Make a self-signed certificate authority with a unique name."""
    serial = x509.random_serial_number()
    name = _name(f"{AUTHORITY_NAME} {serial:x}")
    usage = _usage(key_cert_sign=True, crl_sign=True)
    builder = _builder(name, name, key, serial, span)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    return builder.sign(key, hashes.SHA256())


def make_certificate(
    key: Key, names: Iterable[str], span: ValidityPeriod, authority: Certificate, authority_key: Key
) -> Certificate:
    """Make the certificate of a server with *names*. It expires no later than its authority."""
    ordered = sorted(names)
    end = min(span.end, authority.not_valid_after_utc)
    serial = x509.random_serial_number()
    subject = _name(ordered[0] if ordered else "temper-webhook")
    builder = _builder(subject, authority.subject, key, serial, ValidityPeriod(span.start, end))
    issuer = _key_identifier(authority)
    server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in ordered])
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_usage(digital_signature=True), critical=True)
    for extension in (server, alternatives, issuer):
        builder = builder.add_extension(extension, critical=False)
    return builder.sign(authority_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, serial: int, span: ValidityPeriod
) -> x509.CertificateBuilder:
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(span.start - BACKDATED)
        .not_valid_after(span.end)
        .add_extension(identifier, critical=False)
    )


def _key_identifier(authority: Certificate) -> x509.AuthorityKeyIdentifier:
    # OpenSSL compares it to the authority's own, which not every maker derives by SHA-1.
    try:
        own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = authority.public_key()
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)  # type: ignore[arg-type]
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:LONGEST_COMMON_NAME])])


def _usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def written(certificates: Iterable[Certificate]) -> bytes:
    """Return *certificates* as PEM."""
    return b"".join(
        certificate.public_bytes(serialization.Encoding.PEM) for certificate in certificates
    )


def written_key(key: PrivateKey) -> bytes:
    """Return *key* as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def read(pem: bytes, what: str) -> tuple[Certificate, ...]:
    """Read one or more PEM certificates. Raise InputError naming *what* if there are none."""
    try:
        certificates = tuple(x509.load_pem_x509_certificates(pem))
        for certificate in certificates:
            _read_through(certificate)
    except MISFITS as error:
        raise InputError(f"{what}: holds no certificate") from error
    return certificates


def _read_through(certificate: Certificate) -> None:
    """Read every field that is used: fields are parsed on access, and may be malformed."""
    for name in ("subject", "issuer", "extensions", "not_valid_before_utc", "not_valid_after_utc"):
        getattr(certificate, name)
    certificate.public_key()


def read_any_key(pem: bytes, what: str) -> PrivateKey:
    """Read a PEM key of a server. Raise InputError naming *what* if there is none."""
    try:
        return serialization.load_pem_private_key(pem, None)
    except MISFITS as error:
        raise InputError(f"{what}: holds no private key") from error


def read_key(pem: bytes, what: str) -> Key:
    """Read a PEM key. Raise InputError naming *what* if it is not an ECDSA key."""
    key = read_any_key(pem, what)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise InputError(f"{what}: holds no ECDSA key")
    return key
