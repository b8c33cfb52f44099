"""Where the cgroup hierarchies of a host are mounted."""

from attrs import frozen


@frozen
class CgroupRoots:
    """Mount points; an empty string for a hierarchy that is not there.

    ``unified`` is cgroup v2; the others are v1 controllers of a hybrid host.
    """

    unified: str = "/sys/fs/cgroup"
    cpu: str = ""
    cpuacct: str = ""
    memory: str = ""
    cpuset: str = ""
