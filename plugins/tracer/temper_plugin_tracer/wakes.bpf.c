// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For kernels that give away where the count of interrupts is (CONFIG_KALLSYMS_ALL), and for all
// machines that keep it with the thread.
#define ASKS_FOR_SYMBOLS
#include "plugins/tracer/temper_plugin_tracer/wakes.h"
