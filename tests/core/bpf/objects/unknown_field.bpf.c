// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Reads a field that no kernel has, as a program does that was written for another kernel.
#include "temper_core/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

struct task_struct___other {
	int field_no_kernel_has;
} __attribute__((preserve_access_index));

SEC("syscall")
int read_it(void *unused)
{
	struct task_struct___other *task = (void *)bpf_get_current_task_btf();

	return task->field_no_kernel_has;
}
