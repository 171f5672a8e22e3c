/* basalt itself, its C++ library without the Python around it. Arms: `shipped` is its default configuration, `repaired` the same with
 * the edges' bloom filter under the name that is looked up, and a tenth of the memory as their cache, in bytes. */
#include "graph_store.h"

#include <basalt/basalt.hpp>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

struct store {
    std::unique_ptr<basalt::UndirectedGraph> graph;
    basalt::vertex_uids_t list;
};

static int fine(const basalt::Status &status) { return status ? 0 : fail("%s", status.message.c_str()); }

/* Its own words for what it says when it is not told otherwise, but for the two. */
static void repair(const std::string &folder) {
    auto const memory = static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES)) * static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
    auto const family = [](const char *name, int prefix, const std::string &table) {
        return std::string(R"({"name": ")") + name + R"(", "config": {"write_buffer_size": 134217728, "target_file_size_base": 134217728,
            "max_bytes_for_level_base": 1342177280, "prefix_extractor": {"type": "fixed", "config": {"prefix_len": )" + std::to_string(prefix) +
               R"(}}, "table_factory": {"type": "block-based", "config": {)" + table + "}}}}";
    };
    std::ofstream file(folder + "/config.json");
    file << R"({"read_only": false, "statistics": true, "max_open_files": -1, "create_if_missing": true,
        "create_missing_column_families": true, "compression": {"type": "snappy"},
        "block_cache": {"type": "lru", "config": {"capacity": 1073741824, "num_shard_bits": 4}}, "column_families": [)"
         << family("<default>", 5, R"("block_cache": {"type": "global"})") << ", "
         << family("edges", 13, R"("block_cache": {"type": "lru", "config": {"capacity": )" + std::to_string(memory / 10) +
                                    R"(}}, "filter_policy": {"type": "bloom", "config": {"bits_per_key": 10, "use_block_based_builder": false}})")
         << "]}\n";
}

struct store *store_open(const char *folder, const char *arm, int mode) {
    try {
        if (mode == STORE_CREATE && std::strcmp(arm, "repaired") == 0) {
            repair(folder);
        }
        return new store{std::make_unique<basalt::UndirectedGraph>(folder), {}};
    } catch (const std::exception &error) {
        fail("%s", error.what());
        return nullptr;
    }
}

void store_close(struct store *store) { delete store; }

int store_put(struct store *store, int other, uint64_t first, uint64_t n, const uint64_t *offsets, const uint64_t *ids) {
    for (uint64_t i = 0; i < n; i++) {
        auto const count = offsets[i + 1] - offsets[i];
        auto const vertex = basalt::make_id(ASTROCYTE, first + i);
        if (fine(store->graph->edges().insert(vertex, other, ids + (offsets[i] - offsets[0]), count, true)) < 0) {
            return -1;
        }
    }
    return 0;
}

int store_durable(struct store *store) { return fine(store->graph->commit()); }

int store_settle(struct store *) { return 0; }

static int read_list(struct store *store, int type, int other, uint64_t vertex) {
    store->list.clear();
    return fine(store->graph->edges().get(basalt::make_id(type, vertex), other, store->list));
}

/* It hands over pairs of type and id; these are the arrays that the consumer gets. */
int store_sum(struct store *store, int type, int other, const uint64_t *vertices, uint64_t n, uint64_t out[2]) {
    out[0] = out[1] = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (read_list(store, type, other, vertices[i]) < 0) {
            return -1;
        }
        out[0] += store->list.size();
        for (auto const &end : store->list) {
            out[1] += end.second;
        }
    }
    return 0;
}

int64_t store_list(struct store *store, int type, int other, uint64_t vertex, uint64_t *ids, uint64_t room) {
    if (read_list(store, type, other, vertex) < 0) {
        return -1;
    }
    for (uint64_t i = 0; i < store->list.size() && i < room; i++) {
        ids[i] = store->list[i].second;
    }
    return static_cast<int64_t>(store->list.size());
}

/* One by one even in a batch, of which the last is committed: its bulk insert takes the edges of one vertex. */
int store_insert(struct store *store, int other, const uint64_t *astrocytes, const uint64_t *others, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        auto const vertex = basalt::make_id(ASTROCYTE, astrocytes[i]);
        if (fine(store->graph->edges().insert(vertex, other, others + i, 1, true, i + 1 == n)) < 0) {
            return -1;
        }
    }
    return 0;
}

uint64_t store_needed(struct store *, int, int, const uint64_t *, uint64_t) { return 0; }
