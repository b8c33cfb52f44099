from tests.core.observe.kernel_side.conftest import make_cgroup, unified

__all__ = ["make_cgroup", "unified"]
