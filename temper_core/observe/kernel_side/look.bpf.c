// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Looks at every thread of the node in one call, by the walk that Linux has since 6.7.
#include "temper_core/bpf/kernel.h"
#include "look.h"

SEC("syscall")
int look(void *unused)
{
	struct control *control = the_control();
	struct bpf_iter_task threads;
	struct task_struct *task;

	if (!control)
		return -1;
	begin(control);
	bpf_rcu_read_lock();
	bpf_iter_task_new(&threads, NULL, BPF_TASK_ITER_ALL_THREADS);
	while ((task = bpf_iter_task_next(&threads)))
		look_at(task, control);
	bpf_iter_task_destroy(&threads);
	bpf_rcu_read_unlock();
	finish(control);
	return 0;
}
