// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Gives threads their hints, from a table keyed by cgroup: at fork, exec, rename and cgroup attach,
// and for all of the node in one call. The layouts are kernel_records.py's as well.
#include "temper_core/bpf/kernel.h"

#define MOST_RULES 16
#define MOST_POLICIES 8192
#define MOST_LEVELS 24
#define MOST_STORAGES 32
#define MOST_WANTS 4096
#define MOST_AT_ONCE 256
#define MOST_EXECS 1024 /* a power of two */
#define NO_HINT 0xffff
#define LARGEST_SHOWN 0xfffe
#define NO_LAYER 0xff

char LICENSE[] SEC("license") = "GPL";

/* What a process must, or must not, be for a rule. */
enum trait {
	TRAIT_LEADER = 1,
	TRAIT_ROOT = 2,
};

/* Holds where every masked word is equal. Prefixes of names, so no loops over characters. */
struct rule {
	u64 comm[2], comm_mask[2];
	u64 process[2], process_mask[2];
	u16 hint;
	u8 traits, traits_mask;
	u32 unused;
};

enum policy_flag {
	POLICY_EXACT = 1, /* for threads directly in this cgroup only */
	POLICY_BY_PROCESS = 2, /* some rule asks for the process's name */
};

struct policy {
	u16 count;
	u16 otherwise;
	u32 flags;
	struct rule rules[MOST_RULES];
};

/* The engine's own, to the byte: it uses the pinned map of this name. */
struct task_hint {
	u64 hint;
	u64 __reserved[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_hint);
} scx_layered_task_hint_map SEC(".maps");

/* What user space decided for a thread; counts while it stays in that cgroup and keeps its name. */
struct decision {
	u64 cgroup;
	u32 hint;
	u32 epoch;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct decision);
} decisions SEC(".maps");

/* By cgroup id; 0, which no cgroup has, is for threads that no other policy covers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MOST_POLICIES);
	__type(key, u64);
	__type(value, struct policy);
} policies SEC(".maps");

enum control_flag {
	CONTROL_WRITE = 1,
	CONTROL_EMIT = 2,
};

struct control {
	/* Set by user space. */
	u64 generation; /* changes with every change of the table */
	u32 epoch; /* decisions of earlier ones do not count */
	u32 flags;
	u32 engine_map;
	u32 layer_offset;
	u64 wanted;
	u64 kernel_hint; /* what a hint found on a kernel thread becomes; 0 leaves it */
	/* Counted by the hooks, from the load on. */
	u64 forks, renames, moves, births, deaths;
	u64 written, failed;
	u64 postponed; /* threads left to the next walk */
	/* Of the last walk, but for these two, which are those of the last walk that wrote. */
	u64 walked_generation, walked_postponed;
	u64 seen, records, dropped, rewritten, corrected, took_ns;
	/* Of the last decide. */
	u64 applied, gone, reused;
	u64 has_decided; /* since the load */
	u64 execs; /* by on_exec, from the load on */
	u64 first; /* of the threads in their order, the first that the next walk records */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} control SEC(".maps");

/* Whole once its number is that of the exec, counted from 1, whose place it is. */
struct exec {
	u64 number;
	u32 tgid, parent;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_EXECS);
	__type(key, u32);
	__type(value, struct exec);
} execs SEC(".maps");

enum record_flag {
	RECORD_KERNEL = 1,
	RECORD_RUNNABLE = 2,
	RECORD_DECIDED = 4,
	RECORD_UNKNOWN = 8, /* the engine has nothing on it */
	RECORD_LEADER = 16,
};

struct record {
	u32 tid, tgid;
	u64 start_boottime, cgroup, run_ns;
	u16 expected, hint;
	u8 layer, flags;
	u8 unused[2];
	u64 comm[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 32768);
	__type(key, u32);
	__type(value, struct record);
} records SEC(".maps");

struct want {
	u32 tid;
	u32 hint;
	u64 start_boottime;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MOST_WANTS);
	__type(key, u32);
	__type(value, struct want);
} wants SEC(".maps");

/*
 * A thread as rules see it. Its cgroup and its storage are addresses only, so that what follows
 * them can be functions that the verifier judges once, and not again at every call.
 */
struct who {
	u64 comm[2];
	u64 process[2];
	u64 cgroup_id;
	void *cgroup;
	void *storage;
	u32 traits;
	u32 threads; /* of its process */
};

