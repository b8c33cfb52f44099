"""The thread profiles of pods, whose ``[traits]`` are hints."""

from attrs import frozen

import temper_core
from temper_core import Pod, image_sign, version_misfit
from temper_plugin_power.classifier.traits import NO_TRAITS, ThreadTraits


@frozen
class ThreadProfiles:
    """Thread profiles in the order in which they are preferred."""

    profiles: tuple[temper_core.WorkloadProfile, ...] = ()

    def traits_of(self, pod: Pod) -> ThreadTraits:
        """Return the traits of the pod's thread profile, none without one.

        The profile is the one that an annotation names, by its id or by a further name. Without
        such an annotation it is the first that recognises an image of the pod. The machine shape
        does not matter, because traits are of the workload.
        """
        named = pod.wanted_profile
        found = self._recognised(pod) if named is None else self._named(named[1])
        return NO_TRAITS if found is None else _traits(found)

    def _named(self, name: str) -> temper_core.WorkloadProfile | None:
        by_id = (each for each in self.profiles if each.id == name)
        also_called = (each for each in self.profiles if name in each.fingerprint.annotations)
        return next(by_id, None) or next(also_called, None)

    def _recognised(self, pod: Pod) -> temper_core.WorkloadProfile | None:
        for each in self.profiles:
            is_meant = each.enabled and image_sign(each.fingerprint, pod)
            if is_meant and not version_misfit(each.fingerprint, pod, is_named=False):
                return each
        return None


def _traits(profile: temper_core.WorkloadProfile) -> ThreadTraits:
    traits = profile.traits
    return ThreadTraits(
        profile=profile.id,
        workload_class=_text(traits.criticality),
        reschedulable=traits.reschedulable,
        cpu_intensity=_text(traits.cpu_intensity),
        cpu_bound=_text(traits.cpu_bound),
        cpu_sensitivity=_text(traits.cap_sensitivity),
        gpu_bound=_text(traits.gpu_bound),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
