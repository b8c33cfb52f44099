/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Counts, while a window is open: who wakes whom, how long threads wait for a CPU, and who had it
 * before them. The layouts are kernel_records.py's as well.
 *
 * Two objects are made of this: what tells interrupts from threads best is a symbol that kernels
 * without CONFIG_KALLSYMS_ALL do not give away, and asking for it there fails the whole load.
 */
#include "temper_core/bpf/kernel.h"

#define MOST_CPUS 1
#define MOST_PARTIES 8192
#define MOST_EDGES 8192
#define MOST_BLOCKINGS 8192
#define BUCKETS 24
#define MOST_TURNS 8 /* a power of two */
#define TIMED_EVERY 32
#define REST 0 /* the tid under which waits are counted that find no room of their own */

/* linux/preempt.h */
#define SERVING_SOFTIRQ 0x00000100
#define IN_HARDIRQ_OR_NMI 0x00ff0000

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq___clock {
	u64 clock;
};

struct cfs_rq___clock {
	struct rq___clock *rq;
};

struct sched_entity___clock {
	struct cfs_rq___clock *cfs_rq;
};

struct task_struct___clock {
	struct sched_entity___clock se;
};

/* x86 keeps the count per CPU, the others with the thread. */
struct thread_info___count {
	u64 preempt_count;
};

struct task_struct___count {
	struct thread_info___count thread_info;
};

struct pcpu_hot___count {
	int preempt_count;
};

struct pt_regs___x86 {
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	s32 syscallno;
};

#pragma clang attribute pop

struct control {
	/* Set by user space. */
	u64 length_ns;
	u64 long_wait_ns; /* who waits so long is told with those who ran meanwhile */
	u32 is_open;
	/* Set here. */
	u32 is_over;
	u64 began; /* by the clock of the run queues */
	u32 knows_waits;
	u32 knows_interrupts;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} control SEC(".maps");

/* A thread had the CPU from then on. */
struct turn {
	u64 from;
	u32 tid;
	u32 unused;
};

/* One per CPU, and no cache line of it shared. */
struct tally {
	u64 switches, wakes;
	u64 passed; /* events outside of the window */
	u64 timed, timed_ns; /* what some of the events took, without reading the clock */
	u64 lost; /* edges and blockings that found no room */
	u64 nameless; /* threads that found none */
	u64 turns; /* of which the last ones are kept */
	struct turn kept[MOST_TURNS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_CPUS);
	__type(key, u32);
	__type(value, struct tally);
} tallies SEC(".maps");

/* A thread by its tid: who it was when it was first seen in this window, and its waits. */
struct party {
	u64 cgroup;
	u32 tgid;
	u32 flags; /* task_struct's */
	u32 uid; /* the effective one */
	u32 unused;
	u64 comm[2];
	u64 process[2];
	u64 waited_ns;
	u64 woken; /* where its stamp of when it was queued is older than that */
	u32 counts[BUCKETS];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_PARTIES);
	__type(key, u32);
	__type(value, struct party);
} parties SEC(".maps");

struct edge {
	u32 waker; /* 0 is nobody */
	u32 wakee;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_EDGES);
	__type(key, struct edge);
	__type(value, u64);
} edges SEC(".maps");

struct pair {
	u32 waiter;
	u32 runner; /* 0 is nobody */
};

struct blocking {
	u64 waits;
	u64 waited_ns; /* while the runner had the CPU */
	u64 last; /* when the last of these waits ended */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_BLOCKINGS);
	__type(key, struct pair);
	__type(value, struct blocking);
} blockings SEC(".maps");

static __always_inline struct control *the_control(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&control, &first);
}

static __always_inline struct tally *the_tally(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&tallies, &cpu);
}

static __always_inline bool has_clock(void)
{
	return bpf_core_field_exists(((struct task_struct___clock *)0)->se.cfs_rq) &&
	       bpf_core_field_exists(((struct rq___clock *)0)->clock);
}

/* The clock that last_queued was read from; where there is none, another one, for the window only. */
static __always_inline u64 clock_of(struct task_struct *task)
{
	struct task_struct___clock *clocked = (void *)task;

	if (!has_clock())
		return bpf_ktime_get_ns();
	return clocked->se.cfs_rq->rq->clock;
}

/* A window ends by itself, even if user space never comes back to close it. */
static __always_inline bool is_over(struct control *control, u64 clock)
{
	if (control->is_over)
		return true;
	if (!control->began) {
		control->knows_waits = has_clock();
		control->began = clock;
		return false;
	}
	if ((s64)(clock - control->began) < (s64)control->length_ns)
		return false;
	control->is_over = 1;
	return true;
}

static __always_inline u64 begin_timing(u64 events)
{
	return events % TIMED_EVERY ? 0 : bpf_ktime_get_ns();
}

static __always_inline void end_timing(struct tally *tally, u64 began)
{
	u64 ended, reading;

	if (!began)
		return;
	ended = bpf_ktime_get_ns();
	reading = bpf_ktime_get_ns() - ended;
	tally->timed++;
	if (ended - began > reading)
		tally->timed_ns += ended - began - reading;
}

