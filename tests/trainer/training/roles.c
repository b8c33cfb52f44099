/* A program whose threads have known roles: roles PROGRAM [NAME=ROLE]..., or roles client PORT. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 16

struct role { const char *name, *kind; int from, to; };

static struct role roles[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int waiting_items, listener;

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* Use the CPU for that time, whatever the load of the machine is. */
static void compute(double ms)
{
	double end = cpu_s() + ms / 1e3;

	while (cpu_s() < end)
		;
}

static void rest(double ms)
{
	struct timespec time = { ms / 1e3, ((long)(ms * 1e6)) % 1000000000 };

	nanosleep(&time, NULL);
}

static void pass(int to)
{
	if (write(to, "x", 1) != 1)
		exit(0);
}

static void take(int from)
{
	char byte;

	if (read(from, &byte, 1) != 1)
		exit(0);
}

static void produce(void)
{
	compute(0.15);
	pthread_mutex_lock(&lock);
	waiting_items++;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
	rest(1.5);
}

static void consume(void)
{
	pthread_mutex_lock(&lock);
	while (!waiting_items)
		pthread_cond_wait(&filled, &lock);
	waiting_items--;
	pthread_mutex_unlock(&lock);
	compute(0.05);
}

static void serve(void)
{
	int connection = accept(listener, NULL, NULL);

	for (;;) {
		take(connection);
		compute(0.2);
		pass(connection);
	}
}

static void *begin(void *argument)
{
	struct role *role = argument;

	prctl(PR_SET_NAME, role->name);
	if (!strcmp(role->kind, "server"))
		serve();
	for (;;) {
		if (!strcmp(role->kind, "compute"))
			compute(25), rest(0.5);
		else if (!strcmp(role->kind, "spin"))
			compute(1000);
		else if (!strcmp(role->kind, "burst"))
			compute(120), rest(2000);
		else if (!strcmp(role->kind, "timer"))
			compute(0.1), rest(250);
		else if (!strcmp(role->kind, "poll"))
			compute(0.1), rest(2);
		else if (!strcmp(role->kind, "origin"))
			compute(0.1), rest(2), pass(role->to);
		else if (!strcmp(role->kind, "stage"))
			take(role->from), compute(0.1), pass(role->to);
		else if (!strcmp(role->kind, "ask"))
			compute(0.05), pass(role->to), take(role->from);
		else if (!strcmp(role->kind, "produce"))
			produce();
		else if (!strcmp(role->kind, "consume"))
			consume();
		else
			exit(2);
	}
}

static void client(int port)
{
	struct sockaddr_in to = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) } };
	int connection = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(connection, (struct sockaddr *)&to, sizeof(to)))
		exit(2);
	for (;;) {
		pass(connection);
		take(connection);
		rest(1);
	}
}

static void listen_for_clients(void)
{
	struct sockaddr_in at = { AF_INET, 0, { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(at);

	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&at, size) || listen(listener, 8))
		exit(2);
	getsockname(listener, (struct sockaddr *)&at, &size);
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
}

/* Connect the threads that pass a byte on, each to the next and the last to the first. */
static void connect_ring(int count)
{
	int first = -1, last = -1, ends[2];

	for (int n = 0; n < count; n++) {
		if (strcmp(roles[n].kind, "origin") && strcmp(roles[n].kind, "stage") &&
		    strcmp(roles[n].kind, "ask"))
			continue;
		first = first < 0 ? n : first;
		if (last >= 0) {
			if (pipe(ends))
				exit(2);
			roles[last].to = ends[1];
			roles[n].from = ends[0];
		}
		last = n;
	}
	if (first >= 0) {
		if (pipe(ends))
			exit(2);
		roles[last].to = ends[1];
		roles[first].from = ends[0];
	}
}

int main(int count, char **words)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, 9);
	prctl(PR_SET_NAME, words[1]);
	if (!strcmp(words[1], "client"))
		client(atoi(words[2]));
	for (int n = 2; n < count; n++) {
		roles[n - 2].name = strtok(words[n], "=");
		roles[n - 2].kind = strtok(NULL, "=");
	}
	connect_ring(count - 2);
	listen_for_clients();
	for (int n = 0; n < count - 2; n++)
		pthread_create(&thread, NULL, begin, &roles[n]);
	for (;;)
		pause();
}
