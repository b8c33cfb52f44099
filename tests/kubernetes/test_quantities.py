"""CPU quantities as the real API server reads them."""

import pytest

from temper_core import cpu_millis
from tests.control_plane.cluster import pod

SPELLINGS = (
    "1", "1500m", "0.0015", "1e-1", "12E-2", "0.5Ki", "1u", "000.30",
    "0" * 200 + "1m", "+" + "0" * 5000 + "1m", "0" * 200 + "1", "5e" + "0" * 200,
    "1e-" + "0" * 200 + "3", "0." + "0" * 200 + "1", "1" + "0" * 200 + "e-201",
    "1e4294967293", "5e-4294967297",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda text: text[:20])
def test_a_request_of_any_spelling_is_what_the_api_server_reads(cluster, spelling):
    millis = cpu_millis(spelling)

    def answer(limit):
        asked = pod("spelt", "anywhere", "shop", cpu=spelling)
        asked["spec"]["containers"][0]["resources"]["limits"] = {"cpu": f"{limit}m"}
        path = "/api/v1/namespaces/shop/pods?dryRun=All"
        return cluster.client.post(path, json=asked).status_code

    # The API server refuses a limit below the request.
    assert (answer(millis), answer(millis - 1)) == (201, 422)
