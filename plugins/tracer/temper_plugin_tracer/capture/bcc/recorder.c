/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The recorder in the dialect of bcc, which compiles it against the headers of the running kernel.
 * CPUS, RING_BITS, NESTED_BITS and NAME_BITS are given by bcc/recorder.py. The whole node is recorded:
 * a selection is applied by user space.
 *
 * bcc's compiler has no atomic addition that returns a value. So each ring has one writer. The
 * programs run with preemption disabled, but an interrupt may record in the middle of a record:
 * within a thread's context a hardware interrupt, then a softirq, and in that an interrupt again.
 * Each depth has rings of its own. x86 keeps the order of the stores.
 */
#include <linux/cgroup-defs.h>
#include <linux/kernfs.h>
#include <linux/sched.h>
#include <linux/version.h>
#include "records.h"

#define DEPTHS 3
#define NESTED ((DEPTHS - 1) * CPUS)
#define FIELD(field) ({ typeof(field) value; bpf_probe_read_kernel(&value, sizeof(value), &field); value; })
#define ordered() asm volatile("" ::: "memory")

BPF_F_TABLE("array", u32, struct event, events, CPUS << RING_BITS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct event, nested, NESTED << NESTED_BITS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct ring, rings, DEPTHS * CPUS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct name, names, CPUS << NAME_BITS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, struct ring, name_rings, CPUS, BPF_F_MMAPABLE);
BPF_F_TABLE("array", u32, u64, is_open, 1, BPF_F_MMAPABLE);

static __always_inline bool records(void)
{
	u32 first = 0;
	u64 *open = is_open.lookup(&first);

	return open && *open;
}

/* Copy an event into the next slot of a ring. */
static __always_inline void put(struct event *event, u32 cpu, u32 depth)
{
	u32 at_ring = depth * CPUS + cpu, place;
	struct ring *ring = rings.lookup(&at_ring);
	struct event *slot;
	u64 at, size = depth ? 1 << NESTED_BITS : 1 << RING_BITS;

	if (!ring)
		return;
	at = ring->reserved;
	if (at - ring->taken >= size) {
		ring->lost++;
		return;
	}
	if (depth) {
		place = ((at_ring - CPUS) << NESTED_BITS) + (at & (size - 1));
		slot = nested.lookup(&place);
		event->lap = (at >> NESTED_BITS) + 1;
	} else {
		place = (cpu << RING_BITS) + (at & (size - 1));
		slot = events.lookup(&place);
		event->lap = (at >> RING_BITS) + 1;
	}
	if (!slot)
		return;
	*slot = *event;
	ordered();
	ring->reserved = at + 1;
}

static __always_inline int record(struct event *event, struct ring *of_cpu)
{
	u64 depth;

	depth = of_cpu->busy;
	of_cpu->busy = depth + 1;
	ordered();
	event->ns = bpf_ktime_get_boot_ns();
	if (depth == 0)
		put(event, event->cpu, 0);
	else if (depth == 1)
		put(event, event->cpu, 1);
	else
		put(event, event->cpu, 2);
	ordered();
	of_cpu->busy = depth;
	return 0;
}

static __always_inline struct ring *ring_of(u32 cpu)
{
	return rings.lookup(&cpu);
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 16, 0) /* bcf9033e5449, sched: move CPU field back */
	return FIELD(task->thread_info.cpu);
#else
	return FIELD(task->cpu);
#endif
}

int on_switch(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *prev = (struct task_struct *)ctx->args[1];
	struct task_struct *next = (struct task_struct *)ctx->args[2];
	u32 cpu = bpf_get_smp_processor_id(), state;
	struct ring *ring = ring_of(cpu);
	struct event event = {};

	if (!ring || !records())
		return 0;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0) /* fa2c3254d7cf, the state as an argument */
	state = ctx->args[3];
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(5, 14, 0) /* 2f064a59a11f, state is renamed */
	state = FIELD(prev->__state);
#else
	state = FIELD(prev->state);
#endif
	event.prev = FIELD(prev->pid);
	event.next = FIELD(next->pid);
	event.tgid = FIELD(next->tgid);
	event.cpu = cpu;
	event.target = cpu;
	event.state = state_shown(state, FIELD(prev->exit_state), ctx->args[0]);
	event.prio = FIELD(next->prio);
	event.kind = SWITCH;
	return record(&event, ring);
}

