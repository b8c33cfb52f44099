"""Match pods by a profile's fingerprint, and machines by its machine shape."""

import re
from collections.abc import Iterator
from fnmatch import translate
from functools import lru_cache

from temper_core.profiles.image_versions import satisfies
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Container, Pod
from temper_core.records.profiles import (
    Bounds,
    Fingerprint,
    LoadedProfile,
    ShapeRange,
    needs_expression,
)
from temper_core.records.thread_groups import LONGEST_COMM

EXACT, RANGE = 2, 1
COUNTED = ("cores", "threads_per_core", "sockets", "numa_nodes", "llcs")
IMPLIED_PREFIXES = ("docker.io/", "library/")
MOST_IMAGES = 16
"""Containers of a pod whose images are compared with those of profiles, 1 ms each."""
MOST_GLOBS = 1_024
"""Globs of all profiles. Each takes up to 10 us of the agent's loop for a new image."""
MOST_EXPRESSIONS = 32
"""Those among them that need a regular expression, which takes up to 200 us."""


def image_sign(fingerprint: Fingerprint, pod: Pod) -> str:
    """Return the image of *pod* that the fingerprint's globs match. Empty if none."""
    images = (image for _, image in _compared(pod))
    image_name = next((image for image in images if takes_image(fingerprint.images, image)), "")
    return f"image {image_name}" if image_name else ""


def containers_of(pod: Pod, fingerprint: Fingerprint) -> tuple[Container, ...]:
    """Return the containers that the fingerprint recognises, or all if it recognises none.

    Containers with an image of another version than the profile's are left out.
    """
    recognised = [
        (container, image)
        for container, image in _compared(pod)
        if takes_image(fingerprint.images, image) or _takes_process(fingerprint, container)
    ]
    fitting = tuple(
        container
        for container, image in recognised
        if _has_version(fingerprint, image) is not False
    )
    return fitting or tuple(container for container, _ in recognised) or pod.containers


def version_misfit(fingerprint: Fingerprint, pod: Pod, *, is_named: bool) -> str:
    """Return why the profile's versions do not include the pod's. Empty if they do.

    Only tags of images that the fingerprint matches give a version: the tag of a custom image is
    not the version of the program inside. Without a version, the profile fits only if the pod's
    annotation names it (*is_named*).
    """
    if not fingerprint.versions:
        return ""
    verdicts = [(image, _has_version(fingerprint, image)) for _, image in _compared(pod)]
    if any(verdict for _, verdict in verdicts):
        return ""
    required = f"it is for versions {', '.join(fingerprint.versions)}"
    outside = [image for image, verdict in verdicts if verdict is False]
    if outside:
        return f"{required}, and image {outside[0]} is of another"
    if is_named:
        return ""
    return f"{required}, and no image tag gives the pod's; an annotation can name the profile"


def _compared(pod: Pod) -> Iterator[tuple[Container, str]]:
    """Yield each container with its image, empty after the first ``MOST_IMAGES``."""
    for at, container in enumerate(pod.containers):
        yield container, container.image if at < MOST_IMAGES else ""


def _has_version(fingerprint: Fingerprint, image: str) -> bool | None:
    """Whether the image has a version of the profile. None if that is not known."""
    if not takes_image(fingerprint.images, image):
        return None
    reference = image.partition("@")[0]
    return satisfies(reference.rpartition("/")[2].partition(":")[2], fingerprint.versions)


def shape_misfit(shape: ShapeRange, machine: MachineShape) -> str:
    """Return why a tuning for *shape* does not fit *machine*. Empty if it fits."""
    for name in COUNTED:
        bounds, value = getattr(shape, name), getattr(machine, name)
        if bounds is not None and not _low(bounds) <= value <= _high(bounds):
            return f"it is for {_bounds(bounds)} {name}, this machine has {value}"
    if shape.architecture is not None and shape.architecture != machine.architecture:
        return f"it is for {shape.architecture}, this machine is {machine.architecture}"
    return ""


