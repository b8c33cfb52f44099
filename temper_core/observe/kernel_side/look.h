/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * One look at a thread: what it used since the last look, for a row of its own or for the sums of
 * its cgroup. look.bpf.c and look_iter.bpf.c bring the threads. layout.py has the layouts as well.
 *
 * A thread that slept all the time costs the walk to it and no more.
 */
#ifndef TEMPER_LOOK_H
#define TEMPER_LOOK_H

#include "temper_core/bpf/kernel.h"

#define MOST_GROUPS 4096
#define MOST_CGROUPS 8192
#define MOST_OWNERS 2048
#define MOST_PATHS 128
#define MOST_LEVELS 32
#define PATH_BYTES 1024
#define NAME_BYTES 256
#define BINS 128
#define OCTAVES (BINS / 4)
/* Threads of an owner and octave with their whole weight. CPU time is limited, and waiting is not. */
#define RAN_SHARE 32
#define WAITED_SHARE 8
#define OWNER_NAME_BYTES 64
#define BIN_UNIT_SHIFT 10
#define ON_CPU_WORDS 128
#define NS_PER_TICK 10000000 /* user space has 100 ticks a second on every machine but alpha */
#define CLOCK_SLACK_NS 10000000 /* how far the clocks of CPUs may be apart, and behind */
#define BIRTH_SLACK_NS 20000000
#define WAIT_SLACK_NS BIRTH_SLACK_NS
#define CANDIDATES 3 /* for each row, had this look been like the last */
#define MARGIN 2 /* by which all may have used less than in the last look */
#define NICE_0 120
#define UNKNOWN -1
#define HIERARCHY_SHIFT 60
#define NO_GROUP 0xffffffff

char LICENSE[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	u32 cpu;
};

struct rq {
	u64 clock;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity___look {
	u64 nr_migrations;
	struct cfs_rq *cfs_rq;
};

struct task_struct___look {
	struct thread_info thread_info;
	int on_cpu;
	unsigned int rt_priority;
	int nr_cpus_allowed;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct sched_entity___look se;
};

struct cgroup_subsys_state___look {
	struct cgroup *cgroup;
};

struct css_set___look {
	struct cgroup_subsys_state *subsys[1];
};

#pragma clang attribute pop

enum cgroup_subsys_id {
	cpuset_cgrp_id,
	cpu_cgrp_id,
	cpuacct_cgrp_id,
	memory_cgrp_id,
	pids_cgrp_id,
};

/* What a thread has used since it was forked, or since the last look. */
struct counts {
	u64 run_ns, delay_ns, runs, voluntary, involuntary, migrations;
};

/* What a thread is remembered by until the next look. */
struct last {
	struct counts counts;
	u64 waiting_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct last);
} last_counts SEC(".maps");

struct row {
	u32 tid, tgid;
	char comm[TASK_COMM_LEN];
	char process[TASK_COMM_LEN];
	u64 start_ticks;
	u32 cpu;
	u32 uid;
	s64 run_ns, delay_ns, runs, voluntary, involuntary, migrations;
	u64 waiting_ns;
	s32 policy, nice;
	u32 rt_priority, allowed;
	u32 group;
	u32 is_kthread;
	u64 rank_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, struct row);
} rows SEC(".maps");

/* A cgroup in this look: all its threads, and what those without a row used that ran. */
struct group {
	u64 cgroup;
	u32 living;
	u32 threads;
	struct counts used;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* Where a cgroup is among the groups of a look, and when user space was last told its path. */
struct place {
	u32 look;
	u32 group;
	u32 told;
	u32 unused;
	u64 owner;
};

/*
 * A pod, user or service in this look: its groups, and how many of its threads ran or waited how
 * long, by octaves.
 */
struct owner {
	u32 look;
	u32 groups;
	u16 ran[OCTAVES];
	u16 waited[OCTAVES];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_OWNERS);
	__type(key, u64);
	__type(value, struct owner);
} owners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOST_CGROUPS);
	__type(key, u64);
	__type(value, struct place);
} places SEC(".maps");

