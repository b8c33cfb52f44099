// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Keeps a number per thread the way the engine does: task storage of the same name, and a struct
// that has the member somewhere. `place` gives every thread of one process the layer asked for.
#include "temper_core/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

struct task_ctx {
	int pid;
	u64 before : 40;
	u32 layer_id;
	char after[40];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

struct order {
	u32 tgid;
	u32 layer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct order);
} orders SEC(".maps");

SEC("syscall")
int place(void *unused)
{
	struct bpf_iter_task threads;
	struct task_struct *task;
	struct task_ctx *found;
	struct order *order;
	u32 first = 0;

	order = bpf_map_lookup_elem(&orders, &first);
	if (!order)
		return -1;
	bpf_rcu_read_lock();
	bpf_iter_task_new(&threads, NULL, BPF_TASK_ITER_ALL_THREADS);
	while ((task = bpf_iter_task_next(&threads))) {
		if (task->tgid != order->tgid)
			continue;
		found = bpf_task_storage_get(&task_ctxs, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (found)
			found->layer_id = order->layer;
	}
	bpf_iter_task_destroy(&threads);
	bpf_rcu_read_unlock();
	return 0;
}
