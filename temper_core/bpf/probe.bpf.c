// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The smallest object that needs what all of ours need: relocation, a map in memory, the walk over
// tasks, and a tracepoint. If it loads, runs and attaches, BPF is allowed here.
#include "temper_core/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

struct counts {
	u64 threads;
	u64 forks;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counted SEC(".maps");

static struct counts *counts(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&counted, &first);
}

SEC("syscall")
int count_threads(void *unused)
{
	struct counts *found = counts();
	struct task_struct *task;
	struct bpf_iter_task walk;

	if (!found)
		return -1;
	found->threads = 0;
	bpf_rcu_read_lock();
	bpf_iter_task_new(&walk, NULL, BPF_TASK_ITER_ALL_THREADS);
	while ((task = bpf_iter_task_next(&walk)))
		if (task->pid)
			found->threads++;
	bpf_iter_task_destroy(&walk);
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(count_fork, struct task_struct *parent, struct task_struct *child)
{
	struct counts *found = counts();

	if (found && child->pid)
		__sync_fetch_and_add(&found->forks, 1);
	return 0;
}