/* The names from the cgroup up to the root, each with a zero behind it. */
struct path {
	u64 cgroup;
	u32 bytes;
	u32 is_whole;
	char names[PATH_BYTES + NAME_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_PATHS);
	__type(key, u32);
	__type(value, struct path);
} paths SEC(".maps");

struct control {
	/* Set by user space before each look. */
	u32 look; /* one more each time */
	u32 is_baseline;
	u32 names_wanted; /* cgroups that were told under another number are told again */
	u32 detail; /* rows wanted, at most; there is room for more candidates */
	u32 most_groups;
	u32 most_of_owner; /* groups; the owner's own group takes its other cgroups */
	/* Of the look; cleared by user space before it. */
	u32 seen, rows, groups, paths, unnamed, unkept;
	u64 last_css;
	u32 last_group;
	u32 unused_too;
	u64 last_owner;
	/* Kept from look to look. */
	u64 least_ns; /* who ranked less in the last look has no row */
	u64 candidate_ns; /* who uses less in this look is no candidate for a row */
	u64 clock, since; /* the run queue's, as sched_info has it */
	u64 now, before; /* since boot */
	u64 floor_ns; /* set by user space: who used less has no row */
	/* How many threads ran or waited how long, in steps of a quarter octave. */
	u32 bins[BINS];
	/* Who was on a CPU, by the last bits of the tid: in this look, and in the one before. */
	u64 on_cpu[2][ON_CPU_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} control SEC(".maps");

static __always_inline struct control *the_control(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&control, &first);
}

static __always_inline struct task_struct___look *more(struct task_struct *task)
{
	return (void *)task;
}

/* Nobody may ask for this CPU's clock, but its run queue has read it at the last tick or switch. */
static __always_inline u64 queue_clock(void)
{
	struct task_struct *self = bpf_get_current_task_btf();
	u64 clock = self->sched_info.last_arrival, of_queue;

	if (bpf_core_field_exists(struct sched_entity___look, cfs_rq) &&
	    bpf_core_field_exists(struct cfs_rq, rq)) {
		of_queue = BPF_CORE_READ(more(self), se.cfs_rq, rq, clock);
		if (of_queue > clock)
			clock = of_queue;
	}
	return clock;
}

static __always_inline void begin(struct control *control)
{
	control->since = control->clock > CLOCK_SLACK_NS ? control->clock - CLOCK_SLACK_NS : 0;
	control->clock = queue_clock();
	control->before = control->now;
	control->now = bpf_ktime_get_boot_ns();
}

static __always_inline u64 *on_cpu_word(struct control *control, u32 look, u32 tid)
{
	return &control->on_cpu[look & 1][tid / 64 % ON_CPU_WORDS];
}

static __always_inline u64 on_cpu_bit(u32 tid)
{
	return 1ULL << (tid % 64);
}

/* ---- cgroups ---- */

static __always_inline void *parent_of(struct kernfs_node *node)
{
	struct kernfs_node___old *old = (void *)node;

	if (bpf_core_field_exists(struct kernfs_node, __parent))
		return BPF_CORE_READ(node, __parent);
	return BPF_CORE_READ(old, parent);
}

/* Functions that are not static are judged once by the verifier, whatever they are called with. */
__noinline u32 tell_path(u64 cgroup, u64 address)
{
	struct kernfs_node *node = (void *)address;
	struct control *control = the_control();
	u32 place, used = 0;
	struct path *path;
	long length;

	if (!control)
		return 0;
	place = control->paths;
	path = bpf_map_lookup_elem(&paths, &place);
	if (!path)
		return 0;
	control->paths = place + 1;
	for (int level = 0; node && level < MOST_LEVELS; level++) {
		if (used >= PATH_BYTES)
			break;
		length = bpf_probe_read_kernel_str(path->names + used, NAME_BYTES,
						   BPF_CORE_READ(node, name));
		if (length < 0 || length > NAME_BYTES)
			break;
		used += length;
		node = parent_of(node);
	}
	path->cgroup = cgroup;
	path->bytes = used;
	path->is_whole = !node;
	return 1;
}

