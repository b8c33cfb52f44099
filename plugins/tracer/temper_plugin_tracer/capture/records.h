/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel programs of all recorders write. The layouts are those of capture/kernel_layout.py
 * and trace/events.py.
 */
#ifndef TASK_REPORT
#define TASK_REPORT 0x7f
#endif
#ifndef TASK_IDLE
#define TASK_IDLE 0x402
#endif
#ifndef TASK_RTLOCK_WAIT
#define TASK_RTLOCK_WAIT 0x1000
#endif
#ifndef TASK_FROZEN
#define TASK_FROZEN 0x8000
#endif
#define PREEMPTED 0x100
#define REPORT_IDLE 0x80
#define UNINTERRUPTIBLE 0x2
/* Flags of a waking, and of a switch. */
#define INTERRUPT_WAKES 1
#define IS_THROTTLED 1
#define COMM_BYTES 16

enum kind {
	SWITCH = 1,
	WAKING = 2,
	MIGRATION = 3,
	INTERRUPT_BEGINS = 4,
	INTERRUPT_ENDS = 5,
	SOFTIRQ_BEGINS = 6,
	SOFTIRQ_ENDS = 7,
};

enum name_kind {
	LIVES = 1,
	FORKED = 2,
	EXECUTED = 3,
	RENAMED = 4,
	EXITED = 5,
};

struct event {
	u64 ns;
	u32 prev, next, tgid;
	u16 cpu, target, state;
	s16 prio;
	u8 kind, flags;
	u16 lap;
};

struct name {
	u64 ns;
	u64 cgroup;
	u32 tid, tgid;
	char comm[COMM_BYTES];
	u16 kind, is_selected;
	u32 flags;
	u32 parent; /* of a new thread: who has made it (bcc) */
	u32 lap;
};

/* One per CPU. What user space writes has a cache line of its own. */
struct ring {
	u64 reserved;
	u64 lost;
	u64 interrupts; /* handlers that run now */
	u64 timed, timed_ns; /* what some of the events took, where the newest are kept */
	u64 passed; /* events that the selection left out, counted there too */
	u64 busy;   /* programs that record now, one in the interrupt of another (bcc) */
	u64 unused;
	u64 taken;     /* user space: the events before it are drained */
	u64 near;      /* until then a selected thread may wait or run here */
	u64 is_left_out; /* user space: nothing of this CPU is recorded (BPF object) */
	u64 is_open;     /* user space: recording has begun (BPF object) */
	u64 selected, unselected; /* a cgroup of each kind that was seen here (BPF object) */
	u64 unused_too[2];
};

/* The state of a thread that leaves a CPU, as the trace point sched_switch shows it. */
static __always_inline u32 state_shown(u32 state, u32 exit_state, bool preempt)
{
	u32 shown = (state | exit_state) & TASK_REPORT;

	if (preempt)
		return PREEMPTED;
	if ((state & TASK_IDLE) == TASK_IDLE)
		return REPORT_IDLE;
	if (state & (TASK_RTLOCK_WAIT | TASK_FROZEN))
		return UNINTERRUPTIBLE;
	if (!(shown & (shown - 1)))
		return shown; /* one bit, or none */
	for (u32 bit = 0x40; bit; bit >>= 1)
		if (shown & bit)
			return bit; /* the highest one, as fls() in task_state_index() */
	return 0;
}
