"""Sort the node's pods: those of the system layer, those of tiers, and those without an address."""

from collections.abc import Iterable

from attrs import frozen

from temper_core.plan.addresses import AddressedPod


@frozen
class AddressedPods:
    """The pods of a node. Those ``adrift`` have no address that distinguishes their threads."""

    system: tuple[AddressedPod, ...]
    tiered: tuple[AddressedPod, ...]
    adrift: tuple[AddressedPod, ...]

    @classmethod
    def of(cls, pods: Iterable[AddressedPod]) -> "AddressedPods":
        """Sort *pods*, in their order."""
        pods = tuple(pods)
        addressed = [pod for pod in pods if pod.whole]
        return cls(
            tuple(pod for pod in addressed if pod.assignment.is_system),
            tuple(pod for pod in addressed if not pod.assignment.is_system),
            tuple(pod for pod in pods if not pod.whole),
        )
