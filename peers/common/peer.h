/* What the C peers share: a clock, lists of read ids, latencies, and ending with a message. */
#ifndef PEER_H
#define PEER_H

#include <stddef.h>

/* Monotonic wall time in seconds. */
double now(void);

/* Prints the message and exits: 1 for a failure, 2 for wrong usage. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void usage(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

void *checked_calloc(size_t count, size_t size);

/* The value of a numeric option; usage error unless it is a whole number from 1 to 2^31 - 1. */
int positive(const char *option, const char *value);

/* One read id a line; empty lines are skipped. */
struct id_list {
    char **ids;
    size_t count;
    char *text;
};
struct id_list load_ids(const char *path);
void free_ids(struct id_list list);

/* Percentiles by nearest rank. Sorts the values. */
struct latency {
    double mean, p50, p99, max;
};
struct latency latency_of(double *seconds, size_t count);

#endif
