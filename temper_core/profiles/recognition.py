"""The profiles that an image or a main process of a pod is a sign of.

Pods and profiles may have different authors, and both may be many. So what was found for an image
is remembered, and main processes are looked up by name.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import define, field

from temper_core.profiles.fingerprints import MOST_IMAGES
from temper_core.profiles.image_globs import MOST_EXPRESSIONS, MOST_GLOBS, takes_image
from temper_core.records.pods import Pod
from temper_core.records.profiles import LoadedProfile, ProfileFailure, needs_expression
from temper_core.records.thread_groups import LONGEST_COMM

MOST_REMEMBERED = 4_096
"""Images. A node has some hundred."""

Signs = list[tuple[str, str]]


@define(eq=False)
class Recognition:
    """Recognises pods. *by_id* has the profiles of each id, in the order of the answers."""

    by_id: Mapping[str, Sequence[LoadedProfile]]
    _ids_by_image: dict[str, tuple[str, ...]] = field(factory=dict, init=False)
    _ids_by_process: Mapping[str, tuple[str, ...]] = field(init=False)

    @_ids_by_process.default
    def _index_processes(self) -> Mapping[str, tuple[str, ...]]:
        ids: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for profile_id, candidates in self.by_id.items():
            for loaded in candidates:
                for process in loaded.profile.fingerprint.processes:
                    # Names from the kernel are truncated. Profiles may give the full name.
                    ids[process][profile_id] = ids[process[:LONGEST_COMM]][profile_id] = None
        return {process: tuple(found) for process, found in ids.items()}

    def image_signs(self, pod: Pod) -> Signs:
        """Return the ids of profiles that take an image of *pod*, each with that image."""
        images = [container.image for container in pod.containers[:MOST_IMAGES]]
        return self._signs("image", ((image, self._ids_of(image)) for image in images))

    def process_signs(self, pod: Pod) -> Signs:
        """Return the ids of profiles that name a main process of *pod*, each with that name."""
        names = (name for container in pod.containers for name in container.processes)
        return self._signs(
            "process", ((name, self._ids_by_process.get(name, ())) for name in names)
        )

    def _signs(self, kind: str, found: Iterable[tuple[str, tuple[str, ...]]]) -> Signs:
        signs: dict[str, str] = {}
        for name, ids in found:
            for profile_id in ids:
                signs.setdefault(profile_id, f"{kind} {name}")
        return [(profile_id, signs[profile_id]) for profile_id in self.by_id if profile_id in signs]

    def _ids_of(self, image: str) -> tuple[str, ...]:
        ids = self._ids_by_image.get(image)
        if ids is None:
            if len(self._ids_by_image) >= MOST_REMEMBERED:
                del self._ids_by_image[next(iter(self._ids_by_image))]
            ids = self._ids_by_image[image] = tuple(
                profile_id
                for profile_id, candidates in self.by_id.items()
                if any(takes_image(each.profile.fingerprint.images, image) for each in candidates)
            )
        return ids


def within_globs(
    profiles: Iterable[LoadedProfile], failures: list[ProfileFailure]
) -> Iterator[LoadedProfile]:
    """Yield *profiles* until they have too many globs, and add a failure for each other.

    ``MOST_GLOBS`` and ``MOST_EXPRESSIONS`` are the bounds.
    """
    globs: set[str] = set()
    for loaded in profiles:
        with_own = globs.union(loaded.profile.fingerprint.images)
        if reason := _excess(with_own):
            failures.append(ProfileFailure(loaded.source, loaded.profile.id, reason))
        else:
            globs = with_own
            yield loaded


def _excess(globs: set[str]) -> str:
    """Return the bound that *globs* exceed, in words. Empty if they exceed none."""
    if len(globs) > MOST_GLOBS:
        return f"all profiles together may have {MOST_GLOBS} globs in fingerprint.images"
    if sum(map(needs_expression, globs)) > MOST_EXPRESSIONS:
        return (
            f"all profiles together may have {MOST_EXPRESSIONS} globs with ? or [ in "
            "fingerprint.images"
        )
    return ""
