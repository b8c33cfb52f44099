// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For kernels without CONFIG_KALLSYMS_ALL, where an interrupt is told by what it interrupted.
#include "plugins/tracer/temper_plugin_tracer/wakes.h"
