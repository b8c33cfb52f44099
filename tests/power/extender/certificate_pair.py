"""A certificate for 127.0.0.1 with its key in two files, and the authority that signed it."""

from datetime import UTC, datetime, timedelta

from temper_plugin_density.overcommit import certificates, material


def certificate_pair(directory, age=timedelta()):
    """Write both files. Return the options that name them, and the authority as PEM.

    The certificate was valid for a day from *age* ago on.
    """
    key, now = certificates.make_key(), datetime.now(UTC) - age
    period = certificates.ValidityPeriod(now, now + timedelta(days=1))
    authority = material.Authority(certificates.make_authority(key, period), key)
    made = material.signed(authority, material.Terms(frozenset({"127.0.0.1"})), now)
    (directory / "tls.crt").write_bytes(certificates.written(made.chain))
    (directory / "tls.key").write_bytes(certificates.written_key(made.key))
    options = ["--certificate", directory / "tls.crt", "--key", directory / "tls.key"]
    return [*map(str, options)], certificates.written([authority.certificate])
