/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What our BPF programs know of the kernel: by hand, and no more than they read.
 *
 * Every struct is relocated against the running kernel's types when it is loaded, so fields may
 * lie anywhere; a field that is missing there is fatal only where it is read. Ask for it with
 * bpf_core_field_exists() where kernels differ, and spell a renamed one as another flavour
 * (struct kernfs_node___old).
 *
 * Include this one before anything else.
 */
#ifndef TEMPER_BPF_KERNEL_H
#define TEMPER_BPF_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

/* linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_EXIST 2
#define BPF_F_NO_PREALLOC (1U << 0)
#define BPF_F_RDONLY_PROG (1U << 7)
#define BPF_F_MMAPABLE (1U << 10)
#define BPF_LOCAL_STORAGE_GET_F_CREATE (1ULL << 0)
#define BPF_F_CURRENT_CPU 0xffffffffULL

/* linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define TASK_COMM_LEN 16

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
	const char *name;
	struct kernfs_node *__parent; /* since 6.15 */
};

struct kernfs_node___old {
	struct kernfs_node *parent;
};

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	int nr_populated_threaded_children;
	struct kernfs_node *kn;
	struct cgroup *dom_cgrp;
	struct cgroup *ancestors[];
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
	kuid_t euid;
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
	unsigned long long last_arrival;
	unsigned long long last_queued;
};

struct sched_entity {
	u64 sum_exec_runtime;
};

struct signal_struct {
	int nr_threads;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct bpf_map {
	u32 id;
};

struct bpf_local_storage_map {
	struct bpf_map map;
};

struct bpf_local_storage_data {
	struct bpf_local_storage_map *smap;
	u8 data[];
};

struct bpf_local_storage_elem {
	struct hlist_node snode;
	struct bpf_local_storage_data sdata;
};

struct bpf_local_storage {
	struct hlist_head list;
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int prio;
	int static_prio;
	unsigned int policy;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	u64 start_boottime;
	const struct cred *cred;
	const struct cred *real_cred;
	char comm[TASK_COMM_LEN];
	struct css_set *cgroups;
	struct sched_info sched_info;
	struct sched_entity se;
	struct signal_struct *signal;
	struct bpf_local_storage *bpf_storage;
	int exit_state;
};

#pragma clang attribute pop

/* The open-coded walk over tasks, since 6.7 (kernel/bpf/task_iter.c). */
struct bpf_iter_task {
	__u64 __opaque[3];
} __attribute__((aligned(8)));

enum {
	BPF_TASK_ITER_ALL_PROCS = 0,
	BPF_TASK_ITER_ALL_THREADS = 1,
	BPF_TASK_ITER_PROC_THREADS = 2,
};

extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task,
			     unsigned int flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;

/* The open-coded loop over numbers, since 6.4. */
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *task) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
/* Since 6.2: reads through the result may fault, and then give 0. */
extern void *bpf_rdonly_cast(const void *object, u32 btf_id) __ksym;

#endif
