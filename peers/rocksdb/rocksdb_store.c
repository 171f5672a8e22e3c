/* A graph in RocksDB with the keys that basalt gives it: a vertex is 'N', type, id (13 bytes), an edge is 'E' and both its ends
 * (25 bytes), once from each end, with empty values. Types are 4 bytes, ids 8, in the machine's order.
 *
 * Options, by the name of the arm:
 *   shipped    what RocksDB gets of basalt's default configuration. The filter's key is spelt as nobody looks it up, so there is
 *              none; the edges' cache of "10%" is read as ten bytes. Its compression never reaches a column family, which has
 *              RocksDB's own default, and that is the same.
 *   repaired   the two as they are meant: 10 bits of bloom filter a key, and a tenth of the memory.
 */
#define _POSIX_C_SOURCE 200809L
#include "graph_store.h"
#include "rocksdb_c.h"

#include <string.h>
#include <unistd.h>

enum { VERTEX_KEY = 13, TYPED_PREFIX = 17, EDGE_KEY = 25 };

struct store {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[2];
    rocksdb_writebatch_t *batch;
    rocksdb_writeoptions_t *later, *now;
    rocksdb_readoptions_t *reading;
    struct ids list;
};

/* Whether `error` is none; else its text is kept for store_error. */
static int fine(char *error) {
    if (error == NULL) {
        return 0;
    }
    fail("%s", error);
    rocksdb_free(error);
    return -1;
}

static rocksdb_cache_t *cache_of(size_t bytes) {
    rocksdb_lru_cache_options_t *options = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(options, bytes);
    rocksdb_lru_cache_options_set_num_shard_bits(options, 4);
    return rocksdb_cache_create_lru_opts(options);
}

static rocksdb_options_t *family(size_t prefix, size_t cache_bytes, int filter) {
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_write_buffer_size(options, 128u << 20);
    rocksdb_options_set_target_file_size_base(options, 128u << 20);
    rocksdb_options_set_max_bytes_for_level_base(options, 1280u << 20);
    rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(prefix));
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache_of(cache_bytes));
    if (filter) {
        rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
    }
    rocksdb_options_set_block_based_table_factory(options, table);
    return options;
}

struct store *store_open(const char *folder, const char *arm, int mode) {
    int repaired = strcmp(arm, "repaired") == 0;
    if (!repaired && strcmp(arm, "shipped") != 0) {
        fail("%s: not an arm; shipped or repaired", arm);
        return NULL;
    }
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_enable_statistics(options);
    rocksdb_options_set_max_open_files(options, -1);
    rocksdb_options_set_create_if_missing(options, mode == STORE_CREATE);
    rocksdb_options_set_create_missing_column_families(options, mode == STORE_CREATE);
    const char *names[] = {"default", "edges"};
    const rocksdb_options_t *families[] = {family(5, 1u << 30, 0), family(13, repaired ? memory / 10 : 10, repaired)};
    struct store *store = calloc(1, sizeof *store);
    char *error = NULL;
    store->db = mode == STORE_READ
                    ? rocksdb_open_for_read_only_column_families(options, folder, 2, names, families, store->families, 0, &error)
                    : rocksdb_open_column_families(options, folder, 2, names, families, store->families, &error);
    if (fine(error) < 0) {
        free(store);
        return NULL;
    }
    store->batch = rocksdb_writebatch_create();
    store->later = rocksdb_writeoptions_create();
    store->now = rocksdb_writeoptions_create();
    rocksdb_writeoptions_set_sync(store->now, 1);
    store->reading = rocksdb_readoptions_create();
    return store;
}

void store_close(struct store *store) {
    for (int i = 0; i < 2; i++) {
        rocksdb_column_family_handle_destroy(store->families[i]);
    }
    rocksdb_close(store->db);
    free(store->list.at);
    free(store);
}

static void end_of(char *key, int32_t type, uint64_t id) {
    memcpy(key, &type, 4);
    memcpy(key + 4, &id, 8);
}

static void put_vertex(struct store *store, int32_t type, uint64_t id) {
    char key[VERTEX_KEY] = {'N'};
    end_of(key + 1, type, id);
    rocksdb_writebatch_put_cf(store->batch, store->families[0], key, sizeof key, "", 0);
}

static void put_edge(struct store *store, uint64_t astrocyte, int other, uint64_t id) {
    char key[EDGE_KEY] = {'E'};
    end_of(key + 1, ASTROCYTE, astrocyte);
    end_of(key + 13, other, id);
    rocksdb_writebatch_put_cf(store->batch, store->families[1], key, sizeof key, "", 0);
    end_of(key + 1, other, id);
    end_of(key + 13, ASTROCYTE, astrocyte);
    rocksdb_writebatch_put_cf(store->batch, store->families[1], key, sizeof key, "", 0);
}