int on_waking(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *wakee = (struct task_struct *)ctx->args[0];
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);
	struct event event = {};

	if (!ring || !records())
		return 0;
	event.prev = (u32)bpf_get_current_pid_tgid();
	event.next = FIELD(wakee->pid);
	event.tgid = FIELD(wakee->tgid);
	event.cpu = cpu;
	event.target = cpu_of(wakee);
	event.prio = FIELD(wakee->prio);
	event.kind = WAKING;
	event.flags = !event.prev || ring->interrupts ? INTERRUPT_WAKES : 0;
	return record(&event, ring);
}

int on_migration(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);
	struct event event = {};

	if (!ring || !records())
		return 0;
	event.prev = cpu_of(task);
	event.next = FIELD(task->pid);
	event.tgid = FIELD(task->tgid);
	event.cpu = cpu;
	event.target = ctx->args[1];
	event.prio = FIELD(task->prio);
	event.kind = MIGRATION;
	return record(&event, ring);
}

static __always_inline int note_handler(u32 kind, u32 number, int change)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);
	struct event event = {};

	if (!ring || !records())
		return 0;
	/* One that has begun before the recording is not counted. */
	if (change > 0)
		ring->interrupts++;
	else if (ring->interrupts)
		ring->interrupts--;
	event.next = number;
	event.cpu = cpu;
	event.target = cpu;
	event.kind = kind;
	return record(&event, ring);
}

int on_interrupt(struct bpf_raw_tracepoint_args *ctx)
{
	return note_handler(INTERRUPT_BEGINS, ctx->args[0], 1);
}

int after_interrupt(struct bpf_raw_tracepoint_args *ctx)
{
	return note_handler(INTERRUPT_ENDS, ctx->args[0], -1);
}

int on_softirq(struct bpf_raw_tracepoint_args *ctx)
{
	return note_handler(SOFTIRQ_BEGINS, ctx->args[0], 1);
}

int after_softirq(struct bpf_raw_tracepoint_args *ctx)
{
	return note_handler(SOFTIRQ_ENDS, ctx->args[0], -1);
}

/* Note a thread with its name, which becomes *comm* if that is given. No interrupt does so. */
static __always_inline int note_name(struct task_struct *task, u32 kind, const char *comm, u32 by)
{
	u32 cpu = bpf_get_smp_processor_id(), place;
	struct ring *ring = name_rings.lookup(&cpu);
	struct css_set *groups;
	struct cgroup *cgroup;
	struct kernfs_node *node;
	struct name *slot;
	u64 at;

	if (!ring || !records())
		return 0;
	at = ring->reserved;
	if (at - ring->taken >= 1 << NAME_BITS) {
		ring->lost++;
		return 0;
	}
	place = (cpu << NAME_BITS) + (at & ((1 << NAME_BITS) - 1));
	slot = names.lookup(&place);
	if (!slot)
		return 0;
	groups = FIELD(task->cgroups);
	cgroup = FIELD(groups->dfl_cgrp);
	node = FIELD(cgroup->kn);
	slot->ns = bpf_ktime_get_boot_ns();
	slot->cgroup = FIELD(node->id);
	slot->tid = FIELD(task->pid);
	slot->tgid = FIELD(task->tgid);
	slot->flags = FIELD(task->flags);
	if (comm)
		bpf_probe_read_kernel_str(slot->comm, COMM_BYTES, comm);
	else
		bpf_probe_read_kernel(slot->comm, COMM_BYTES, task->comm);
	slot->kind = kind;
	slot->parent = by;
	slot->lap = (u32)(at >> NAME_BITS) + 1;
	ordered();
	ring->reserved = at + 1;
	return 0;
}

int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	return note_name((struct task_struct *)ctx->args[1], FORKED, NULL,
			 (u32)bpf_get_current_pid_tgid());
}

int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	return note_name((struct task_struct *)ctx->args[0], EXECUTED, NULL, 0);
}

int on_rename(struct bpf_raw_tracepoint_args *ctx)
{
	return note_name((struct task_struct *)ctx->args[0], RENAMED, (const char *)ctx->args[1],
			 0);
}

int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	return note_name((struct task_struct *)ctx->args[0], EXITED, NULL, 0);
}
