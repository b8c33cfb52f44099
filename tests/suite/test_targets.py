"""What a target of the Makefile leaves to another one, that one runs."""

import re
from pathlib import Path

from tests.kernel.conftest import ONLY_IN_FULL

MAKEFILE = Path(__file__).parents[2] / "Makefile"


def test_the_full_run_in_a_kernel_has_each_file_that_is_left_to_it():
    (recipe,) = re.findall(r"^test-kernel-full: .*\n\t(.*)", MAKEFILE.read_text(), re.MULTILINE)
    run = set(re.findall(r"tests/kernel/(\w+\.py)", recipe))

    assert run >= set(ONLY_IN_FULL)
