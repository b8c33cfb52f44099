/* A thread pool in one process, with threads of its own that make noise on order: pool NOISY WORKERS.
 *
 * A byte on standard input is an order. The noisy threads then use a CPU for NOISE_S. The thread
 * "front" meanwhile passes requests to the pool and waits for each answer, for MEASURED_S. The
 * answer is a line with the mean time of a request in us, written when the noise has ended.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define NOISE_S 0.5
#define MEASURED_S 0.4
#define PAUSE_NS 2000000
#define WORK_TURNS 20000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ordered = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static int requests, answers, orders, busy;

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static void named(const char *family, long number)
{
	char name[16];

	snprintf(name, sizeof(name), "%s-%ld", family, number);
	prctl(PR_SET_NAME, name);
}

static void *work(void *number)
{
	named("worker", (long)number);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (!requests)
			pthread_cond_wait(&asked, &lock);
		requests--;
		pthread_mutex_unlock(&lock);
		for (volatile int turn = 0; turn < WORK_TURNS; turn++)
			;
		pthread_mutex_lock(&lock);
		answers++;
		pthread_cond_signal(&answered);
	}
	return NULL;
}

static void *compact(void *number)
{
	int seen = 0;

	named("compact", (long)number);
	pthread_mutex_lock(&lock);
	for (;;) {
		while (seen == orders)
			pthread_cond_wait(&ordered, &lock);
		seen = orders;
		pthread_mutex_unlock(&lock);
		for (double until = now_s() + NOISE_S; now_s() < until;)
			;
		pthread_mutex_lock(&lock);
		busy--;
		pthread_cond_signal(&ended);
	}
	return NULL;
}

static void request(void)
{
	pthread_mutex_lock(&lock);
	answers = 0;
	requests++;
	pthread_cond_signal(&asked);
	while (!answers)
		pthread_cond_wait(&answered, &lock);
	pthread_mutex_unlock(&lock);
}

static double measured_us(void)
{
	double begun = now_s(), until = begun + MEASURED_S;
	struct timespec pause = { 0, PAUSE_NS };
	int rounds = 0;

	for (; now_s() < until; rounds++) {
		nanosleep(&pause, NULL);
		request();
	}
	return 1e6 * (now_s() - begun) / rounds;
}

int main(int count, char **given)
{
	long noisy = atol(given[1]), workers = atol(given[2]);
	pthread_t thread;
	double us;
	char byte;

	for (long number = 0; number < noisy; number++)
		pthread_create(&thread, NULL, compact, (void *)number);
	for (long number = 0; number < workers; number++)
		pthread_create(&thread, NULL, work, (void *)number);
	prctl(PR_SET_NAME, "front");
	while (count == 3 && read(0, &byte, 1) == 1) {
		pthread_mutex_lock(&lock);
		busy = noisy;
		orders++;
		pthread_cond_broadcast(&ordered);
		pthread_mutex_unlock(&lock);
		us = measured_us();
		pthread_mutex_lock(&lock);
		while (busy)
			pthread_cond_wait(&ended, &lock);
		pthread_mutex_unlock(&lock);
		printf("%f\n", us);
		fflush(stdout);
	}
	return 0;
}
