"""A mount of tracefs for the processes of one test."""

import subprocess

import pytest

OWN_MOUNTS = (
    "unshare",
    "--mount",
    "--propagation",
    "private",
    "sh",
    "-c",
    (
        'grep -q " /sys/kernel/tracing tracefs " /proc/self/mounts || '
        'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"'
    ),
    "sh",
)
"""Put before a command. The instances are those of the whole machine even so."""


def skip_without_tracefs():
    """Skip with the reason where no tracefs can be mounted."""
    ran = subprocess.run([*OWN_MOUNTS, "true"], check=False, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"tracefs cannot be mounted here: {ran.stderr.strip()}")
