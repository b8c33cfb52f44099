// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Looks at every thread of the reader's pid namespace, while somebody reads the iterator: for
// kernels before 6.7.
#include "temper_core/bpf/kernel.h"
#include "look.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter_meta {
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

SEC("iter/task")
int look(struct bpf_iter__task *context)
{
	struct control *control = the_control();
	struct task_struct *task = context->task;

	if (!control)
		return 0;
	if (!context->meta->seq_num)
		begin(control);
	if (task)
		look_at(task, control);
	else
		finish(control);
	return 0;
}
