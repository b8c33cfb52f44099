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
from temper_core.records.versions import satisfies

EXACT, RANGE = 2, 1
COUNTED = ("cores", "threads_per_core", "sockets", "numa_nodes", "llcs")
IMPLIED_PREFIXES = ("docker.io/", "library/")


def image_sign(fingerprint: Fingerprint, pod: Pod) -> str:
    """Say which image of *pod* the fingerprint's globs take. Empty when none."""
    images = (container.image for container in pod.containers)
    taken = next((image for image in images if _takes_image(fingerprint.images, image)), "")
    return f"image {taken}" if taken else ""


def process_sign(fingerprint: Fingerprint, pod: Pod) -> str:
    """Say which main process of *pod* the fingerprint names. Empty when none."""
    if not fingerprint.processes:
        return ""
    names = (name for container in pod.containers for name in container.processes)
    taken = next((name for name in names if _takes_process(fingerprint, name)), "")
    return f"process {taken}" if taken else ""


def containers_of(pod: Pod, fingerprint: Fingerprint) -> tuple[Container, ...]:
    """Return the containers that the fingerprint recognises. All of them where it is none.

    One whose image is of another version than the profile is for is none of them.
    """
    found = tuple(each for each in pod.containers if _takes_container(fingerprint, each))
    fitting = tuple(each for each in found if _has_version(fingerprint, each) is not False)
    return fitting or found or pod.containers


def version_misfit(fingerprint: Fingerprint, pod: Pod, *, is_named: bool) -> str:
    """Say why the versions that a profile is for are not the pod's. Empty where they are.

    Only the tags of images that the fingerprint takes tell a version: that of an image of one's
    own says nothing of the program inside. Where none tells it, the profile fits if the pod's
    annotation names it (*is_named*): nobody else can know.
    """
    if not fingerprint.versions:
        return ""
    verdicts = [(each.image, _has_version(fingerprint, each)) for each in pod.containers]
    if any(verdict for _, verdict in verdicts):
        return ""
    wanted = f"it is for versions {', '.join(fingerprint.versions)}"
    outside = [image for image, verdict in verdicts if verdict is False]
    if outside:
        return f"{wanted}, and image {outside[0]} is of another"
    if is_named:
        return ""
    return f"{wanted}, and no image of the pod tells its own; an annotation that names it would do"


def _has_version(fingerprint: Fingerprint, container: Container) -> bool | None:
    """Whether the container's image is of a version that is meant; None where that is not known."""
    if not _takes_image(fingerprint.images, container.image):
        return None
    reference = container.image.partition("@")[0]
    return satisfies(reference.rpartition("/")[2].partition(":")[2], fingerprint.versions)


def shape_misfit(shape: ShapeRange, machine: MachineShape) -> str:
    """Say why a tuning for *shape* is not for *machine*. Empty when it fits."""
    for name in COUNTED:
        bounds, value = getattr(shape, name), getattr(machine, name)
        if bounds is not None and not _low(bounds) <= value <= _high(bounds):
            return f"it is for {_bounds(bounds)} {name}, this machine has {value}"
    if shape.architecture is not None and shape.architecture != machine.architecture:
        return f"it is for {shape.architecture}, this machine is {machine.architecture}"
    return ""


def preference(loaded: LoadedProfile) -> tuple[bool, int, int, str, str, str]:
    """Sort key among profiles that fit: by rank, then by the names of source and profile."""
    return (*rank(loaded), loaded.source, loaded.profile.id, repr(loaded.profile.machine_shape))


def rank(loaded: LoadedProfile) -> tuple[bool, int, int]:
    """Sort key of what a profile is better for than others: files, then the most specific shape."""
    given = [getattr(loaded.profile.machine_shape, name) for name in COUNTED]
    bounds = [each for each in given if each is not None]
    exact = loaded.profile.machine_shape.architecture is not None
    specificity = EXACT * exact + sum(_specificity(each) for each in bounds)
    width = sum(_high(each) - _low(each) for each in bounds)
    return not loaded.is_file, -specificity, width


def _takes_container(fingerprint: Fingerprint, container: Container) -> bool:
    if _takes_image(fingerprint.images, container.image):
        return True
    return any(_takes_process(fingerprint, name) for name in container.processes)


def _takes_process(fingerprint: Fingerprint, name: str) -> bool:
    # Names that come from the kernel are cut. Profiles may spell theirs out.
    return any(name in (each, each[:LONGEST_COMM]) for each in fingerprint.processes)


@lru_cache(maxsize=4096)
def _takes_image(globs: tuple[str, ...], image: str) -> bool:
    if not globs or not image:
        return False
    return any(
        pattern.fullmatch(spelling)
        for pattern, spellings in (
            (_any_of(tuple(glob for glob in globs if "@" not in glob)), _spellings(image)),
            (_any_of(tuple(glob for glob in globs if "@" in glob)), _with_digest(image)),
        )
        for spelling in spellings
    )


@lru_cache(maxsize=256)
def _any_of(globs: tuple[str, ...]) -> "re.Pattern[str]":
    # Of no globs nothing must match, not the empty text either.
    return re.compile("|".join(translate(glob) for glob in globs) or r"(?!)")


def _spellings(image: str) -> Iterator[str]:
    """Yield the reference without its digest, in each of its spellings."""
    reference, _, digest = image.partition("@")
    for spelling in _names(reference):
        yield spelling
        if ":" not in spelling.rpartition("/")[2]:
            # An absent tag means latest. With a digest it is any, and a glob with a tag takes it.
            yield f"{spelling}:" if digest else f"{spelling}:latest"


def _with_digest(image: str) -> Iterator[str]:
    """Yield the reference with its digest, with and without the tag. Nothing where it has none."""
    reference, at, digest = image.partition("@")
    if not at:
        return
    folder, slash, last = reference.rpartition("/")
    untagged = f"{folder}{slash}{last.partition(':')[0]}"
    for named in dict.fromkeys((reference, untagged)):
        yield from (f"{spelling}@{digest}" for spelling in _names(named))


def _names(reference: str) -> Iterator[str]:
    """Yield *reference* as it is written, without what is implied, and with all that is."""
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
