"""Folders that look like sysfs, a cgroup hierarchy or /proc to whoever reads them."""

from temper_core.testing import make_cgroup, make_hierarchy, make_process, write_files

__all__ = ["make_cgroup", "make_hierarchy", "make_process", "write_files"]
