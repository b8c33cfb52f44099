// load: what the ladder puts on a node, an open-loop request server, busy threads or compressors.
//
//   load serve seconds=4 seed=1 period_us=8000 turns=125000 settle_ms=600 servers=1 noise=0
//       One client thread writes requests into a pipe at exponential gaps, whose mean is PERIOD_US and which depend on
//       SEED alone. A server thread reads one, turns a loop TURNS times (two instructions a turn) and notes the time.
//       NOISE log writers of the same process are busy: always, or with lines=N until each has written N lines, from
//       every multiple of LINES_MS on (lines=0 lines_ms=400). BURST threads named like those of a garbage collector turn the
//       loop BURST_TURNS times, all together, at every multiple of BURST_MS (burst=0 burst_turns=5000000 burst_ms=200). After SETTLE_MS it prints "begin", and at the end one
//       line of JSON. SIGTERM ends the requests before SECONDS. Then it waits for the end of its input, so that its threads can still be looked at.
//   load spin threads=8 counts=PATH
//       Busy threads until SIGTERM. PATH is a file of 64-bit counts of turns, one per thread in a cache line of its own,
//       the rest of which is 0.
//   load compress threads=4 counts=PATH
//       The same with threads that compress text with zlib, which is loaded at run time. They count bytes of it.
//   load nap threads=20 pause_us=666667 life_ms=0
//       Threads that wake every PAUSE_US, until SIGTERM. With LIFE_MS each lives for a random time of at most twice that,
//       and starts the thread that follows it.
//
// In the JSON, "requests" has [wait, service] in ns. The wait begins at the intended arrival, so a client that is late
// and a queue of requests both count (no coordinated omission). With arrivals=1 the third number of a request is its
// intended arrival by CLOCK_MONOTONIC. "threads" has, of each thread and for the time between "begin" and the last answer,
// the kernel's own counts: time on a CPU and time runnable but waiting for one (/proc/PID/task/TID/schedstat, in ns),
// migrations (/proc/PID/task/TID/sched, -1 without that file). "work_by_cpu" has the CPUs on which a server did its work,
// in pieces of a fiftieth of a request. "longest_gap_ns" has the longest time between two lines of a log writer, without
// its rests: the longest that it waited for a CPU, and a line's 0.1 ms.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256, MAX_CPUS = 1024, PIECES = 50, NOISE_TURNS = 20000, SPIN_TURNS = 1000, LINE = 4096, CACHE_LINE = 8 };
enum { UNANSWERED_S = 10, TEXT = 1 << 16, ZLIB_LEVEL = 6, NAP_STACK = 1 << 15 };

typedef struct {
    int64_t run_ns, delay_ns, migrations;
} Counts;

typedef struct {
    const char *kind;
    int tid;
    Counts before;
    int64_t longest_gap_ns;
    uint32_t work_by_cpu[MAX_CPUS];
} Thread;

typedef struct {
    int64_t intended_ns, started_ns, answered_ns;
} Request;

static struct {
    double seconds;
    long seed, period_us, turns, settle_ms, servers, noise, threads, lines, lines_ms, burst, burst_turns, burst_ms, arrivals, pause_us, life_ms;
    const char *counts;
} options = {4, 1, 8000, 125000, 600, 1, 0, 0, 0, 400, 0, 5000000, 200, 0, 666667, 0, NULL};

static Thread all[MAX_THREADS];
static int thread_count;
static Request *requests;
static int requests_pipe[2];
static volatile int64_t *spin_counts;
static volatile sig_atomic_t is_over;
static int (*zlib_compress)(unsigned char *to, unsigned long *size, const unsigned char *from, unsigned long length, int level);

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void sleep_until(int64_t ns) {
    struct timespec until = {ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL)) {}
}

// All threads with one period begin together, since its beginnings are multiples of it on the machine's clock.
static int64_t sleep_until_next(long period_ms) {
    int64_t period_ns = period_ms * 1000000LL, until_ns = (now_ns() / period_ns + 1) * period_ns;
    sleep_until(until_ns);
    return until_ns;
}