/* The last group takes all the cgroups that have no room of their own, and has none itself. */
static __always_inline u32 new_group(struct control *control, u64 cgroup)
{
	u32 group = control->groups, last = control->most_groups - 1;
	struct group *fresh;

	if (group > last)
		return last;
	fresh = bpf_map_lookup_elem(&groups, &group);
	if (!fresh)
		return NO_GROUP;
	control->groups = group + 1;
	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->cgroup = group < last ? cgroup : 0;
	return group;
}

static __always_inline struct cgroup *cgroup_of(struct css_set *css, u32 subsystem)
{
	void *at = (void *)css + bpf_core_field_offset(struct css_set___look, subsys);
	struct cgroup_subsys_state___look *state;

	if (bpf_probe_read_kernel(&state, sizeof(state), at + subsystem * sizeof(void *)))
		return NULL;
	return BPF_CORE_READ(state, cgroup);
}

/* Runtimes name the cgroup of a pod pod1234, or kubepods-burstable-pod1234.slice. */
__noinline u32 names_a_pod(u64 address)
{
	struct kernfs_node *node = (void *)address;
	char name[OWNER_NAME_BYTES] = {};

	if (bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(node, name)) < 0)
		return 0;
	if (name[0] == 'p' && name[1] == 'o' && name[2] == 'd')
		return 1;
	for (int at = 0; at < OWNER_NAME_BYTES - 4; at++) {
		if (name[at] == '-' && name[at + 1] == 'p' && name[at + 2] == 'o' &&
		    name[at + 3] == 'd')
			return 1;
	}
	return 0;
}

/* Below these slices whoever has a cgroup may name others like pods. */
__noinline u32 names_users_or_services(u64 address)
{
	struct kernfs_node *node = (void *)address;
	char name[16] = {};

	if (bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(node, name)) < 0)
		return 0;
	return !__builtin_memcmp(name, "user.slice", 11) ||
	       !__builtin_memcmp(name, "system.slice", 13);
}

/* The outermost cgroup with the name of a pod, or else the one two levels below the root. */
__noinline u64 owner_of(u64 address)
{
	struct kernfs_node *node = (void *)address, *parent;
	u64 first = address, second = address, pod = 0;

	for (int level = 0; node && level < MOST_LEVELS; level++) {
		parent = parent_of(node);
		if (!parent)
			break;
		second = first;
		first = (u64)node;
		if (names_a_pod((u64)node))
			pod = (u64)node;
		node = parent;
	}
	return pod && !names_users_or_services(first) ? pod : second;
}

/*
 * The cgroup itself, or its ancestor from which owner_of reaches the root. Otherwise the maker of
 * deep cgroups would choose their owners.
 */
static __always_inline u64 within_reach(struct cgroup *cgroup)
{
	void *at = (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors);

	if (bpf_core_field_exists(cgroup->ancestors) &&
	    BPF_CORE_READ(cgroup, level) >= MOST_LEVELS)
		bpf_probe_read_kernel(&cgroup, sizeof(cgroup),
				      at + (MOST_LEVELS - 1) * sizeof(void *));
	return (u64)BPF_CORE_READ(cgroup, kn);
}

static __noinline struct owner *the_owner(u64 id, u32 look)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &id), fresh = {};

	if (owner && owner->look == look)
		return owner;
	fresh.look = look;
	if (owner) {
		*owner = fresh;
		return owner;
	}
	bpf_map_update_elem(&owners, &id, &fresh, BPF_ANY);
	return bpf_map_lookup_elem(&owners, &id);
}

/* The group of a cgroup that has none in this look yet. */
__noinline u32 place_group(u64 id, u64 address, u64 owner)
{
	struct control *control = the_control();
	struct place *place, fresh = {};
	u32 group;

	if (!control)
		return NO_GROUP;
	place = bpf_map_lookup_elem(&places, &id);
	if (place && place->look == control->look)
		return place->group;
	group = new_group(control, id);
	if (group >= control->most_groups - 1)
		return group;
	fresh.look = control->look;
	fresh.group = group;
	fresh.owner = owner;
	fresh.told = place ? place->told : control->names_wanted - 1;
	if (fresh.told != control->names_wanted) {
		if (tell_path(id, address))
			fresh.told = control->names_wanted;
		else
			control->unnamed++;
	}
	if (place)
		*place = fresh;
	else
		bpf_map_update_elem(&places, &id, &fresh, BPF_ANY);
	return group;
}

