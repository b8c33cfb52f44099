"""Workloads that give themselves away by the name of their main process, whatever their image."""

from temper_core import Detection, Pod

SURE = 0.8
LIKELY = 0.6


def detect_mysql(pod: Pod) -> Detection | None:
    """Recognise a pod whose main process is MySQL's or MariaDB's server, of any version."""
    return _detection(pod, "mysql-innodb", {"mysqld": SURE, "mariadbd": SURE})


def detect_pytorch(pod: Pod) -> Detection | None:
    """Recognise a pod whose main process PyTorch renamed, or that ``torchrun`` started."""
    names = {"pt_main_thread": SURE, "pt_elastic": SURE, "torchrun": LIKELY}
    return _detection(pod, "pytorch-training", names)


def _detection(pod: Pod, profile: str, names: dict[str, float]) -> Detection | None:
    """Return the surest sign among the pod's main processes."""
    signs = [
        (names[process], f"container {container.name!r} runs {process}")
        for container in pod.containers
        for process in container.processes
        if process in names
    ]
    if not signs:
        return None
    confidence, why = max(signs)
    return Detection(profile, confidence, why)
