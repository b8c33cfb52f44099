"""Find a pod's threads by cgroup, or by process name if its rule gives only that.

The engine compares prefixes and substrings with a path that has no leading and one trailing
slash.
"""

from collections.abc import Iterable
from enum import Enum

from attrs import frozen

from temper_core.engine.capabilities import LONGEST_COMM_BYTES
from temper_core.profiles.fingerprints import containers_of
from temper_core.records.engine_matchers import Matcher
from temper_core.records.plans import Assignment
from temper_core.records.pods import Container, Origin, Pod
from temper_core.records.profiles import LoadedProfile

CGROUP_MOUNT = "/sys/fs/cgroup"
LONGEST_ADDRESS_BYTES = 512
"""Twice the longest path of a kubelet. Whoever has cgroups of its own can make paths of 4 KB, and
the engine's expressions hold few of these."""


class AddressForm(Enum):
    """The kind of text in an address. It decides how a regular expression matches it."""

    PATH = "a path from the root of the hierarchy"
    SYSTEMD = "the end of a pod slice's name"
    CGROUPFS = "the name of a pod's directory"
    CONTAINER = "the id of a container, anywhere in the path"
    PROCESS = "the beginning of a process name"


@frozen
class Address:
    """One place where threads of a pod live. ``text`` has no slash at either end.

    ``within`` is the path of a container's pod, if known. Without it the id counts anywhere.
    """

    form: AddressForm
    text: str
    within: str = ""

    @property
    def letters(self) -> int:
        """The bytes that it takes in an expression if it shares none with others."""
        return len(self.within.encode()) + len(self.text.encode())

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        """The conditions that hold together for threads at this address."""
        above = (Matcher("CgroupPrefix", f"{self.within}/"),) if self.within else ()
        return (*above, self.matcher)

    @property
    def matcher(self) -> Matcher:
        """The condition on the text of this address alone."""
        if self.form is AddressForm.PATH:
            return Matcher("CgroupPrefix", f"{self.text}/")
        if self.form is AddressForm.PROCESS:
            return Matcher("PcommPrefix", self.text)
        contained = {
            AddressForm.SYSTEMD: f"{self.text}/",
            AddressForm.CGROUPFS: f"/{self.text}/",
            AddressForm.CONTAINER: self.text,
        }
        return Matcher("CgroupContains", contained[self.form])


def addresses_of(pod: Pod, cgroup_driver: str) -> tuple[Address, ...]:
    """Return where the threads of *pod* are. Empty if they cannot be distinguished."""
    if pod.cgroups:
        paths = dict.fromkeys(path.strip("/") for path in pod.cgroups)
        return _usable(Address(AddressForm.PATH, path) for path in sorted(paths))
    if pod.origin is Origin.WORKLOAD:
        return tuple(Address(AddressForm.PROCESS, name) for name in process_names(pod))
    if pod.origin is not Origin.KUBERNETES or not pod.uid:
        return ()
    if cgroup_driver == "cgroupfs":
        return _usable((Address(AddressForm.CGROUPFS, f"pod{pod.uid}"),))
    return _usable((Address(AddressForm.SYSTEMD, f"pod{pod.uid.replace('-', '_')}.slice"),))


def as_comm(name: str) -> str:
    """Cut *name* to the bytes that the kernel keeps of a thread's name."""
    return name.encode()[:LONGEST_COMM_BYTES].decode(errors="ignore")


@frozen(eq=False)
class AddressedPod:
    """A pod with its addresses. ``inside`` are those that its profile applies to."""

    assignment: Assignment
    whole: tuple[Address, ...]
    inside: tuple[Address, ...]
    outside: tuple[Address, ...] = ()

    @property
    def pod(self) -> Pod:
        """The pod itself."""
        return self.assignment.pod

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All addresses, each once."""
        return tuple(dict.fromkeys((*self.whole, *self.inside, *self.outside)))


def locate(assignment: Assignment, cgroup_driver: str) -> AddressedPod:
    """Find the pod's addresses. ``whole`` is empty if its threads cannot be distinguished."""
    whole = addresses_of(assignment.pod, cgroup_driver)
    if assignment.profile is None or not whole:
        return AddressedPod(assignment, whole, whole)
    inside, outside = _inside_and_outside(assignment.pod, assignment.profile, whole)
    return AddressedPod(assignment, whole, inside, outside)


def _inside_and_outside(
    pod: Pod, loaded: LoadedProfile, whole: tuple[Address, ...]
) -> tuple[tuple[Address, ...], tuple[Address, ...]]:
    """Separate the containers that the profile applies to from the pod's others.

    If they cannot be distinguished, or all match, the profile applies to the whole pod.
    """
    matching = containers_of(pod, loaded.profile.fingerprint)
    rest = [container for container in pod.containers if container not in matching]
    if not rest or not all(container.runtime_id for container in pod.containers):
        return whole, ()
    paths = [address.text if address.form is AddressForm.PATH else "" for address in whole]

    def ids_of(containers: Iterable[Container]) -> tuple[Address, ...]:
        return tuple(
            Address(AddressForm.CONTAINER, container.runtime_id, path)
            for container in containers
            for path in paths
        )

    return ids_of(matching), ids_of(rest)


def process_names(pod: Pod) -> list[str]:
    """Return the process name prefixes that a rule gives for *pod*, sorted."""
    names = {name for container in pod.containers for name in container.processes if _is_text(name)}
    return sorted({as_comm(name) for name in names} - {""})


def _usable(addresses: Iterable[Address]) -> tuple[Address, ...]:
    return tuple(address for address in addresses if _is_usable(address))


def _is_usable(address: Address) -> bool:
    text = str(address.matcher.value)
    # The engine's paths start below the mount. A path that repeats it could never match.
    if not address.text or not _is_text(text) or text.startswith(CGROUP_MOUNT[1:]):
        return False
    return len(text.encode()) <= LONGEST_ADDRESS_BYTES


def _is_text(text: str) -> bool:
    """Whether the engine can read *text*: it reads UTF-8, and crashes on NUL."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
