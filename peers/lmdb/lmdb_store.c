/* A graph in LMDB with packed lists: the neighbours of an astrocyte are one value, its ids as they are. The other way, where lists
 * have one neighbour or a few, pairs are sorted by vertex and stored in blocks of some thousands: ids, then astrocytes. Keys are a
 * direction, a type and the (first) vertex, most significant byte first. */
#define _GNU_SOURCE
#include "graph_store.h"
#include "lmdb.h"

#include <endian.h>
#include <string.h>

enum { KEY = 10, BLOCK = 4096 };
enum direction { FORWARD = 1, REVERSE = 2 };

struct pair {
    uint64_t vertex, astrocyte;
};

struct pairs {
    struct pair *at;
    uint64_t count, room;
};

struct store {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_cursor *cursor;
    /* what is to be stored the other way, by type */
    struct pairs pairs[NEURON + 1];
    struct ids list;
};

static int fine(int code) { return code == MDB_SUCCESS ? 0 : fail("%s", mdb_strerror(code)); }

static void key_of(unsigned char *key, int direction, int type, uint64_t vertex) {
    key[0] = (unsigned char)direction;
    key[1] = (unsigned char)type;
    vertex = htobe64(vertex);
    memcpy(key + 2, &vertex, 8);
}

static int begin(struct store *store, unsigned flags) {
    if (fine(mdb_txn_begin(store->env, NULL, flags, &store->txn)) < 0 ||
        fine(mdb_dbi_open(store->txn, NULL, 0, &store->dbi)) < 0) {
        return -1;
    }
    return fine(mdb_cursor_open(store->txn, store->dbi, &store->cursor));
}

static int commit(struct store *store) {
    mdb_cursor_close(store->cursor);
    int code = mdb_txn_commit(store->txn);
    store->txn = NULL;
    return fine(code);
}

struct store *store_open(const char *folder, const char *arm, int mode) {
    (void)arm;
    /* nobody writes while it is read, and a lock would change a file of the store with each trial */
    struct store *store = calloc(1, sizeof *store);
    if (fine(mdb_env_create(&store->env)) < 0 || fine(mdb_env_set_mapsize(store->env, (size_t)1 << 40)) < 0 ||
        fine(mdb_env_open(store->env, folder, mode == STORE_READ ? MDB_RDONLY | MDB_NOLOCK : 0, 0644)) < 0 ||
        begin(store, mode == STORE_READ ? MDB_RDONLY : 0) < 0) {
        free(store);
        return NULL;
    }
    return store;
}

void store_close(struct store *store) {
    if (store->txn != NULL) {
        mdb_cursor_close(store->cursor);
        mdb_txn_abort(store->txn);
    }
    mdb_env_close(store->env);
    free(store->list.at);
    free(store);
}

static int put(struct store *store, unsigned char *key, const uint64_t *words, uint64_t count) {
    MDB_val name = {KEY, key}, value = {8 * count, NULL};
    if (fine(mdb_put(store->txn, store->dbi, &name, &value, MDB_RESERVE)) < 0) {
        return -1;
    }
    memcpy(value.mv_data, words, 8 * count);
    return 0;
}

int store_put(struct store *store, int other, uint64_t first, uint64_t n, const uint64_t *offsets, const uint64_t *ids) {
    struct pairs *pairs = &store->pairs[other];
    uint64_t added = offsets[n] - offsets[0];
    if (pairs->count + added > pairs->room) {
        uint64_t room = 2 * pairs->room > pairs->count + added ? 2 * pairs->room : pairs->count + added;
        struct pair *at = realloc(pairs->at, room * sizeof *at);
        if (at == NULL) {
            return fail("no memory for %llu pairs", (unsigned long long)room);
        }
        pairs->at = at;
        pairs->room = room;
    }
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *list = ids + (offsets[i] - offsets[0]);
        uint64_t count = offsets[i + 1] - offsets[i];
        for (uint64_t j = 0; j < count; j++) {
            pairs->at[pairs->count++] = (struct pair){list[j], first + i};
        }
        unsigned char key[KEY];
        key_of(key, FORWARD, other, first + i);
        if (count > 0 && put(store, key, list, count) < 0) {
            return -1;
        }
    }
    return 0;
}

