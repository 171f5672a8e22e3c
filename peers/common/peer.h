/* What the C peers share: a clock, arguments, lists of read ids, latencies, and ending with a message. */
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

/* What is printed in place of the JSON line: nothing, or a row a read, with the SHA-256 of its samples. */
enum rows { ROWS_NONE, ROWS_TSV, ROWS_DIGEST };

struct options {
    const char *mode;
    const char *file;
    const char *ids;
    int threads;
    int batch;
    int pa; /* whether the samples are converted to picoampere */
    int metadata; /* whether the consumer takes the metadata of each read, too */
    enum rows rows;
};

/* MODE FILE [--threads N] [--batch N] [--ids LIST] [--pa] [--metadata] [--tsv|--digest]; `program` is what stands before FILE. Ids go
 * with get and get1, and only with them; get1 has one thread. */
struct options options_of(int argc, char **argv, int threads, const char *program);

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

/* Them as a member of the JSON line; nothing where there are none. */
void print_latency(double *seconds, size_t count);

#endif
