"""The choice on a kernel without type information; run by pytest in a guest with bcc.

``test_trace_backends.py`` boots the guest.
"""

from tests.tracer.capture.scenes import scene

HIDE_TRACEFS = (
    "unshare",
    "--mount",
    "sh",
    "-c",
    'umount -R /sys/kernel/tracing && exec "$@"',
    "sh",
)


def test_auto_takes_tracefs_where_it_is_mounted(tmp_path):
    entry = scene("captured", str(tmp_path), "auto")

    assert (entry["state"], entry["backend"]) == ("finished", "tracefs"), entry
    assert set(entry["refused"]) == {"bpf"}


def test_auto_takes_bcc_where_no_tracefs_is_mounted(tmp_path):
    entry = scene("captured", str(tmp_path), "auto", prefix=HIDE_TRACEFS)

    assert (entry["state"], entry["backend"]) == ("finished", "bcc"), entry
    assert set(entry["refused"]) == {"bpf", "tracefs"}
    assert entry["read"] == {"events": entry["events"], "threads": entry["threads"], "cut": ""}
    assert entry["events"] > 0
    assert entry["lost"] == 0
    assert entry["left"]["processes"] == []


def test_without_the_capabilities_bcc_says_what_is_missing(tmp_path):
    entry = scene("captured", str(tmp_path), "bcc", "bpf,perfmon,sys_admin")

    assert entry["state"] == "failed"
    assert "Operation not permitted" in entry["reason"]
    assert entry["left"]["files"] == []