/*
 * As the proc tier: the unified cgroup, and where that is the root the first one of version 1 that
 * says more. A number is of one hierarchy only, so it is marked with which.
 */
#define try_version_1(name, hierarchy)                                                            \
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, name) && !level) {                   \
		other = cgroup_of(css, bpf_core_enum_value(enum cgroup_subsys_id, name));          \
		if (other && other != cgroup && BPF_CORE_READ(other, level)) {                     \
			cgroup = other;                                                            \
			mark = hierarchy;                                                          \
			level = 1;                                                                 \
		}                                                                                  \
	}

__noinline u32 find_group(void)
{
	struct control *control = the_control();
	struct place *place;
	struct cgroup *cgroup, *other;
	struct kernfs_node *node;
	struct css_set *css;
	u64 mark = 0, id, owner_node;
	struct owner *owner;
	int level;

	if (!control)
		return NO_GROUP;
	css = (void *)control->last_css;
	cgroup = BPF_CORE_READ(css, dfl_cgrp);
	level = BPF_CORE_READ(cgroup, level);
	try_version_1(cpu_cgrp_id, 1);
	try_version_1(cpuacct_cgrp_id, 2);
	try_version_1(memory_cgrp_id, 3);
	try_version_1(pids_cgrp_id, 4);
	try_version_1(cpuset_cgrp_id, 5);
	node = BPF_CORE_READ(cgroup, kn);
	id = BPF_CORE_READ(node, id) | mark << HIERARCHY_SHIFT;
	place = bpf_map_lookup_elem(&places, &id);
	if (place && place->look == control->look) {
		control->last_owner = place->owner;
		return place->group;
	}
	owner_node = owner_of(within_reach(cgroup));
	control->last_owner = BPF_CORE_READ((struct kernfs_node *)owner_node, id) |
			      mark << HIERARCHY_SHIFT;
	owner = the_owner(control->last_owner, control->look);
	if (owner && owner->groups >= control->most_of_owner)
		return place_group(control->last_owner, owner_node, control->last_owner);
	if (owner)
		owner->groups++;
	return place_group(id, (u64)node, control->last_owner);
}

/* Threads of a process are neighbours on the walk, and share what says where they live. */
static __always_inline struct group *group_of(struct task_struct *task, struct control *control)
{
	u64 css = (u64)task->cgroups;
	u32 group;

	if (css != control->last_css) {
		control->last_css = css;
		control->last_group = find_group();
	}
	group = control->last_group;
	return bpf_map_lookup_elem(&groups, &group);
}

/* ---- what a thread used ---- */

static __always_inline void count_up(struct counts *counts, struct task_struct *task)
{
	counts->run_ns = task->se.sum_exec_runtime;
	if (bpf_core_field_exists(task->sched_info.run_delay)) {
		counts->delay_ns = task->sched_info.run_delay;
		counts->runs = task->sched_info.pcount;
	}
	counts->voluntary = more(task)->nvcsw;
	counts->involuntary = more(task)->nivcsw;
	if (bpf_core_field_exists(struct sched_entity___look, nr_migrations))
		counts->migrations = more(task)->se.nr_migrations;
}

/* Leaves in *used* the difference to *last*, and in *last* what *used* was. */
static __always_inline void take(struct counts *used, struct counts *last)
{
	struct counts now = *used;

	used->run_ns -= last->run_ns;
	used->delay_ns -= last->delay_ns;
	used->runs -= last->runs;
	used->voluntary -= last->voluntary;
	used->involuntary -= last->involuntary;
	used->migrations -= last->migrations;
	*last = now;
}

/*
 * One whose counters were never seen: born since the last look, and so with all it has used. A
 * thread that executes takes over the age of its leader (de_thread), so what it has used tells too.
 */
