"""How a profile recognises its workload, and which machines its tuning fits."""

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from temper_core.records.machine import MachineShape
from temper_core.records.pods import Container, Pod
from temper_core.records.profiles import (
    LONGEST_COMM,
    Bounds,
    Fingerprint,
    LoadedProfile,
    ShapeRange,
)

EXACT, RANGE = 2, 1
COUNTED = ("cores", "threads_per_core", "sockets", "numa_nodes")
IMPLIED_PREFIXES = ("docker.io/", "library/")


def image_sign(fingerprint: Fingerprint, pod: Pod) -> str:
    """Say which image of *pod* the fingerprint's globs take; empty when none."""
    images = (container.image for container in pod.containers)
    taken = next((image for image in images if _takes_image(fingerprint.images, image)), "")
    return f"image {taken}" if taken else ""


def process_sign(fingerprint: Fingerprint, pod: Pod) -> str:
    """Say which main process of *pod* the fingerprint names; empty when none."""
    if not fingerprint.processes:
        return ""
    names = (name for container in pod.containers for name in container.processes)
    taken = next((name for name in names if _takes_process(fingerprint, name)), "")
    return f"process {taken}" if taken else ""


def containers_of(pod: Pod, fingerprint: Fingerprint) -> tuple[Container, ...]:
    """Return the containers that the fingerprint recognises; all of them where it is none."""
    found = tuple(each for each in pod.containers if _takes_container(fingerprint, each))
    return found or pod.containers


def shape_misfit(shape: ShapeRange, machine: MachineShape) -> str:
    """Say why a tuning for *shape* is not for *machine*; empty when it fits."""
    for name in COUNTED:
        bounds, value = getattr(shape, name), getattr(machine, name)
        if bounds is not None and not _low(bounds) <= value <= _high(bounds):
            return f"it is for {_bounds(bounds)} {name}, this machine has {value}"
    if shape.architecture is not None and shape.architecture != machine.architecture:
        return f"it is for {shape.architecture}, this machine is {machine.architecture}"
    return ""


def preference(loaded: LoadedProfile) -> tuple[bool, int, int, str]:
    """Sort key among profiles that fit: files first, then the most specific shape, then names."""
    given = [getattr(loaded.profile.machine_shape, name) for name in COUNTED]
    bounds = [each for each in given if each is not None]
    exact = loaded.profile.machine_shape.architecture is not None
    specificity = EXACT * exact + sum(_specificity(each) for each in bounds)
    width = sum(_high(each) - _low(each) for each in bounds)
    return not loaded.is_file, -specificity, width, loaded.source


def _takes_container(fingerprint: Fingerprint, container: Container) -> bool:
    if _takes_image(fingerprint.images, container.image):
        return True
    return any(_takes_process(fingerprint, name) for name in container.processes)


def _takes_process(fingerprint: Fingerprint, name: str) -> bool:
    # Names that come from the kernel are cut; profiles may spell theirs out.
    return any(name in (each, each[:LONGEST_COMM]) for each in fingerprint.processes)


@lru_cache(maxsize=4096)
def _takes_image(globs: tuple[str, ...], image: str) -> bool:
    if not globs or not image:
        return False
    pattern = _any_of(globs)
    return any(pattern.fullmatch(spelling) for spelling in _spellings(image))


@lru_cache(maxsize=256)
def _any_of(globs: tuple[str, ...]) -> "re.Pattern[str]":
    return re.compile("|".join(translate(glob) for glob in globs))


def _spellings(image: str) -> Iterator[str]:
    """Yield the reference without its digest, as written and without what is implied."""
    reference, _, digest = image.partition("@")
    for spelling in (reference, _without_registry(reference)):
        yield spelling
        if ":" not in spelling.rpartition("/")[2]:
            # An absent tag means latest; with a digest it is any, and a glob with a tag takes it.
            yield f"{spelling}:" if digest else f"{spelling}:latest"


def _without_registry(reference: str) -> str:
    for prefix in IMPLIED_PREFIXES:
        reference = reference.removeprefix(prefix)
    return reference


def _specificity(bounds: Bounds) -> int:
    return EXACT if isinstance(bounds, int) else RANGE


def _low(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[0]


def _high(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[1]


def _bounds(bounds: Bounds) -> str:
    return str(bounds) if isinstance(bounds, int) else f"{bounds[0]} to {bounds[1]}"