/* By vertex; a vertex's astrocytes stay in the order in which they came. Digits that all have alike are skipped. */
static int sort_pairs(struct pairs *pairs) {
    struct pair *from = pairs->at, *to = malloc(pairs->count * sizeof *to), *first = from, *second = to;
    uint64_t *counts = malloc((1 << 16) * sizeof *counts);
    if (to == NULL || counts == NULL) {
        return fail("no memory to sort %llu pairs", (unsigned long long)pairs->count);
    }
    for (int shift = 0; shift < 64; shift += 16) {
        memset(counts, 0, (1 << 16) * sizeof *counts);
        for (uint64_t i = 0; i < pairs->count; i++) {
            counts[from[i].vertex >> shift & 0xffff]++;
        }
        if (counts[from[0].vertex >> shift & 0xffff] == pairs->count) {
            continue;
        }
        for (uint64_t digit = 0, before = 0; digit < 1 << 16; digit++) {
            uint64_t count = counts[digit];
            counts[digit] = before;
            before += count;
        }
        for (uint64_t i = 0; i < pairs->count; i++) {
            to[counts[from[i].vertex >> shift & 0xffff]++] = from[i];
        }
        struct pair *other = from;
        from = to;
        to = other;
    }
    free(counts);
    free(from == first ? second : first);
    pairs->at = from;
    return 0;
}

static int put_blocks(struct store *store, int type) {
    struct pairs *pairs = &store->pairs[type];
    if (pairs->count == 0) {
        return 0;
    }
    if (sort_pairs(pairs) < 0) {
        return -1;
    }
    struct ids ids = {0};
    for (uint64_t start = 0, end; start < pairs->count; start = end) {
        /* all of a vertex's pairs are in one block */
        for (end = start + 1; end < pairs->count &&
                              (end - start < BLOCK || pairs->at[end].vertex == pairs->at[end - 1].vertex); end++) {
        }
        uint64_t n = end - start;
        if (ids_reserve(&ids, 2 * n) < 0) {
            return -1;
        }
        for (uint64_t i = 0; i < n; i++) {
            ids.at[i] = pairs->at[start + i].vertex;
            ids.at[n + i] = pairs->at[start + i].astrocyte;
        }
        unsigned char key[KEY];
        key_of(key, REVERSE, type, ids.at[0]);
        if (put(store, key, ids.at, 2 * n) < 0) {
            return -1;
        }
    }
    free(ids.at);
    free(pairs->at);
    *pairs = (struct pairs){0};
    return 0;
}

int store_durable(struct store *store) {
    if (put_blocks(store, SYNAPSE) < 0 || put_blocks(store, NEURON) < 0 || commit(store) < 0) {
        return -1;
    }
    return begin(store, 0);
}

int store_settle(struct store *store) {
    (void)store;
    return 0;
}

/* The block that has or would have the vertex: its ids, then its astrocytes. Less than 0 on failure, 0 if there is none. */
static int block_of(struct store *store, int type, uint64_t vertex, unsigned char *found, const uint64_t **ids, uint64_t *n) {
    unsigned char key[KEY];
    key_of(key, REVERSE, type, vertex);
    MDB_val name = {KEY, key}, value;
    int code = mdb_cursor_get(store->cursor, &name, &value, MDB_SET_RANGE);
    if (code == MDB_NOTFOUND) {
        code = mdb_cursor_get(store->cursor, &name, &value, MDB_LAST);
    } else if (code == MDB_SUCCESS && memcmp(name.mv_data, key, KEY) != 0) {
        code = mdb_cursor_get(store->cursor, &name, &value, MDB_PREV);
    }
    if (code == MDB_NOTFOUND || (code == MDB_SUCCESS && memcmp(name.mv_data, key, 2) != 0)) {
        return 0;
    }
    if (fine(code) < 0) {
        return -1;
    }
    memcpy(found, name.mv_data, KEY);
    *ids = value.mv_data;
    *n = value.mv_size / 16;
    return 1;
}

