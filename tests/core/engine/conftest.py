import os
import shutil
from pathlib import Path

import pytest

from temper_core.engine.binary import EngineBinary, find_engine


@pytest.fixture(scope="session")
def engine() -> EngineBinary:
    path = os.environ.get("TEMPER_ENGINE") or shutil.which("scx_layered") or cached_engine()
    if not path:
        pytest.skip("no scx_layered: not in TEMPER_ENGINE, not on PATH, not in TEMPER_CACHE")
    return find_engine(path)


@pytest.fixture(scope="session")
def offline_engine(engine: EngineBinary) -> EngineBinary:
    if Path("/sys/kernel/sched_ext").exists():
        pytest.skip("this kernel has sched_ext: the engine would attach instead of ending")
    return engine


def cached_engine() -> str:
    cache = Path(os.environ.get("TEMPER_CACHE", "~/.cache/temper")).expanduser()
    found = sorted(cache.glob("engine/*/bin/scx_layered"))
    return str(found[-1]) if found else ""