// A fixed amount of work: there is no clock in it, so a slow CPU takes longer and does not do less.
static void turn(long turns) { __asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(turns)::"cc"); }

static double uniform(uint64_t *state) {  // xorshift64*, in (0, 1]
    *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
    return ((*state * 2685821657736338717ULL >> 11) + 1) / 9007199254740992.0;
}

static void name_thread(Thread *thread, const char *comm) {
    prctl(PR_SET_NAME, comm);
    __atomic_store_n(&thread->tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
}

static void *serve(void *argument) {
    Thread *thread = argument;
    long id;
    name_thread(thread, "ladder-server");
    while (read(requests_pipe[0], &id, sizeof id) == sizeof id) {
        requests[id].started_ns = now_ns();
        for (int piece = 0; piece < PIECES; piece++) {
            turn(options.turns / PIECES);
            thread->work_by_cpu[sched_getcpu() % MAX_CPUS]++;
        }
        __atomic_store_n(&requests[id].answered_ns, now_ns(), __ATOMIC_RELEASE);
    }
    return NULL;
}

static void note_gap(Thread *thread, int64_t gap_ns) {
    if (gap_ns > __atomic_load_n(&thread->longest_gap_ns, __ATOMIC_RELAXED))
        __atomic_store_n(&thread->longest_gap_ns, gap_ns, __ATOMIC_RELAXED);
}

static void *write_log(void *argument) {
    static char line[LINE];
    Thread *thread = argument;
    name_thread(thread, "log-writer");
    int null = open("/dev/null", O_WRONLY);
    if (null < 0) fail("/dev/null");
    int64_t last_ns = now_ns();
    for (long written = 1;; written++) {
        turn(NOISE_TURNS);
        if (write(null, line, sizeof line) < 0) fail("write");
        int64_t written_ns = now_ns();
        note_gap(thread, written_ns - last_ns);
        last_ns = written_ns;
        if (options.lines && written % options.lines == 0) last_ns = sleep_until_next(options.lines_ms);
    }
    return NULL;
}

static void *collect(void *argument) {
    char comm[16];
    static int number;
    snprintf(comm, sizeof comm, "GC Thread#%d", __atomic_fetch_add(&number, 1, __ATOMIC_RELAXED));
    name_thread(argument, comm);
    for (;;) {
        sleep_until_next(options.burst_ms);
        turn(options.burst_turns);
    }
    return NULL;
}

static void *spin(void *argument) {
    prctl(PR_SET_NAME, "ladder-spin");
    for (volatile int64_t *count = argument;; *count += SPIN_TURNS) turn(SPIN_TURNS);
    return NULL;
}

static void *compress_text(void *argument) {
    static const char *words[] = {"request", "GET /index.html", "200", "ladder", "10.0.0.1", "POST /api", "404", "\n"};
    unsigned char text[TEXT], made[TEXT * 2];
    uint64_t state = (uintptr_t)argument | 1;
    size_t filled = 0;
    prctl(PR_SET_NAME, "compressor");
    while (filled < sizeof text - 32)
        filled += sprintf((char *)text + filled, "%s %d ", words[(int)(uniform(&state) * 7.99)], (int)(uniform(&state) * 1e6));
    for (volatile int64_t *count = argument;; *count += filled) {
        unsigned long size = sizeof made;
        if (zlib_compress(made, &size, text, filled, ZLIB_LEVEL)) fail("compress2");
    }
    return NULL;
}

static void load_zlib(void) {
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (library) *(void **)&zlib_compress = dlsym(library, "compress2");
    if (!zlib_compress) fprintf(stderr, "load: no zlib: %s\n", dlerror()), exit(1);
}

static Thread *start(const char *kind, void *(*body)(void *)) {
    pthread_t id;
    if (thread_count == MAX_THREADS) fail("too many threads");
    Thread *thread = &all[thread_count++];
    thread->kind = kind;
    if (body && pthread_create(&id, NULL, body, thread)) fail("pthread_create");
    return thread;
}

static Counts counts_of(int tid) {
    Counts counts = {0, 0, -1};
    char path[64], line[256];
    long long value;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%ld %ld", &counts.run_ns, &counts.delay_ns) != 2) fail(path);
    fclose(file);
    snprintf(path, sizeof path, "/proc/self/task/%d/sched", tid);
    if ((file = fopen(path, "r"))) {
        while (fgets(line, sizeof line, file))
            if (sscanf(line, "se.nr_migrations : %lld", &value) == 1) counts.migrations = value;
        fclose(file);
    }
    return counts;
}

static long plan_arrivals(long capacity) {
    uint64_t state = options.seed * 0x9e3779b97f4a7c15ULL + 1;
    long count = 0;
    for (int i = 0; i < 16; i++) uniform(&state);  // the first numbers of neighbouring seeds are alike
    for (double at_ns = 0; count < capacity; count++) {
        at_ns -= options.period_us * 1e3 * log(uniform(&state));
        if (at_ns >= options.seconds * 1e9) break;
        requests[count].intended_ns = (int64_t)at_ns;
    }
    return count;
}

static void end_requests(int signal) { (void)signal, is_over = 1; }

// Returns the number of requests that were sent.
static long send_requests(long count, int64_t *latest_ns) {
    int64_t began_ns = now_ns() + 20000000;
    long id = 0;
    for (; id < count && !is_over; id++) {
        requests[id].intended_ns += began_ns;
        sleep_until(requests[id].intended_ns);
        int64_t late_ns = now_ns() - requests[id].intended_ns;
        if (late_ns > *latest_ns) *latest_ns = late_ns;
        if (write(requests_pipe[1], &id, sizeof id) != sizeof id) fail("write");
    }
    return id;
}

static long wait_for_answers(long count) {
    int64_t until_ns = now_ns() + UNANSWERED_S * 1000000000LL;
    long first = 0;
    for (;;) {
        while (first < count && __atomic_load_n(&requests[first].answered_ns, __ATOMIC_ACQUIRE)) first++;
        if (first == count || now_ns() > until_ns) break;
        usleep(5000);
    }
    long unanswered = 0;
    for (long id = first; id < count; id++) unanswered += requests[id].answered_ns == 0;
    return unanswered;
}

static void print_thread(Thread *thread) {
    Counts after = counts_of(thread->tid);
    int64_t migrations = after.migrations < 0 ? -1 : after.migrations - thread->before.migrations;
    const char *comma = "";
    printf("{\"kind\":\"%s\",\"tid\":%d,\"run_ns\":%ld,\"delay_ns\":%ld,\"migrations\":%ld,\"longest_gap_ns\":%ld,"
           "\"work_by_cpu\":{", thread->kind, thread->tid, after.run_ns - thread->before.run_ns,
           after.delay_ns - thread->before.delay_ns, migrations, thread->longest_gap_ns);
    for (int cpu = 0; cpu < MAX_CPUS; cpu++)
        if (thread->work_by_cpu[cpu]) printf("%s\"%d\":%u", comma, cpu, thread->work_by_cpu[cpu]), comma = ",";
    printf("}}");
}

static void print_requests(long count) {
    const char *comma = "";
    for (long id = 0; id < count; id++) {
        Request *one = &requests[id];
        if (!one->answered_ns) continue;
        printf("%s[%ld,%ld", comma, one->started_ns - one->intended_ns, one->answered_ns - one->started_ns);
        if (options.arrivals) printf(",%ld", one->intended_ns);
        printf("]");
        comma = ",";
    }
}

static void serve_requests(void) {
    long capacity = (long)(options.seconds * 1e6 / options.period_us * 2) + 64;
    requests = calloc(capacity, sizeof *requests);
    if (!requests || pipe(requests_pipe)) fail("pipe");
    long count = plan_arrivals(capacity);
    name_thread(start("client", NULL), "ladder-client");
    for (long i = 0; i < options.servers; i++) start("server", serve);
    for (long i = 0; i < options.noise; i++) start("noise", write_log);
    for (long i = 0; i < options.burst; i++) start("burst", collect);
    usleep(options.settle_ms * 1000);
    for (int i = 0; i < thread_count; i++)
        while (!__atomic_load_n(&all[i].tid, __ATOMIC_ACQUIRE)) usleep(1000);
    printf("begin\n");
    fflush(stdout);
    for (int i = 0; i < thread_count; i++) {
        all[i].before = counts_of(all[i].tid);
        __atomic_store_n(&all[i].longest_gap_ns, 0, __ATOMIC_RELAXED);
    }
    signal(SIGTERM, end_requests);
    int64_t latest_ns = 0;
    count = send_requests(count, &latest_ns);
    long unanswered = wait_for_answers(count);
    printf("{\"client_late_ns\":%ld,\"unanswered\":%ld,\"threads\":[", latest_ns, unanswered);
    for (int i = 0; i < thread_count; i++) {
        if (i) printf(",");
        print_thread(&all[i]);
    }
    printf("],\"requests\":[");
    print_requests(count);
    printf("]}\n");
    fflush(stdout);
    while (getchar() != EOF) {}
}

static void count_until_ended(void *(*body)(void *)) {
    size_t size = options.threads * CACHE_LINE * sizeof(int64_t);
    int file = open(options.counts, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || ftruncate(file, size)) fail(options.counts);
    spin_counts = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (spin_counts == MAP_FAILED) fail("mmap");
    for (long i = 0; i < options.threads; i++) {
        pthread_t id;
        if (pthread_create(&id, NULL, body, (void *)&spin_counts[i * CACHE_LINE])) fail("pthread_create");
    }
    pause();
}

static void *nap(void *argument);

static void start_napping(uint64_t seed) {
    pthread_attr_t attributes;
    pthread_t id;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, NAP_STACK);
    if (pthread_create(&id, &attributes, nap, (void *)seed)) fail("pthread_create");
    pthread_attr_destroy(&attributes);
}