static __always_inline struct control *the_control(void)
{
	u32 first = 0;

	return bpf_map_lookup_elem(&control, &first);
}

#define count(counter) __sync_fetch_and_add(&(counter), 1)

static __always_inline void read_name(u64 *name, struct task_struct *task)
{
	const u64 *words = (const u64 *)&task->comm;

	name[0] = words[0];
	name[1] = words[1];
}

/*
 * By a pointer that promises nothing: for every pointer read through a trusted one the verifier
 * searches all types of the kernel, which took nine tenths of the time to load this object.
 */
static __always_inline void describe(struct who *who, struct task_struct *trusted)
{
	struct task_struct *task =
		bpf_rdonly_cast(trusted, bpf_core_type_id_kernel(struct task_struct));
	struct cgroup *cgroup = task->cgroups->dfl_cgrp;

	read_name(who->comm, task);
	read_name(who->process, task->group_leader);
	who->cgroup = cgroup;
	who->cgroup_id = cgroup->kn->id;
	who->storage = task->bpf_storage;
	who->traits = task->pid == task->tgid ? TRAIT_LEADER : 0;
	if (task->real_cred->euid.val == 0)
		who->traits |= TRAIT_ROOT;
	who->threads = task->signal->nr_threads;
}

static __always_inline void *above(struct cgroup *cgroup)
{
	void *parent = cgroup->self.parent;

	return parent ? parent - bpf_core_field_offset(struct cgroup, self) : NULL;
}

/* The ancestor at the level MOST_LEVELS - 1, or the cgroup itself where it is not below that. */
static __always_inline struct cgroup *within_reach(struct cgroup *cgroup)
{
	void *at = (void *)cgroup + bpf_core_field_offset(struct cgroup, ancestors);

	if (bpf_core_field_exists(cgroup->ancestors) && cgroup->level >= MOST_LEVELS)
		bpf_probe_read_kernel(&cgroup, sizeof(cgroup),
				      at + (MOST_LEVELS - 1) * sizeof(void *));
	return cgroup;
}

/*
 * The innermost cgroup that has a policy counts. Levels between the first MOST_LEVELS and the last
 * are skipped, so that no one leaves a place near the root by making deep cgroups.
 */
static __always_inline struct policy *policy_of(struct cgroup *cgroup)
{
	struct policy *policy;
	u64 id;

	for (int step = 0; cgroup && step < 2 * MOST_LEVELS; step++) {
		cgroup = bpf_rdonly_cast(cgroup, bpf_core_type_id_kernel(struct cgroup));
		if (step == MOST_LEVELS)
			cgroup = bpf_rdonly_cast(within_reach(cgroup),
						 bpf_core_type_id_kernel(struct cgroup));
		id = cgroup->kn->id;
		policy = bpf_map_lookup_elem(&policies, &id);
		if (policy && (!step || !(policy->flags & POLICY_EXACT)))
			return policy;
		cgroup = above(cgroup);
	}
	id = 0;
	return bpf_map_lookup_elem(&policies, &id);
}

static __always_inline bool differs(const u64 *a, const u64 *b, const u64 *mask)
{
	return ((a[0] ^ b[0]) & mask[0]) | ((a[1] ^ b[1]) & mask[1]);
}

static __always_inline u32 choose(struct policy *policy, struct who *who)
{
	for (int place = 0; place < MOST_RULES; place++) {
		struct rule *rule = &policy->rules[place];

		if (place >= policy->count)
			break;
		if (differs(who->comm, rule->comm, rule->comm_mask))
			continue;
		if (differs(who->process, rule->process, rule->process_mask))
			continue;
		if (!((who->traits ^ rule->traits) & rule->traits_mask))
			return rule->hint;
	}
	return policy->otherwise;
}

__noinline u32 chosen_by_table(struct who *who)
{
	struct policy *policy;

	if (!who)
		return NO_HINT;
	policy = policy_of(who->cgroup);
	return policy ? choose(policy, who) : NO_HINT;
}

static __always_inline u32 decided(struct task_struct *task, struct who *who,
				   struct control *control)
{
	struct decision *decision;

	if (!control->has_decided)
		return NO_HINT;
	decision = bpf_task_storage_get(&decisions, task, 0, 0);
	if (!decision)
		return NO_HINT;
	if (decision->cgroup == who->cgroup_id && decision->epoch >= control->epoch)
		return decision->hint;
	bpf_task_storage_delete(&decisions, task);
	return NO_HINT;
}

