"""Who of the node's pods lives where: in the system layer, in a tier's, or nobody can tell."""

from collections.abc import Iterable

from attrs import frozen

from temper_core.plan.addresses import AddressedPod


@frozen
class AddressedPods:
    """The pods of a node. Those ``adrift`` have no address that tells them from others."""

    system: tuple[AddressedPod, ...]
    tiered: tuple[AddressedPod, ...]
    adrift: tuple[AddressedPod, ...]

    @classmethod
    def of(cls, pods: Iterable[AddressedPod]) -> "AddressedPods":
        """Sort *pods*, in their order."""
        pods = tuple(pods)
        found = [pod for pod in pods if pod.whole]
        return cls(
            tuple(pod for pod in found if pod.assignment.is_system),
            tuple(pod for pod in found if not pod.assignment.is_system),
            tuple(pod for pod in pods if not pod.whole),
        )