// The argument is the state of a random generator, which is never 0.
static void *nap(void *argument) {
    uint64_t state = (uint64_t)argument;
    double life_ms = 2 * uniform(&state) * options.life_ms;
    int64_t end_ns = now_ns() + (int64_t)(life_ms * 1e6);
    prctl(PR_SET_NAME, "ladder-nap");
    do usleep(options.pause_us);
    while (!options.life_ms || now_ns() < end_ns);
    start_napping(state);
    return NULL;
}

static void nap_until_ended(void) {
    for (long i = 0; i < options.threads; i++) start_napping((uint64_t)now_ns() + i + 1);
    pause();
}

static int set_option(const char *key, const char *value) {
    struct { const char *key; long *number; } numbers[] = {
        {"seed", &options.seed}, {"period_us", &options.period_us}, {"turns", &options.turns}, {"noise", &options.noise},
        {"settle_ms", &options.settle_ms}, {"servers", &options.servers}, {"threads", &options.threads},
        {"lines", &options.lines}, {"lines_ms", &options.lines_ms}, {"burst", &options.burst},
        {"burst_turns", &options.burst_turns}, {"burst_ms", &options.burst_ms},
        {"arrivals", &options.arrivals}, {"pause_us", &options.pause_us}, {"life_ms", &options.life_ms}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(key, numbers[i].key)) return *numbers[i].number = atol(value), 1;
    if (!strcmp(key, "seconds")) return options.seconds = atof(value), 1;
    if (!strcmp(key, "counts")) return options.counts = value, 1;
    return 0;
}

int main(int count, char **arguments) {
    for (int i = 2; i < count; i++) {
        char *value = strchr(arguments[i], '=');
        if (value) *value++ = 0;
        if (!value || !set_option(arguments[i], value)) {
            fprintf(stderr, "load: unknown option %s\n", arguments[i]);
            return 2;
        }
    }
    const char *mode = count > 1 ? arguments[1] : "";
    int is_counting = options.counts && options.threads > 0;
    if (!strcmp(mode, "serve")) serve_requests();
    else if (!strcmp(mode, "spin") && is_counting) count_until_ended(spin);
    else if (!strcmp(mode, "compress") && is_counting) load_zlib(), count_until_ended(compress_text);
    else if (!strcmp(mode, "nap") && options.threads > 0 && options.pause_us > 0) nap_until_ended();
    else return fprintf(stderr, "usage: load serve|spin|compress|nap KEY=VALUE ...; see load.c\n"), 2;
    return 0;
}