static __always_inline struct task_hint *hint_of(struct task_struct *task)
{
	return bpf_task_storage_get(&scx_layered_task_hint_map, task, 0, 0);
}

/* Returns whether it changed anything. */
static __always_inline bool put(struct task_struct *task, struct task_hint *stored, u32 hint,
				struct control *control)
{
	struct task_hint fresh = { .hint = hint };

	if (stored) {
		if (stored->hint == hint)
			return false;
		stored->hint = hint;
		return true;
	}
	/* Made with its value, because 0 would be a hint. */
	if (bpf_task_storage_get(&scx_layered_task_hint_map, task, &fresh,
				 BPF_LOCAL_STORAGE_GET_F_CREATE))
		return true;
	count(control->failed);
	return false;
}

/* Whether threads belong elsewhere once their leader, which this is, has another name. */
__noinline u32 follows_its_leader(struct who *who)
{
	struct cgroup *cgroup;
	struct policy *policy;

	if (!who)
		return 1;
	cgroup = bpf_rdonly_cast(who->cgroup, bpf_core_type_id_kernel(struct cgroup));
	/* Threads in cgroups of their own may have other policies. */
	if (cgroup->dom_cgrp != cgroup || cgroup->nr_populated_threaded_children)
		return 1;
	policy = policy_of(cgroup);
	return policy && policy->flags & POLICY_BY_PROCESS;
}

/*
 * Whether this is one thread too many for a hook, where nothing else runs on the CPU meanwhile.
 * Those left over are counted, and the next walk puts them right. By an iterator, because of a
 * counter of our own the verifier would follow every value.
 */
static __always_inline bool is_too_many(struct bpf_iter_num *places, struct who *who,
					struct control *control)
{
	u32 threads = who->threads;

	if (bpf_iter_num_next(places))
		return false;
	__sync_fetch_and_add(&control->postponed,
			     threads > MOST_AT_ONCE ? threads - MOST_AT_ONCE : 1);
	return true;
}

/* For the hooks: what the thread is called comes from them. */
static __noinline int steer(struct task_struct *task, struct who *who, struct control *control)
{
	u32 hint;

	if (task->flags & PF_KTHREAD)
		return 0;
	hint = decided(task, who, control);
	if (hint == NO_HINT)
		hint = chosen_by_table(who);
	if (hint != NO_HINT && put(task, hint_of(task), hint, control))
		count(control->written);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct control *control = the_control();
	struct who who;

	if (!control)
		return 0;
	count(control->forks);
	describe(&who, child);
	return steer(child, &who, control);
}

/* The tracepoint comes before the name is set; a leader's is its process's. exec() comes here too. */
SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
	struct control *control = the_control();
	struct bpf_iter_task threads;
	struct task_struct *thread;
	u64 name[2] = {};
	struct bpf_iter_num places;
	struct who who;

	if (!control || bpf_probe_read_kernel_str(name, sizeof(name), comm) < 0)
		return 0;
	count(control->renames);
	bpf_task_storage_delete(&decisions, task);
	describe(&who, task);
	who.comm[0] = name[0];
	who.comm[1] = name[1];
	if (who.traits & TRAIT_LEADER) {
		who.process[0] = name[0];
		who.process[1] = name[1];
	}
	steer(task, &who, control);
	if (!(who.traits & TRAIT_LEADER) || who.threads < 2 || !follows_its_leader(&who))
		return 0;
	bpf_iter_num_new(&places, 0, MOST_AT_ONCE);
	bpf_iter_task_new(&threads, task, BPF_TASK_ITER_PROC_THREADS);
	while ((thread = bpf_iter_task_next(&threads))) {
		describe(&who, thread);
		if (is_too_many(&places, &who, control))
			break;
		if (who.traits & TRAIT_LEADER)
			continue;
		who.process[0] = name[0];
		who.process[1] = name[1];
		steer(thread, &who, control);
	}
	bpf_iter_task_destroy(&threads);
	bpf_iter_num_destroy(&places);
	return 0;
}