static __always_inline bool is_born_since(struct task_struct *task, struct counts *used,
					  struct control *control)
{
	u64 since = control->before - BIRTH_SLACK_NS;

	return task->start_boottime >= since || used->run_ns <= control->now - since;
}

/*
 * Since when it has been queued, or 0. Of a thread that sleeps the kernel may keep an old time: one that went to sleep
 * early stays on its queue for a while (delayed dequeue, since 6.12), and where it is moved to another CPU meanwhile it
 * is queued anew, which nobody takes back when it leaves the queue at last.
 */
static __always_inline u64 queued_since(struct task_struct *task)
{
	return task->__state ? 0 : task->sched_info.last_queued;
}

static __always_inline u64 waits(struct task_struct *task, bool is_on_cpu, struct control *control)
{
	u64 queued = queued_since(task);

	return queued && !is_on_cpu && queued < control->clock ? control->clock - queued : 0;
}

/*
 * A thread cannot have waited for longer than since the last look, and as long as it had been waiting then. The kernel
 * may tell of more: where queued_since() says that it keeps an old time, it books all the sleep since as a wait when
 * the thread runs again. The walk may be held up, so whoever seems to have waited for too long is given that time, too.
 */
static __always_inline u64 believable(u64 waited_ns, u64 before_ns, struct control *control)
{
	u64 most = control->now - control->before + before_ns + WAIT_SLACK_NS;

	if (waited_ns > most)
		most += bpf_ktime_get_boot_ns() - control->now;
	return waited_ns < most ? waited_ns : most;
}