static uint64_t lower_bound(const uint64_t *ids, uint64_t n, uint64_t id) {
    uint64_t low = 0;
    while (n > 0) {
        uint64_t half = n / 2;
        if (ids[low + half] < id) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* Where a list lies in the map. */
static int find(struct store *store, int type, int other, uint64_t vertex, const uint64_t **ids, uint64_t *count) {
    unsigned char key[KEY];
    *count = 0;
    if (type == ASTROCYTE) {
        key_of(key, FORWARD, other, vertex);
        MDB_val name = {KEY, key}, value;
        int code = mdb_get(store->txn, store->dbi, &name, &value);
        if (code == MDB_NOTFOUND) {
            return 0;
        }
        *ids = value.mv_data;
        *count = value.mv_size / 8;
        return fine(code);
    }
    const uint64_t *vertices;
    uint64_t n;
    int there = block_of(store, type, vertex, key, &vertices, &n);
    if (there <= 0) {
        return there;
    }
    uint64_t first = lower_bound(vertices, n, vertex), end = first;
    while (end < n && vertices[end] == vertex) {
        end++;
    }
    *ids = vertices + n + first;
    *count = end - first;
    return 0;
}

int store_sum(struct store *store, int type, int other, const uint64_t *vertices, uint64_t n, uint64_t out[2]) {
    out[0] = out[1] = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t *ids;
        uint64_t count;
        if (find(store, type, other, vertices[i], &ids, &count) < 0) {
            return -1;
        }
        out[0] += count;
        out[1] += count > 0 ? ids_sum(ids, count) : 0;
    }
    return 0;
}

int64_t store_list(struct store *store, int type, int other, uint64_t vertex, uint64_t *to, uint64_t room) {
    const uint64_t *ids;
    uint64_t count;
    if (find(store, type, other, vertex, &ids, &count) < 0) {
        return -1;
    }
    if (count > 0) {
        memcpy(to, ids, 8 * (count < room ? count : room));
    }
    return (int64_t)count;
}

/* The list, or the block, is written anew with the edge in it. */
static int insert(struct store *store, int other, uint64_t astrocyte, uint64_t id) {
    const uint64_t *ids;
    uint64_t n, at;
    if (find(store, ASTROCYTE, other, astrocyte, &ids, &n) < 0 || ids_reserve(&store->list, n + 1) < 0) {
        return -1;
    }
    at = n > 0 ? lower_bound(ids, n, id) : 0;
    if (at < n && ids[at] == id) {
        return 0;
    }
    if (n > 0) {
        memcpy(store->list.at, ids, 8 * at);
        memcpy(store->list.at + at + 1, ids + at, 8 * (n - at));
    }
    store->list.at[at] = id;
    unsigned char key[KEY];
    key_of(key, FORWARD, other, astrocyte);
    if (put(store, key, store->list.at, n + 1) < 0) {
        return -1;
    }

    const uint64_t *vertices = NULL;
    unsigned char old[KEY];
    int there = block_of(store, other, id, old, &vertices, &n);
    if (there < 0) {
        return -1;
    }
    /* what comes behind a full block begins one */
    if (there == 0 || (n >= BLOCK && vertices[n - 1] < id)) {
        uint64_t pair[] = {id, astrocyte};
        key_of(key, REVERSE, other, id);
        return put(store, key, pair, 2);
    }
    if (ids_reserve(&store->list, 2 * n + 2) < 0) {
        return -1;
    }
    for (at = lower_bound(vertices, n, id); at < n && vertices[at] == id && vertices[n + at] < astrocyte; at++) {
    }
    uint64_t *to = store->list.at;
    memcpy(to, vertices, 8 * at);
    to[at] = id;
    memcpy(to + at + 1, vertices + at, 8 * (n - at));
    memcpy(to + n + 1, vertices + n, 8 * at);
    to[n + 1 + at] = astrocyte;
    memcpy(to + n + 2 + at, vertices + n + at, 8 * (n - at));
    return put(store, old, to, 2 * (n + 1));
}

int store_insert(struct store *store, int other, const uint64_t *astrocytes, const uint64_t *others, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        if (insert(store, other, astrocytes[i], others[i]) < 0) {
            return -1;
        }
    }
    return commit(store) < 0 ? -1 : begin(store, 0);
}

/* A list is all of its bytes; of a block, its pages are not counted. */
uint64_t store_needed(struct store *store, int type, int other, const uint64_t *vertices, uint64_t n) {
    uint64_t out[2];
    return store_sum(store, type, other, vertices, n, out) < 0 ? 0 : 8 * out[0];
}