static int write_batch(struct store *store, const rocksdb_writeoptions_t *options) {
    char *error = NULL;
    rocksdb_write(store->db, options, store->batch, &error);
    rocksdb_writebatch_clear(store->batch);
    return fine(error);
}

/* As basalt's bulk insert with the vertices created: one batch a list. */
int store_put(struct store *store, int other, uint64_t first, uint64_t n, const uint64_t *offsets, const uint64_t *ids) {
    for (uint64_t i = 0; i < n; i++) {
        if (offsets[i] == offsets[i + 1]) {
            continue;
        }
        put_vertex(store, ASTROCYTE, first + i);
        for (uint64_t at = offsets[i] - offsets[0]; at < offsets[i + 1] - offsets[0]; at++) {
            put_vertex(store, other, ids[at]);
            put_edge(store, first + i, other, ids[at]);
        }
        if (write_batch(store, store->later) < 0) {
            return -1;
        }
    }
    return 0;
}

/* As basalt's commit. */
int store_durable(struct store *store) {
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    char *error = NULL;
    for (int i = 0; i < 2 && error == NULL; i++) {
        rocksdb_flush_cf(store->db, options, store->families[i], &error);
    }
    return fine(error);
}

int store_settle(struct store *store) {
    char *error = NULL;
    rocksdb_wait_for_compact(store->db, rocksdb_wait_for_compact_options_create(), &error);
    return fine(error);
}

static int read_list(struct store *store, int type, int other, uint64_t vertex) {
    char prefix[TYPED_PREFIX] = {'E'};
    end_of(prefix + 1, type, vertex);
    memcpy(prefix + 13, &(int32_t){other}, 4);
    rocksdb_iterator_t *iterator = rocksdb_create_iterator_cf(store->db, store->reading, store->families[1]);
    int failed = 0;
    store->list.count = 0;
    for (rocksdb_iter_seek(iterator, prefix, sizeof prefix); rocksdb_iter_valid(iterator); rocksdb_iter_next(iterator)) {
        size_t length;
        const char *key = rocksdb_iter_key(iterator, &length);
        if (length != EDGE_KEY || memcmp(key, prefix, sizeof prefix) != 0) {
            break;
        }
        if (ids_reserve(&store->list, store->list.count + 1) < 0) {
            failed = -1;
            break;
        }
        memcpy(&store->list.at[store->list.count++], key + sizeof prefix, 8);
    }
    char *error = NULL;
    rocksdb_iter_get_error(iterator, &error);
    rocksdb_iter_destroy(iterator);
    return fine(error) < 0 ? -1 : failed;
}

int store_sum(struct store *store, int type, int other, const uint64_t *vertices, uint64_t n, uint64_t out[2]) {
    out[0] = out[1] = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (read_list(store, type, other, vertices[i]) < 0) {
            return -1;
        }
        out[0] += store->list.count;
        out[1] += ids_sum(store->list.at, store->list.count);
    }
    return 0;
}

int64_t store_list(struct store *store, int type, int other, uint64_t vertex, uint64_t *ids, uint64_t room) {
    if (read_list(store, type, other, vertex) < 0) {
        return -1;
    }
    if (store->list.count > 0) {
        memcpy(ids, store->list.at, 8 * (store->list.count < room ? store->list.count : room));
    }
    return (int64_t)store->list.count;
}

int store_insert(struct store *store, int other, const uint64_t *astrocytes, const uint64_t *others, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        put_vertex(store, ASTROCYTE, astrocytes[i]);
        put_vertex(store, other, others[i]);
        put_edge(store, astrocytes[i], other, others[i]);
    }
    return write_batch(store, store->now);
}

/* What RocksDB says of the files between the first and the last key of each list. */
uint64_t store_needed(struct store *store, int type, int other, const uint64_t *vertices, uint64_t n) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < n; i++) {
        char low[TYPED_PREFIX] = {'E'}, high[EDGE_KEY + 1];
        end_of(low + 1, type, vertices[i]);
        memcpy(low + 13, &(int32_t){other}, 4);
        memset(high, 0xff, sizeof high);
        memcpy(high, low, sizeof low);
        const char *starts[] = {low}, *limits[] = {high};
        size_t lows[] = {sizeof low}, highs[] = {sizeof high};
        uint64_t size = 0;
        char *error = NULL;
        rocksdb_approximate_sizes_cf(store->db, store->families[1], 1, starts, lows, limits, highs, &size, &error);
        if (fine(error) < 0) {
            return 0;
        }
        total += size;
    }
    return total;
}