def preference(loaded: LoadedProfile) -> tuple[bool, int, int, str, str, str]:
    """Sort key of profiles that fit: by rank, then by the names of source and profile."""
    return (*rank(loaded), loaded.source, loaded.profile.id, repr(loaded.profile.machine_shape))


def rank(loaded: LoadedProfile) -> tuple[bool, int, int]:
    """Sort key of preference: files first, then the most specific machine shape."""
    values = [getattr(loaded.profile.machine_shape, name) for name in COUNTED]
    bounds = [bound for bound in values if bound is not None]
    exact = loaded.profile.machine_shape.architecture is not None
    specificity = EXACT * exact + sum(_specificity(bound) for bound in bounds)
    width = sum(_high(bound) - _low(bound) for bound in bounds)
    return not loaded.is_file, -specificity, width


def _takes_process(fingerprint: Fingerprint, container: Container) -> bool:
    # Names from the kernel are truncated. Profiles may give the full name.
    names = {
        name for process in fingerprint.processes for name in (process, process[:LONGEST_COMM])
    }
    return not names.isdisjoint(container.processes)


@lru_cache(maxsize=4096)
def takes_image(globs: tuple[str, ...], image: str) -> bool:
    """Whether one of *globs* matches *image*, in one of its spellings."""
    if not globs or not image:
        return False
    plain, with_digest = (tuple(dict.fromkeys(each(image))) for each in (_spellings, _with_digest))
    return any(
        _fits(glob, spelling)
        for glob in globs
        for spelling in (with_digest if "@" in glob else plain)
    )


def _fits(glob: str, text: str) -> bool:
    """Whether *glob* matches *text*, by searches, which take time in proportion to the text."""
    if needs_expression(glob):
        return _expression(glob).fullmatch(text) is not None
    first, *parts = glob.split("*")
    if not parts:
        return text == glob
    *middle, last = parts
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at = len(first)
    for part in middle:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return at + len(last) <= len(text)


@lru_cache(maxsize=MOST_EXPRESSIONS)
def _expression(glob: str) -> "re.Pattern[str]":
    return re.compile(translate(glob))


def _spellings(image: str) -> Iterator[str]:
    """Yield the reference without its digest, in each of its spellings."""
    reference, _, digest = image.partition("@")
    for spelling in _names(reference):
        yield spelling
        if ":" not in spelling.rpartition("/")[2]:
            # An absent tag means latest. With a digest it means any, so a glob with a tag matches.
            yield f"{spelling}:" if digest else f"{spelling}:latest"


def _with_digest(image: str) -> Iterator[str]:
    """Yield the reference with its digest, with and without the tag. Nothing without a digest."""
    reference, at, digest = image.partition("@")
    if not at:
        return
    folder, slash, last = reference.rpartition("/")
    untagged = f"{folder}{slash}{last.partition(':')[0]}"
    for tagged in dict.fromkeys((reference, untagged)):
        yield from (f"{spelling}@{digest}" for spelling in _names(tagged))


def _names(reference: str) -> Iterator[str]:
    """Yield *reference* as written, without the implied prefixes, and with all of them."""
    yield reference
    registry, library = IMPLIED_PREFIXES
    short = reference.removeprefix(registry).removeprefix(library)
    yield short
    host, slash, _ = short.partition("/")
    is_elsewhere = bool(slash) and (host == "localhost" or not {".", ":"}.isdisjoint(host))
    if not is_elsewhere:
        yield f"{registry}{short}" if slash else f"{registry}{library}{short}"


def _specificity(bounds: Bounds) -> int:
    return EXACT if isinstance(bounds, int) else RANGE


def _low(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[0]


def _high(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[1]


def _bounds(bounds: Bounds) -> str:
    return str(bounds) if isinstance(bounds, int) else f"{bounds[0]} to {bounds[1]}"
