/* What graph_peer.py asks of a store that is reached from C. Functions that can fail return less than 0, or no store, and leave
 * a message for store_error. One thread, one store at a time. */
#ifndef GRAPH_STORE_H
#define GRAPH_STORE_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vertex_type { ASTROCYTE = 1, SYNAPSE = 2, NEURON = 3 };
enum store_mode { STORE_CREATE, STORE_READ, STORE_WRITE };

struct store;

const char *store_error(void);

/* `arm` is a set of options, by the store's own names. */
struct store *store_open(const char *folder, const char *arm, int mode);
void store_close(struct store *);

/* Lists of neighbours of astrocytes `first` to `first + n - 1`; both directions are stored. List i is ids[offsets[i] - offsets[0]]
 * up to ids[offsets[i + 1] - offsets[0]]. */
int store_put(struct store *, int other, uint64_t first, uint64_t n, const uint64_t *offsets, const uint64_t *ids);

/* All that was put is on the disc. */
int store_durable(struct store *);

/* What the store does in the background afterwards is over. */
int store_settle(struct store *);

/* Reads the lists of vertices of a type one after the other into an array, or finds them in one, and sums it.
 * `out` gets the number of neighbours and their sum. */
int store_sum(struct store *, int type, int other, const uint64_t *vertices, uint64_t n, uint64_t out[2]);

/* Copies one list, at most `room` of it, and returns its length. */
int64_t store_list(struct store *, int type, int other, uint64_t vertex, uint64_t *ids, uint64_t room);

/* Inserts n edges, and returns when they are on the disc. */
int store_insert(struct store *, int other, const uint64_t *astrocytes, const uint64_t *others, uint64_t n);

/* Stored bytes that the lists take at least; 0 if that is not known. */
uint64_t store_needed(struct store *, int type, int other, const uint64_t *vertices, uint64_t n);

#ifdef __cplusplus
}
#endif

/* ---- shared by the stores ---- */

static char message[512];

const char *store_error(void) { return message; }

/* Keeps the message and returns -1. */
__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...) {
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    return -1;
}

/* A buffer that grows, and is used again. */
struct ids {
    uint64_t *at;
    uint64_t count, room;
};

static inline int ids_reserve(struct ids *ids, uint64_t room) {
    if (room <= ids->room) {
        return 0;
    }
    room = room < 2 * ids->room ? 2 * ids->room : room;
    uint64_t *at = (uint64_t *)realloc(ids->at, room * sizeof *at);
    if (at == NULL) {
        return fail("no memory for %llu ids", (unsigned long long)room);
    }
    ids->at = at;
    ids->room = room;
    return 0;
}

/* The consumer: it touches every value. */
static inline uint64_t ids_sum(const uint64_t *ids, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += ids[i];
    }
    return sum;
}

#endif
