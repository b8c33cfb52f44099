import gc
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

import temper_core.bpf
from temper_core.bpf.access import probe
from temper_core.bpf.skeleton import Skeleton

FOLDERS = (Path(__file__).parent / "objects", Path(temper_core.bpf.__file__).parent)


@pytest.fixture
def content_of():
    """Read an object of these tests, or the room's own, by its name."""

    def read(name):
        [found] = [
            folder / f"{name}.bpfl" for folder in FOLDERS if (folder / f"{name}.bpfl").exists()
        ]
        return found.read_bytes()

    return read


@pytest.fixture
def descriptors():
    """List what this process holds open."""
    return lambda: sorted(each.name for each in Path("/proc/self/fd").iterdir())


@pytest.fixture(scope="session")
def bpf_allowed():
    """Skip where BPF may not be used, with what the probe says of it."""
    access = probe()
    if not access.is_allowed:
        pytest.skip(access.reason)
    return access


@pytest.fixture
def load(bpf_allowed, content_of, descriptors):
    """Load objects for one test; none of their descriptors may be left by it."""
    assert bpf_allowed
    gc.collect()  # what earlier tests left open is not to be closed meanwhile
    before = descriptors()
    with ExitStack() as loaded:
        yield lambda name, **given: loaded.enter_context(Skeleton.load(content_of(name), **given))
    assert descriptors() == before


@pytest.fixture
def tally(load):
    return load("tally")


@pytest.fixture
def prober(load):
    return load("probe")


@pytest.fixture
def bpffs(bpf_allowed, tmp_path):
    """Mount a place for pins; what is pinned goes with it."""
    assert bpf_allowed
    command = ["mount", "-t", "bpf", "bpf", tmp_path]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"cannot mount a bpffs: {mounted.stderr}")
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)
