/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Records scheduler events into a ring per CPU, and the names of threads into one ring of all CPUs.
 *
 * User space drains the rings while it records. A slot is reserved by an atomic addition, because
 * an interrupt may record in the middle of another record. It is whole when its last field is the
 * lap of the ring, so user space stops reading before a slot that is still being written.
 * records.h has the layouts.
 */
#include "temper_core/bpf/kernel.h"
#include "plugins/tracer/temper_plugin_tracer/capture/records.h"

#define MOST_SELECTED 8
#define SLACK 8 /* slots that nested records of one CPU may take after a ring was seen to have room */
#define MOST_CPUS_AT_ONCE 64 /* that note a name at one moment */
#define MAX_RT_PRIO 100
#define TIMED_EVERY 64
#define BPF_RB_FORCE_WAKEUP (1ULL << 1) /* linux/bpf.h */

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info___cpu {
	u32 cpu;
};

struct task_struct___cpu {
	struct thread_info___cpu thread_info;
};

struct cfs_rq___throttled {
	int throttle_count;
};

struct sched_entity___throttled {
	struct cfs_rq___throttled *cfs_rq;
};

struct task_struct___throttled {
	struct sched_entity___throttled se;
	bool throttled;
};

#pragma clang attribute pop

struct settings {
	u64 near_ns;
	u64 cgroups[MOST_SELECTED]; /* ids of selected cgroups */
	u32 levels[MOST_SELECTED];  /* their depths in the hierarchy */
	u32 cgroup_count;
	u32 selects; /* 0: the whole node */
	u32 selects_processes;
	u32 selects_cpus;
	u32 ring_events; /* a power of two, as is ring_names */
	u32 ring_names;
	u32 ring_bits, name_bits;
	u32 wraps; /* the newest events are kept, instead of the oldest */
	u32 due_events; /* user space is woken by each so many of a ring, a power of two, as is due_names */
	u32 due_names;
};

const volatile struct settings settings = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct event);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct name);
} names SEC(".maps");

/* One per CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct ring);
} name_ring SEC(".maps");

/* Wakes user space. What it holds says nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} signals SEC(".maps");

/* Selected processes by tgid. Their children are added as they are forked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} processes SEC(".maps");

static __always_inline struct ring *ring_of(u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

/* The ring of the names, NULL while nothing is recorded. */
static __always_inline struct ring *open_name_ring(void)
{
	u32 first = 0;
	struct ring *ring = bpf_map_lookup_elem(&name_ring, &first);

	return ring && ring->is_open ? ring : NULL;
}

