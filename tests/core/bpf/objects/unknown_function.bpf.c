// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Calls what no kernel has.
#include "temper_core/bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

extern int bpf_function_no_kernel_has(void) __ksym;

SEC("syscall")
int call_it(void *unused)
{
	return bpf_function_no_kernel_has();
}
