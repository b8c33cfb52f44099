// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For kernels before 6.7, which cannot walk over their threads for a program: /proc is read instead.
#define PLAIN
#include "plugins/tracer/temper_plugin_tracer/capture/recorder.bpf.c"