/* Hints are given by on_rename. This tells user space which process runs another program. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *trusted, int old_tid, void *binary)
{
	struct task_struct *task =
		bpf_rdonly_cast(trusted, bpf_core_type_id_kernel(struct task_struct));
	struct control *control = the_control();
	struct exec *exec;
	u64 number;
	u32 place;

	if (!control)
		return 0;
	number = __sync_fetch_and_add(&control->execs, 1) + 1;
	place = (number - 1) & (MOST_EXECS - 1);
	exec = bpf_map_lookup_elem(&execs, &place);
	if (!exec)
		return 0;
	exec->tgid = task->tgid;
	exec->parent = task->real_parent->tgid;
	__sync_lock_test_and_set(&exec->number, number);
	return 0;
}

/* Comes after the move, for cgroup v1 too, where nothing changes. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(on_move, struct cgroup *to, const char *path, struct task_struct *task, bool all)
{
	struct control *control = the_control();
	struct bpf_iter_task threads;
	struct task_struct *thread;
	struct bpf_iter_num places;
	struct who who;

	if (!control)
		return 0;
	count(control->moves);
	if (!all) {
		describe(&who, task);
		return steer(task, &who, control);
	}
	bpf_iter_num_new(&places, 0, MOST_AT_ONCE);
	bpf_iter_task_new(&threads, task, BPF_TASK_ITER_PROC_THREADS);
	while ((thread = bpf_iter_task_next(&threads))) {
		describe(&who, thread);
		if (is_too_many(&places, &who, control))
			break;
		steer(thread, &who, control);
	}
	bpf_iter_task_destroy(&threads);
	bpf_iter_num_destroy(&places);
	return 0;
}

SEC("tp_btf/cgroup_mkdir")
int BPF_PROG(on_birth, struct cgroup *cgroup, const char *path)
{
	struct control *control = the_control();

	if (control)
		count(control->births);
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(on_death, struct cgroup *cgroup, const char *path)
{
	struct control *control = the_control();

	if (control)
		count(control->deaths);
	return 0;
}

/* The engine's own record of a thread is in its task storage, whose map we know by its id. */
__noinline u32 layer_of(struct who *who)
{
	struct control *control = the_control();
	struct bpf_local_storage_elem *element;
	struct bpf_local_storage *storage;
	void *node;
	u32 layer;

	if (!who || !who->storage || !control || !control->engine_map)
		return NO_LAYER;
	storage = bpf_rdonly_cast(who->storage, bpf_core_type_id_kernel(struct bpf_local_storage));
	node = storage->list.first;
	for (int place = 0; node && place < MOST_STORAGES; place++) {
		node -= bpf_core_field_offset(struct bpf_local_storage_elem, snode);
		element = bpf_rdonly_cast(
			node, bpf_core_type_id_kernel(struct bpf_local_storage_elem));
		if (element->sdata.smap->map.id == control->engine_map) {
			node = &element->sdata.data;
			node += control->layer_offset & 0xffff;
			if (bpf_probe_read_kernel(&layer, sizeof(layer), node))
				break;
			return layer < NO_LAYER ? layer : NO_LAYER;
		}
		node = element->snode.next;
	}
	return NO_LAYER;
}

static __always_inline void emit(struct task_struct *task, struct who *who, u32 expected,
				 u64 hint, u32 flags, struct control *control)
{
	u32 place = control->records;
	struct record *record = bpf_map_lookup_elem(&records, &place);

	if (!record || control->seen <= control->first) {
		control->dropped++;
		return;
	}
	control->records = place + 1;
	record->tid = task->pid;
	record->tgid = task->tgid;
	record->start_boottime = task->start_boottime;
	record->cgroup = who->cgroup_id;
	record->run_ns = task->se.sum_exec_runtime;
	record->expected = expected;
	record->hint = hint;
	record->layer = layer_of(who);
	if (record->layer == NO_LAYER)
		flags |= RECORD_UNKNOWN;
	if (task->__state == 0)
		flags |= RECORD_RUNNABLE;
	if (who->traits & TRAIT_LEADER)
		flags |= RECORD_LEADER;
	record->flags = flags;
	record->comm[0] = who->comm[0];
	record->comm[1] = who->comm[1];
}

/*
 * Two walks should find every hint as it was left, unless the table changed between them or a hook
 * left threads to the second.
 */