/* Wake user space by the last of each *due* records. */
static __always_inline void signal_due(u64 at, u32 due)
{
	u32 nothing = 0;

	if (!settings.wraps && (at & (due - 1)) == due - 1)
		bpf_ringbuf_output(&signals, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* The id of a cgroup whose address was read, and not followed. */
static __always_inline u64 id_of(struct cgroup *cgroup)
{
#ifdef PLAIN
	return BPF_CORE_READ(cgroup, kn, id);
#else
	cgroup = bpf_rdonly_cast(cgroup, bpf_core_type_id_kernel(struct cgroup));
	return cgroup->kn->id;
#endif
}

static __always_inline bool is_below_selected(struct cgroup *cgroup)
{
	struct cgroup *above;
	void *ancestors = (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors);

	for (u32 place = 0; place < MOST_SELECTED && place < settings.cgroup_count; place++) {
		u32 level = settings.levels[place];

		if (cgroup->level < (int)level)
			continue;
		if (bpf_probe_read_kernel(&above, sizeof(above), ancestors + level * sizeof(above)))
			continue;
		if (id_of(above) == settings.cgroups[place])
			return true;
	}
	return false;
}

/*
 * Each CPU remembers a cgroup of either kind, by its id, which is never given out again. A cgroup
 * never gets another parent.
 */
static __always_inline bool is_in_selected_cgroup(struct task_struct *task, struct ring *ring)
{
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;
	u64 id = cgroup->kn->id;

	if (id == ring->unselected)
		return false;
	if (id == ring->selected)
		return true;
	if (is_below_selected(cgroup)) {
		ring->selected = id;
		return true;
	}
	ring->unselected = id;
	return false;
}

static __always_inline bool is_selected(struct task_struct *task, struct ring *ring)
{
	u32 tgid = task->tgid;

	if (!tgid)
		return false; /* the idle threads */
	if (settings.selects_processes && bpf_map_lookup_elem(&processes, &tgid))
		return true;
	return settings.cgroup_count && is_in_selected_cgroup(task, ring);
}

/* A selected thread runs, or waits, on this CPU. */
static __always_inline void mark_near(u32 cpu, u64 now)
{
	struct ring *ring = ring_of(cpu);

	if (ring)
		ring->near = now + settings.near_ns;
}

static __always_inline bool is_near(u32 cpu, u64 now)
{
	struct ring *ring = ring_of(cpu);

	return ring && ring->near >= now;
}

/* What happens on this CPU, and to the threads that are queued there, is not recorded. */
static __always_inline bool is_left_out(u32 cpu)
{
	struct ring *ring;

	if (!settings.selects_cpus)
		return false;
	ring = ring_of(cpu);
	return !ring || ring->is_left_out;
}

static __always_inline int pass(struct ring *ring)
{
	if (settings.wraps)
		ring->passed++;
	return 0;
}

/* Reserve a slot of the ring of this CPU. NULL if it has no room. */
static __always_inline struct event *new_event(struct ring *ring, u32 cpu, u64 *at)
{
	u32 place;

	if (!settings.wraps && ring->reserved - ring->taken + SLACK >= settings.ring_events) {
		__sync_fetch_and_add(&ring->lost, 1);
		return NULL;
	}
	*at = __sync_fetch_and_add(&ring->reserved, 1);
	signal_due(*at, settings.due_events);
	place = (cpu << settings.ring_bits) + (*at & (settings.ring_events - 1));
	return bpf_map_lookup_elem(&events, &place);
}

/*
 * Publish a record by its last four bytes: kind, flags and lap. The exchange orders them after the
 * other fields on every machine.
 */
static __always_inline void commit(struct ring *ring, struct event *event, u64 at, u32 kind,
				   u32 flags)
{
	u32 lap = (at >> settings.ring_bits) + 1;
	u64 began = event->ns;

	__sync_lock_test_and_set((u32 *)&event->kind, kind | flags << 8 | lap << 16);
	if (settings.wraps && at % TIMED_EVERY == 0) {
		ring->timed++;
		ring->timed_ns += bpf_ktime_get_boot_ns() - began;
	}
}

/*
 * The thread that leaves its CPU may not run before the quota of its cgroup is filled up. Since 6.18
 * each thread is taken off the queue ("sched/fair: Switch to task based throttle model"), and before
 * with the queue of its cgroup.
 */
static __always_inline bool is_throttled(struct task_struct *trusted)
{
	struct task_struct___throttled *task = (void *)trusted;

	if (trusted->prio < MAX_RT_PRIO)
		return false; /* the queue of its cgroup is not its own */
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	if (bpf_core_field_exists(struct cfs_rq___throttled, throttle_count))
		return BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
	return false;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);
	bool stays_runnable = preempt || !state;
	struct event *event;
	u64 now, at;

	if (!ring || !ring->is_open || is_left_out(cpu))
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (settings.selects) {
		if (is_selected(next, ring) || is_selected(prev, ring))
			mark_near(cpu, now);
		else if (ring->near < now)
			return pass(ring);
	}
	event = new_event(ring, cpu, &at);
	if (!event)
		return 0;
	event->ns = now;
	event->prev = prev->pid;
	event->next = next->pid;
	event->tgid = next->tgid;
	event->cpu = cpu;
	event->target = cpu;
	event->state = state_shown(state, prev->exit_state, preempt);
	event->prio = next->prio;
	commit(ring, event, at, SWITCH, stays_runnable && is_throttled(prev) ? IS_THROTTLED : 0);
	return 0;
}

static __always_inline u32 cpu_of(struct task_struct *task)
{
	return ((struct task_struct___cpu *)task)->thread_info.cpu;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id(), target = cpu_of(wakee);
	struct ring *ring = ring_of(cpu);
	struct event *event;
	u64 now, at;

	if (!ring || !ring->is_open || is_left_out(target))
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (settings.selects) {
		if (is_selected(wakee, ring))
			mark_near(target, now);
		else if (!is_near(target, now) && !is_selected(waker, ring))
			return pass(ring);
	}
	event = new_event(ring, cpu, &at);
	if (!event)
		return 0;
	event->ns = now;
	event->prev = waker->pid;
	event->next = wakee->pid;
	event->tgid = wakee->tgid;
	event->cpu = cpu;
	event->target = target;
	event->state = 0;
	event->prio = wakee->prio;
	commit(ring, event, at, WAKING, !waker->pid || ring->interrupts ? INTERRUPT_WAKES : 0);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migration, struct task_struct *task, int target)
{
	u32 cpu = bpf_get_smp_processor_id(), source = cpu_of(task);
	struct ring *ring = ring_of(cpu);
	struct event *event;
	u64 now, at;

	if (!ring || !ring->is_open || (is_left_out(source) && is_left_out(target)))
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (settings.selects) {
		if (is_selected(task, ring))
			mark_near(target, now);
		else if (!is_near(target, now))
			return pass(ring);
	}
	event = new_event(ring, cpu, &at);
	if (!event)
		return 0;
	event->ns = now;
	event->prev = source;
	event->next = task->pid;
	event->tgid = task->tgid;
	event->cpu = cpu;
	event->target = target;
	event->state = 0;
	event->prio = task->prio;
	commit(ring, event, at, MIGRATION, 0);
	return 0;
}

static __always_inline int note_handler(u32 kind, u32 number, int change)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct ring *ring = ring_of(cpu);
	struct event *event;
	u64 now, at;

	if (!ring || !ring->is_open)
		return 0;
	/* One that has begun before the recording is not counted. */
	if (change > 0)
		ring->interrupts++;
	else if (ring->interrupts)
		ring->interrupts--;
	if (is_left_out(cpu))
		return 0;
	now = bpf_ktime_get_boot_ns();
	if (settings.selects && ring->near < now)
		return pass(ring);
	event = new_event(ring, cpu, &at);
	if (!event)
		return 0;
	event->ns = now;
	event->prev = 0;
	event->next = number;
	event->tgid = 0;
	event->cpu = cpu;
	event->target = cpu;
	event->state = 0;
	event->prio = 0;
	commit(ring, event, at, kind, 0);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_interrupt, int irq)
{
	return note_handler(INTERRUPT_BEGINS, irq, 1);
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(after_interrupt, int irq)
{
	return note_handler(INTERRUPT_ENDS, irq, -1);
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(on_softirq, unsigned int vector)
{
	return note_handler(SOFTIRQ_BEGINS, vector, 1);
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(after_softirq, unsigned int vector)
{
	return note_handler(SOFTIRQ_ENDS, vector, -1);
}

/* Copy the name of *task*. */
static __always_inline void copy_comm(struct name *name, struct task_struct *task)
{
#ifdef PLAIN
	bpf_probe_read_kernel(name->comm, sizeof(name->comm), task->comm);
#else
	const u64 *from = (const u64 *)task->comm;
	u64 *to = (u64 *)name->comm;

	to[0] = from[0];
	to[1] = from[1];
#endif
}

/* The thread as what may be read without a proof that it lives on. */
static __always_inline struct task_struct *readable(struct task_struct *task)
{
#ifdef PLAIN
	return task;
#else
	return bpf_rdonly_cast(task, bpf_core_type_id_kernel(struct task_struct));
#endif
}

/* Note a thread with its name, which becomes *comm* if that is given. */
static __always_inline void note_name(struct task_struct *trusted, u32 kind, const char *comm)
{
	struct task_struct *task = readable(trusted);
	struct ring *ring = open_name_ring();
	struct name *name;
	u32 place;
	u64 at;

	if (!ring)
		return;
	if (ring->reserved - ring->taken + SLACK * MOST_CPUS_AT_ONCE >= settings.ring_names) {
		__sync_fetch_and_add(&ring->lost, 1);
		return;
	}
	at = __sync_fetch_and_add(&ring->reserved, 1);
	signal_due(at, settings.due_names);
	place = at & (settings.ring_names - 1);
	name = bpf_map_lookup_elem(&names, &place);
	if (!name)
		return;
	name->ns = bpf_ktime_get_boot_ns();
	name->cgroup = task->cgroups->dfl_cgrp->kn->id;
	name->tid = task->pid;
	name->tgid = task->tgid;
	name->flags = task->flags;
	name->is_selected = is_selected(task, ring);
	if (comm)
		bpf_probe_read_kernel_str(name->comm, sizeof(name->comm), comm);
	else
		copy_comm(name, task);
	name->kind = kind;
	__sync_lock_test_and_set(&name->lap, (u32)(at >> settings.name_bits) + 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = child->tgid, one = 1;

	if (!open_name_ring())
		return 0;
	if (settings.selects_processes && tgid != (u32)parent->tgid) {
		u32 of = parent->tgid;

		if (bpf_map_lookup_elem(&processes, &of))
			bpf_map_update_elem(&processes, &tgid, &one, BPF_ANY);
	}
	note_name(child, FORKED, NULL);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	note_name(task, EXECUTED, NULL);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	note_name(task, RENAMED, comm);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	note_name(task, EXITED, NULL);
	return 0;
}

#ifndef PLAIN
/* Note all threads that live now. */
SEC("syscall")
int note_living(void *context)
{
	struct bpf_iter_task walk;
	struct task_struct *task;

	bpf_rcu_read_lock();
	bpf_iter_task_new(&walk, NULL, BPF_TASK_ITER_ALL_THREADS);
	while ((task = bpf_iter_task_next(&walk)))
		if (task->pid)
			note_name(task, LIVES, NULL);
	bpf_iter_task_destroy(&walk);
	bpf_rcu_read_unlock();
	return 0;
}
#endif
