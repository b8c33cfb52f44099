import pytest

from temper_plugin_linter.names import kind_of


@pytest.mark.parametrize(
    ("process", "comm"),
    [("shop/db-0", "worker-1"), ("shop/db-0 wo", "shop/db-0 wo"), ("", "a/b c")],
)
def test_no_name_of_a_process_is_the_kind_of_a_pods_threads(process, comm):
    assert "/" not in kind_of("", process, comm)


def test_the_kinds_of_pods_processes_and_kernel_threads_are_plain():
    assert kind_of("shop/db-0", "mysqld", "worker-12") == "shop/db-0 worker-#"
    assert kind_of("", "mysqld", "worker-12") == "mysqld worker-#"
    assert kind_of("", "kworker/0:1", "kworker/0:1") == "kworker/#:#"