static __always_inline bool what_it_used(struct task_struct *task, struct counts *used,
					 u64 *waiting_ns, struct control *control)
{
	struct last *last = bpf_task_storage_get(&last_counts, task, NULL, 0), fresh = {};
	u64 before_ns = 0;
	bool is_told = !control->is_baseline;

	if (last) {
		take(used, &last->counts);
		before_ns = last->waiting_ns;
	} else {
		/* Made with its value: nobody else looks. */
		fresh.counts = *used;
		last = bpf_task_storage_get(&last_counts, task, &fresh,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
		is_told = is_told && is_born_since(task, used, control);
	}
	if (is_told) {
		used->delay_ns = believable(used->delay_ns, before_ns, control);
		*waiting_ns = believable(*waiting_ns, before_ns, control);
	}
	if (last)
		last->waiting_ns = *waiting_ns;
	else
		control->unkept++;
	return is_told;
}

static __always_inline void add(struct group *group, struct counts *used)
{
	group->threads++;
	group->used.run_ns += used->run_ns;
	group->used.delay_ns += used->delay_ns;
	group->used.runs += used->runs;
	group->used.voluntary += used->voluntary;
	group->used.involuntary += used->involuntary;
	group->used.migrations += used->migrations;
}

/* Pointers are followed by copying: for each one read as such the verifier searches all types. */
static __always_inline void fill(struct row *row, struct task_struct *task, struct counts *used,
				 u64 waiting_ns, struct control *control)
{
	bool has_waits = bpf_core_field_exists(task->sched_info.run_delay);

	row->tid = task->pid;
	row->tgid = task->tgid;
	bpf_probe_read_kernel(row->comm, sizeof(row->comm), task->comm);
	BPF_CORE_READ_INTO(&row->process, task, group_leader, comm);
	row->start_ticks = task->start_boottime / NS_PER_TICK;
	row->cpu = more(task)->thread_info.cpu;
	row->uid = BPF_CORE_READ(task, real_cred, euid.val);
	row->run_ns = used->run_ns;
	row->delay_ns = used->delay_ns;
	row->runs = has_waits ? (s64)used->runs : UNKNOWN;
	row->voluntary = used->voluntary;
	row->involuntary = used->involuntary;
	row->migrations = used->migrations;
	if (!bpf_core_field_exists(struct sched_entity___look, nr_migrations))
		row->migrations = UNKNOWN;
	row->waiting_ns = waiting_ns;
	row->policy = task->policy;
	row->nice = task->static_prio - NICE_0;
	row->rt_priority = more(task)->rt_priority;
	row->allowed = more(task)->nr_cpus_allowed;
	row->group = control->last_group;
	row->is_kthread = !!(task->flags & PF_KTHREAD);
}

/* Four steps for each doubling, from 1 us on: two bits below the highest one that is set. */
__noinline u32 bin_of(u64 weight_ns)
{
	u64 left = weight_ns >> BIN_UNIT_SHIFT, rest = left;
	u32 octave = 0;

	if (left < 4)
		return left;
	if (left >> (BINS / 4 + 1))
		return BINS - 1;
	if (rest >> 32) {
		octave += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		octave += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		octave += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		octave += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		octave += 2;
		rest >>= 2;
	}
	octave += rest >> 1;
	return (octave - 1) * 4 + ((left >> (octave - 2)) & 3);
}

static __always_inline u32 octave_of(u64 weight_ns)
{
	u32 octave = bin_of(weight_ns) / 4;

	return octave < OCTAVES ? octave : OCTAVES - 1;
}

/* Halved once for every *share* threads of the octave that came before. */
static __always_inline u64 lessened(u64 weight_ns, u16 *before, u32 share)
{
	u32 halvings = *before / share;

	if (*before < 0xffff)
		++*before;
	return halvings < 63 ? weight_ns >> halvings : 0;
}

/*
 * By how much a thread competes for a row. An owner with many threads competes with itself first,
 * and those that ran are apart from those that waited: waiting costs nothing, so a pod may have any
 * number of threads that wait. Who is above the floor stays there, and has a row where there is room.
 */
__noinline u64 rank_of(u64 run_ns, u64 wait_ns)
{
	struct control *control = the_control();
	u64 most = run_ns > wait_ns ? run_ns : wait_ns, rank;
	struct owner *owner;
	u32 ran, waited;

	if (!control)
		return most;
	owner = the_owner(control->last_owner, control->look);
	ran = octave_of(run_ns);
	waited = octave_of(wait_ns);
	if (!owner || ran >= OCTAVES || waited >= OCTAVES)
		return most;
	run_ns = lessened(run_ns, &owner->ran[ran], RAN_SHARE);
	wait_ns = lessened(wait_ns, &owner->waited[waited], WAITED_SHARE);
	rank = run_ns > wait_ns ? run_ns : wait_ns;
	if (rank < control->floor_ns && most >= control->floor_ns)
		return control->floor_ns;
	return rank;
}

static __always_inline bool has_run(struct counts *used)
{
	return used->run_ns | used->delay_ns | used->runs;
}

/* ---- who has a row ---- */

struct choice {
	u64 least_ns, sure_ns;
	u32 left; /* rows for threads between the two: first come, first served */
	u32 kept;
};

static __always_inline u64 lower_bound(u32 bin)
{
	if (bin < 4)
		return (u64)bin << BIN_UNIT_SHIFT;
	return (u64)(4 + bin % 4) << (bin / 4 - 1) << BIN_UNIT_SHIFT;
}

/* From which time on there are no more than so many threads; tells whether there are more in all. */
__noinline u32 choose(struct choice *choice, u32 threads)
{
	struct control *control = the_control();
	int bin;

	if (!choice || !control)
		return 0;
	for (bin = BINS - 1; bin >= 0; bin--) {
		if (control->bins[bin] > threads)
			break;
		threads -= control->bins[bin];
	}
	choice->least_ns = bin < 0 ? 0 : lower_bound(bin);
	choice->sure_ns = lower_bound(bin + 1);
	choice->left = threads;
	return bin >= 0;
}

static __always_inline bool keeps(struct row *row, struct choice *choice)
{
	u64 weight = row->rank_ns;

	if (weight >= choice->sure_ns)
		return true;
	if (weight < choice->least_ns || !choice->left)
		return false;
	choice->left--;
	return true;
}

static __always_inline u64 known(s64 count)
{
	return count == UNKNOWN ? 0 : count;
}

static __always_inline void fold(struct row *row)
{
	struct group *group = bpf_map_lookup_elem(&groups, &row->group);
	struct counts used = {
		.run_ns = row->run_ns,
		.delay_ns = row->delay_ns,
		.runs = known(row->runs),
		.voluntary = row->voluntary,
		.involuntary = row->involuntary,
		.migrations = known(row->migrations),
	};

	if (group && has_run(&used))
		add(group, &used);
}

static int sift(u32 place, void *context)
{
	struct choice *choice = context;
	struct row *row = bpf_map_lookup_elem(&rows, &place), *kept;

	if (!row)
		return 1;
	if (!keeps(row, choice)) {
		fold(row);
		return 0;
	}
	if (choice->kept != place) {
		kept = bpf_map_lookup_elem(&rows, &choice->kept);
		if (!kept)
			return 1;
		*kept = *row;
	}
	choice->kept++;
	return 0;
}

/* Leaves rows only to those that keep them by the bins so far; more can only raise the bounds. */
__noinline u32 thin_out(void)
{
	struct control *control = the_control();
	struct choice choice = {};

	if (!control || control->rows <= control->detail)
		return 0;
	if (!choose(&choice, control->detail))
		return 0;
	bpf_loop(control->rows, sift, &choice, 0);
	control->rows = choice.kept;
	if (control->candidate_ns < choice.least_ns)
		control->candidate_ns = choice.least_ns;
	return 1;
}

static __always_inline struct row *row_for(u64 weight_ns, struct control *control)
{
	u32 place = control->rows;
	struct row *row;

	if (weight_ns < control->candidate_ns)
		return NULL;
	row = bpf_map_lookup_elem(&rows, &place);
	if (!row) {
		thin_out();
		place = control->rows;
		row = bpf_map_lookup_elem(&rows, &place);
	}
	if (row)
		control->rows = place + 1;
	return row;
}

static __noinline int note(struct task_struct *task, struct group *group, struct control *control)
{
	bool is_on_cpu = BPF_CORE_READ_BITFIELD(more(task), on_cpu);
	struct counts used = {};
	u64 weight, waiting_ns;
	struct row *row;
	u32 bin;

	if (is_on_cpu)
		*on_cpu_word(control, control->look, task->pid) |= on_cpu_bit(task->pid);
	count_up(&used, task);
	waiting_ns = waits(task, is_on_cpu, control);
	if (!what_it_used(task, &used, &waiting_ns, control))
		return 0;
	if (!waiting_ns && !has_run(&used))
		return 0;
	weight = rank_of(used.run_ns, used.delay_ns > waiting_ns ? used.delay_ns : waiting_ns);
	bin = bin_of(weight);
	if (bin < BINS)
		control->bins[bin]++;
	row = row_for(weight, control);
	if (row) {
		fill(row, task, &used, waiting_ns, control);
		row->rank_ns = weight;
	} else if (has_run(&used)) {
		add(group, &used);
	}
	return 0;
}

/* It has not been given a CPU, had none to be taken away, and does not wait for one. */
static __always_inline bool has_slept(struct task_struct *task, struct control *control)
{
	u32 tid = task->pid;

	if (control->is_baseline || task->sched_info.last_arrival >= control->since)
		return false;
	if (queued_since(task))
		return false;
	return !(*on_cpu_word(control, control->look - 1, tid) & on_cpu_bit(tid));
}

static __always_inline void look_at(struct task_struct *task, struct control *control)
{
	struct group *group;

	if (!task->pid)
		return;
	group = group_of(task, control);
	if (!group)
		return;
	control->seen++;
	group->living++;
	if (!has_slept(task, control))
		note(task, group, control);
}

/* The bins tell who keeps a row, and who might be a candidate in the next look. */
static __always_inline void finish(struct control *control)
{
	struct choice next = {};

	thin_out();
	control->least_ns = control->is_baseline ? 0 : control->candidate_ns;
	control->candidate_ns = 0;
	if (choose(&next, control->detail * CANDIDATES))
		control->candidate_ns = next.least_ns / MARGIN;
}

#endif