static __always_inline void read_name(u64 *name, struct task_struct *task)
{
	const u64 *words = (const u64 *)&task->comm;

	name[0] = words[0];
	name[1] = words[1];
}

/* Returns the thread's own place, made if need be; NULL where there is no room. */
static __noinline struct party *introduce(struct task_struct *task, struct tally *tally)
{
	struct party fresh = {}, *known;
	u32 tid = task->pid;

	known = bpf_map_lookup_elem(&parties, &tid);
	if (known)
		return known;
	fresh.cgroup = task->cgroups->dfl_cgrp->kn->id;
	fresh.tgid = task->tgid;
	fresh.flags = task->flags;
	fresh.uid = task->real_cred->euid.val;
	read_name(fresh.comm, task);
	read_name(fresh.process, task->group_leader);
	bpf_map_update_elem(&parties, &tid, &fresh, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&parties, &tid);
	if (!known)
		tally->nameless++;
	return known;
}

/* counts[n] are waits under 2^n us; the last one is of all longer ones. */
static __always_inline u32 bucket_of(u64 ns)
{
	u32 us, bucket = 1;

	if (ns >= 1ULL << 40)
		return BUCKETS - 1;
	us = ns * 67109 >> 26; /* a thousandth */
	if (!us)
		return 0;
	if (us >> 16) {
		bucket += 16;
		us >>= 16;
	}
	if (us >> 8) {
		bucket += 8;
		us >>= 8;
	}
	if (us >> 4) {
		bucket += 4;
		us >>= 4;
	}
	if (us >> 2) {
		bucket += 2;
		us >>= 2;
	}
	bucket += us >> 1;
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* No other CPU counts for a waiter that this one turns to. */
static __noinline int charge(struct pair *key, u64 ran, u64 now, struct tally *tally)
{
	struct blocking *known, fresh = {};

	known = bpf_map_lookup_elem(&blockings, key);
	if (!known) {
		bpf_map_update_elem(&blockings, key, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&blockings, key);
	}
	if (!known) {
		tally->lost++;
		return 0;
	}
	known->waited_ns += ran;
	if (known->last != now)
		known->waits++;
	known->last = now;
	return 0;
}

/*
 * Shares a wait out among those who had the CPU meanwhile. Not the last one alone: that is often a
 * thread of the kernel which has only just come in between.
 */
static __noinline int blame(struct task_struct *waiter, u64 queued, u64 now, struct tally *tally)
{
	struct pair key = { .waiter = waiter->pid };
	u64 until = now, from;

	for (u32 back = 1; back <= MOST_TURNS; back++) {
		struct turn *turn = &tally->kept[(tally->turns - back) % MOST_TURNS];

		if (back > tally->turns)
			break;
		from = turn->from > queued ? turn->from : queued;
		key.runner = turn->tid;
		if (from < until)
			charge(&key, until - from, now, tally);
		if (turn->from <= queued)
			break;
		until = from;
	}
	return 0;
}

static __always_inline void keep_turn(struct tally *tally, u32 tid, u64 from)
{
	struct turn *turn = &tally->kept[tally->turns++ % MOST_TURNS];

	turn->tid = tid;
	turn->from = from;
}

static __always_inline void add_to(struct party *party, u64 waited)
{
	u32 bucket = bucket_of(waited);

	party->waited_ns += waited;
	if (bucket < BUCKETS)
		party->counts[bucket]++;
}

static __noinline int add_to_rest(u64 waited)
{
	u32 tid = REST, bucket = bucket_of(waited);
	struct party *rest = bpf_map_lookup_elem(&parties, &tid);

	if (!rest || bucket >= BUCKETS)
		return 0;
	__sync_fetch_and_add(&rest->waited_ns, waited);
	__sync_fetch_and_add(&rest->counts[bucket], 1);
	return 0;
}

/*
 * Of a thread that sleeps the kernel may keep an old time at which it was queued, as look.h tells; then it books all
 * the sleep since as a wait. A sleeper has no wait, so any time that it has is an old one.
 */
static __noinline int note_waking(struct task_struct *wakee, struct tally *tally)
{
	struct party *party = introduce(wakee, tally);

	if (party)
		party->woken = bpf_ktime_get_ns();
	return 0;
}

static __always_inline u64 since_waking(struct party *party, u64 waited)
{
	u64 woken = party->woken, since;

	if (!woken)
		return waited;
	party->woken = 0;
	since = bpf_ktime_get_ns() - woken;
	return since < waited ? since : waited;
}

/* But for such sleep the kernel books the same wait in run_delay, and counts it in pcount, right after this. */
static __always_inline void count_wait(struct task_struct *next, u64 clock,
				       struct control *control, struct tally *tally)
{
	u64 queued = next->sched_info.last_queued;
	struct party *party;
	u32 tid = next->pid;
	u64 waited;

	if (!tid || !queued || !has_clock())
		return;
	waited = clock > queued ? clock - queued : 0;
	party = bpf_map_lookup_elem(&parties, &tid);
	if (!party)
		party = introduce(next, tally);
	if (party) {
		waited = since_waking(party, waited);
		add_to(party, waited);
	} else {
		add_to_rest(waited);
	}
	if (waited >= control->long_wait_ns)
		blame(next, clock - waited, clock, tally);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool is_preempted, struct task_struct *prev, struct task_struct *next)
{
	struct control *control = the_control();
	struct tally *tally = the_tally();
	u64 clock, began;

	if (!control || !tally)
		return 0;
	clock = control->is_open ? clock_of(next) : 0;
	if (!control->is_open || is_over(control, clock)) {
		tally->passed++;
		return 0;
	}
	began = begin_timing(tally->switches++);
	if (!tally->turns) {
		introduce(prev, tally);
		keep_turn(tally, prev->pid, prev->sched_info.last_arrival);
	}
	count_wait(next, clock, control, tally);
	keep_turn(tally, next->pid, clock);
	end_timing(tally, began);
	return 0;
}

#ifdef ASKS_FOR_SYMBOLS
/* Since 6.2, and up to 6.14; before and after, a variable of its own. */
extern const struct pcpu_hot___count pcpu_hot __ksym __weak;
extern const int __preempt_count __ksym __weak;

/*
 * Keeps the compiler from naming an address a second time: up to libbpf 1.1 the loading program
 * makes the second mention of a variable of the kernel's a plain number, which the verifier refuses.
 */
#define NAMED_ONCE(pointer) asm volatile("" : "+r"(pointer))

static __always_inline bool read_count_of_cpu(u32 *count)
{
	const struct pcpu_hot___count *hot = &pcpu_hot;
	const int *alone = &__preempt_count;

	NAMED_ONCE(alone);
	if (alone) {
		*count = *(const int *)bpf_this_cpu_ptr(alone);
		return true;
	}
	NAMED_ONCE(hot);
	if (hot && bpf_core_field_exists(hot->preempt_count)) {
		hot = bpf_this_cpu_ptr(hot);
		*count = hot->preempt_count;
		return true;
	}
	return false;
}
#else
static __always_inline bool read_count_of_cpu(u32 *count)
{
	return false;
}
#endif

static __always_inline bool read_count(struct task_struct *current, u32 *count)
{
	struct task_struct___count *counted = (void *)current;

	if (bpf_core_field_exists(counted->thread_info.preempt_count)) {
		*count = counted->thread_info.preempt_count;
		return true;
	}
	return read_count_of_cpu(count);
}

/* What a thread was doing when it entered the kernel last: a system call, or it was interrupted. */
static __always_inline bool is_in_system_call(struct task_struct *current)
{
	void *entered = (void *)bpf_task_pt_regs(current);
	struct pt_regs___x86 *x86 = entered;
	struct pt_regs___arm64 *arm64 = entered;

	if (bpf_core_field_exists(x86->orig_ax))
		return (s64)x86->orig_ax >= 0;
	if (bpf_core_field_exists(arm64->syscallno))
		return arm64->syscallno >= 0;
	return true;
}

/*
 * Whether it is not the current thread that does this. What a thread sends over the loopback is
 * delivered in a soft interrupt too, but in the midst of its system call: that counts as its doing.
 */
static __always_inline bool is_interrupt(struct task_struct *current, struct control *control)
{
	bool is_known;
	u32 count = 0;

	is_known = read_count(current, &count);
	if (is_known) {
		if (!control->knows_interrupts)
			control->knows_interrupts = 1;
		if (count & IN_HARDIRQ_OR_NMI)
			return true;
		if (!(count & SERVING_SOFTIRQ))
			return false;
	}
	if (current->flags & PF_KTHREAD)
		return is_known;
	return !is_in_system_call(current);
}

static __noinline int add_edge(struct edge *key, struct task_struct *waker,
			       struct task_struct *wakee, struct tally *tally)
{
	u64 *count, none = 0;

	bpf_map_update_elem(&edges, key, &none, BPF_NOEXIST);
	count = bpf_map_lookup_elem(&edges, key);
	if (!count) {
		tally->lost++;
		return 0;
	}
	__sync_fetch_and_add(count, 1);
	if (key->waker)
		introduce(waker, tally);
	introduce(wakee, tally);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *wakee)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct control *control = the_control();
	struct tally *tally = the_tally();
	struct edge key = {};
	u64 *count, began;

	if (!control || !tally)
		return 0;
	if (!control->is_open || control->is_over || !control->began) {
		tally->passed++;
		return 0;
	}
	began = begin_timing(tally->wakes++);
	key.wakee = wakee->pid;
	if (waker != wakee && !is_interrupt(waker, control))
		key.waker = waker->pid;
	if (wakee->sched_info.last_queued)
		note_waking(wakee, tally);
	count = bpf_map_lookup_elem(&edges, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		add_edge(&key, waker, wakee, tally);
	end_timing(tally, began);
	return 0;
}
