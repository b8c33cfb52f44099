"""Match pods by a profile's fingerprint, and machines by its machine shape."""

from collections.abc import Iterator

from temper_core.profiles.image_globs import takes_image
from temper_core.profiles.image_versions import satisfies
from temper_core.records.machine import MachineShape
from temper_core.records.pods import Container, Pod
from temper_core.records.profiles import Bounds, Fingerprint, LoadedProfile, ShapeRange
from temper_core.records.thread_groups import LONGEST_COMM

EXACT, RANGE = 2, 1
COUNTED = ("cores", "threads_per_core", "sockets", "numa_nodes", "llcs")
MOST_IMAGES = 16
"""Containers of a pod whose images are compared with the globs of profiles."""


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


def _specificity(bounds: Bounds) -> int:
    return EXACT if isinstance(bounds, int) else RANGE


def _low(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[0]


def _high(bounds: Bounds) -> int:
    return bounds if isinstance(bounds, int) else bounds[1]


def _bounds(bounds: Bounds) -> str:
    return str(bounds) if isinstance(bounds, int) else f"{bounds[0]} to {bounds[1]}"
