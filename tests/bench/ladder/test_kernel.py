from bench.ladder.kernel import cpu_stat, cpu_times, idle_shares, lacks, scheduler

STAT = """cpu  100 0 50 800 50 0 0 0 20 0
cpu0 60 0 20 400 20 0 0 0 10 0
intr 1 2 3
"""


def test_times_of_guests_are_counted_once(tmp_path):
    (tmp_path / "stat").write_text(STAT)

    assert cpu_times(tmp_path) == {"cpu": (800, 1000), "cpu0": (400, 500)}


def test_an_idle_share_is_of_the_time_between_two_readings():
    shares = idle_shares({"cpu": (100, 1000)}, {"cpu": (150, 1200)})

    assert shares == {"cpu": 0.25}


def test_no_time_between_two_readings_is_no_idle_time():
    assert idle_shares({"cpu": (1, 1)}, {"cpu": (1, 1)}) == {"cpu": 0.0}


def test_a_kernel_without_sched_ext_has_the_stock_scheduler(tmp_path):
    assert scheduler(tmp_path) == scheduler(tmp_path / "missing")
    assert scheduler(tmp_path).state == "disabled"


def test_the_kernel_says_which_scheduler_it_runs(tmp_path):
    (tmp_path / "state").write_text("enabled\n")
    (tmp_path / "enable_seq").write_text("3\n")

    assert (scheduler(tmp_path).state, scheduler(tmp_path).attaches) == ("enabled", 3)


def test_a_cgroup_has_counts_by_name(tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 5\nnr_throttled 2\n")

    assert cpu_stat(tmp_path) == {"usage_usec": 5, "nr_throttled": 2}


def test_what_a_machine_lacks_takes_a_line_each(tmp_path):
    told = list(lacks(tmp_path, proc=tmp_path, sched_ext=tmp_path))

    assert f"a cgroup v2 hierarchy at {tmp_path}" in told
    assert any(line.startswith("sched_ext") for line in told)
    assert not any("\n" in line for line in told)


def test_the_stock_scheduler_alone_takes_no_sched_ext(tmp_path):
    told = list(lacks(tmp_path, engine=False, sched_ext=tmp_path))

    assert not any(line.startswith("sched_ext") for line in told)


def test_a_hierarchy_without_the_cpu_controller_is_told(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("memory pids\n")

    told = list(lacks(tmp_path))

    assert f"the cpu controller in {tmp_path / 'cgroup.controllers'}" in told