static __always_inline void rewrite(struct task_struct *task, struct task_hint *stored,
				    u32 expected, struct control *control)
{
	bool is_foreign = stored && control->walked_generation == control->generation &&
			  control->walked_postponed == control->postponed;

	if (!put(task, stored, expected, control))
		return;
	control->rewritten++;
	if (is_foreign)
		control->corrected++;
}

static __noinline int look_at(struct task_struct *task, struct control *control)
{
	struct task_hint *stored = hint_of(task);
	u32 expected = NO_HINT, flags = 0;
	u64 hint = NO_HINT;
	struct who who;

	describe(&who, task);
	if (task->flags & PF_KTHREAD) {
		flags = RECORD_KERNEL;
		/* Not deleted: that would leave it where the hint has sent it. */
		if (stored && control->kernel_hint)
			expected = control->kernel_hint;
	} else {
		expected = decided(task, &who, control);
		if (expected != NO_HINT)
			flags = RECORD_DECIDED;
		else
			expected = chosen_by_table(&who);
	}
	if (expected != NO_HINT && control->flags & CONTROL_WRITE) {
		rewrite(task, stored, expected, control);
		if (!stored)
			stored = hint_of(task);
	}
	if (stored)
		hint = stored->hint < LARGEST_SHOWN ? stored->hint : LARGEST_SHOWN;
	if (control->flags & CONTROL_EMIT)
		emit(task, &who, expected, hint, flags, control);
	return 0;
}

SEC("syscall")
int walk(void *unused)
{
	struct control *control = the_control();
	u64 began = bpf_ktime_get_ns();
	struct bpf_iter_task threads;
	struct task_struct *task;
	u64 postponed;

	if (!control)
		return -1;
	postponed = control->postponed;
	control->seen = control->records = control->dropped = 0;
	control->rewritten = control->corrected = 0;
	bpf_rcu_read_lock();
	bpf_iter_task_new(&threads, NULL, BPF_TASK_ITER_ALL_THREADS);
	while ((task = bpf_iter_task_next(&threads))) {
		if (!task->pid)
			continue;
		control->seen++;
		look_at(task, control);
	}
	bpf_iter_task_destroy(&threads);
	bpf_rcu_read_unlock();
	/* Where threads do not fit, each walk goes on where the last one ended: nobody can fill it. */
	if (control->flags & CONTROL_EMIT) {
		control->first += control->records;
		if (!control->dropped || control->first >= control->seen)
			control->first = 0;
	}
	if (control->flags & CONTROL_WRITE) {
		control->walked_generation = control->generation;
		control->walked_postponed = postponed;
	}
	control->took_ns = bpf_ktime_get_ns() - began;
	return 0;
}

static __always_inline void apply(struct task_struct *task, u32 hint, struct control *control)
{
	struct decision fresh = { .hint = hint, .epoch = control->epoch };
	struct decision *decision;
	struct who who;

	describe(&who, task);
	if (hint == NO_HINT) {
		bpf_task_storage_delete(&decisions, task);
		steer(task, &who, control);
		return;
	}
	fresh.cgroup = who.cgroup_id;
	decision = bpf_task_storage_get(&decisions, task, &fresh, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!decision) {
		count(control->failed);
		return;
	}
	*decision = fresh;
	put(task, hint_of(task), hint, control);
}

static __noinline int grant(struct want *want, struct control *control)
{
	struct task_struct *task = bpf_task_from_pid(want->tid);

	if (!task) {
		control->gone++;
		return 0;
	}
	bpf_rcu_read_lock();
	if (task->start_boottime != want->start_boottime) {
		control->reused++;
	} else if (task->flags & (PF_KTHREAD | PF_EXITING)) {
		control->gone++;
	} else {
		control->applied++;
		apply(task, want->hint, control);
	}
	bpf_rcu_read_unlock();
	bpf_task_release(task);
	return 0;
}

SEC("syscall")
int decide(void *unused)
{
	struct control *control = the_control();
	struct bpf_iter_num places;
	struct want *want;
	int *place;
	u32 key;

	if (!control)
		return -1;
	control->applied = control->gone = control->reused = 0;
	control->has_decided = 1;
	bpf_iter_num_new(&places, 0, MOST_WANTS);
	while ((place = bpf_iter_num_next(&places))) {
		key = *place;
		if (key >= control->wanted)
			break;
		want = bpf_map_lookup_elem(&wants, &key);
		if (want)
			grant(want, control);
	}
	bpf_iter_num_destroy(&places);
	return 0;
}
