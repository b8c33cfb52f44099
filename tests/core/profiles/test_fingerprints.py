"""The image of a pod that a fingerprint matches, and the versions that it does not include."""

import pytest

from temper_core import Container, Pod, image_sign, parse_profile, version_misfit

PROFILE = """
id = "db"
[fingerprint]
images = ["example/db:*"]
versions = [">=8"]
[[thread_groups]]
name = "rest"
"""
FINGERPRINT = parse_profile(PROFILE, "a test").fingerprint


def a_pod(image):
    return Pod(uid="1", name="db-0", namespace="shop", containers=(Container("app", image=image),))


@pytest.mark.parametrize(
    ("image", "sign", "misfit"),
    [
        ("example/db:8.1", "image example/db:8.1", ""),
        ("docker.io/example/db:8.1", "image docker.io/example/db:8.1", ""),
        ("example/db:7.9", "image example/db:7.9", "it is for versions >=8, and image"),
        ("example/other:8.1", "", "it is for versions >=8, and no image tag"),
    ],
)
def test_a_plugin_can_ask_whether_a_fingerprint_is_for_a_pod(image, sign, misfit):
    pod = a_pod(image)

    assert image_sign(FINGERPRINT, pod) == sign
    assert version_misfit(FINGERPRINT, pod, is_named=False).startswith(misfit)
    assert bool(version_misfit(FINGERPRINT, pod, is_named=False)) == bool(misfit)
