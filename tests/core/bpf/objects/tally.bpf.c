// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// A constant, a variable and a hash map, for the tests of what can be given at load and done after.
#include "temper_core/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

const volatile s32 step = 1;
s32 total;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} per_task SEC(".maps");

SEC("syscall")
int add_step(void *unused)
{
	total += step;
	return total;
}

SEC("syscall")
int value_of_seven(void *unused)
{
	u32 seven = 7;
	u64 *value = bpf_map_lookup_elem(&seen, &seven);

	return value ? *value : -1;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	bpf_task_storage_get(&per_task, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}
