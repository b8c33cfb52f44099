"""What the density plugin declares is what its two services export."""

import pytest

from temper_plugin_density.families import OVERCOMMIT, PLACING
from tests.density.service_pages import pages_of_services
from tests.exported_families import declared, exported


@pytest.mark.parametrize(
    ("families", "number"), [(OVERCOMMIT, 0), (PLACING, 1)], ids=["overcommit", "placement"]
)
def test_the_declared_families_are_those_of_the_services_page(families, number):
    assert exported(pages_of_services()[number]) == declared(families)
