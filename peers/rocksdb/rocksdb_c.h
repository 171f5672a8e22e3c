/* What the peer uses of RocksDB's C API. The Java package has the library, and no headers. */
#ifndef ROCKSDB_C_H
#define ROCKSDB_C_H

#include <stddef.h>
#include <stdint.h>

typedef struct rocksdb_t rocksdb_t;
typedef struct rocksdb_options_t rocksdb_options_t;
typedef struct rocksdb_block_based_table_options_t rocksdb_block_based_table_options_t;
typedef struct rocksdb_cache_t rocksdb_cache_t;
typedef struct rocksdb_lru_cache_options_t rocksdb_lru_cache_options_t;
typedef struct rocksdb_filterpolicy_t rocksdb_filterpolicy_t;
typedef struct rocksdb_slicetransform_t rocksdb_slicetransform_t;
typedef struct rocksdb_column_family_handle_t rocksdb_column_family_handle_t;
typedef struct rocksdb_writebatch_t rocksdb_writebatch_t;
typedef struct rocksdb_writeoptions_t rocksdb_writeoptions_t;
typedef struct rocksdb_readoptions_t rocksdb_readoptions_t;
typedef struct rocksdb_flushoptions_t rocksdb_flushoptions_t;
typedef struct rocksdb_iterator_t rocksdb_iterator_t;
typedef struct rocksdb_wait_for_compact_options_t rocksdb_wait_for_compact_options_t;

rocksdb_options_t *rocksdb_options_create(void);
void rocksdb_options_set_create_if_missing(rocksdb_options_t *, unsigned char);
void rocksdb_options_set_create_missing_column_families(rocksdb_options_t *, unsigned char);
void rocksdb_options_set_max_open_files(rocksdb_options_t *, int);
void rocksdb_options_enable_statistics(rocksdb_options_t *);
void rocksdb_options_set_write_buffer_size(rocksdb_options_t *, size_t);
void rocksdb_options_set_target_file_size_base(rocksdb_options_t *, uint64_t);
void rocksdb_options_set_max_bytes_for_level_base(rocksdb_options_t *, uint64_t);
void rocksdb_options_set_prefix_extractor(rocksdb_options_t *, rocksdb_slicetransform_t *);
void rocksdb_options_set_block_based_table_factory(rocksdb_options_t *, rocksdb_block_based_table_options_t *);
rocksdb_slicetransform_t *rocksdb_slicetransform_create_fixed_prefix(size_t);
rocksdb_block_based_table_options_t *rocksdb_block_based_options_create(void);
void rocksdb_block_based_options_set_block_cache(rocksdb_block_based_table_options_t *, rocksdb_cache_t *);
void rocksdb_block_based_options_set_filter_policy(rocksdb_block_based_table_options_t *, rocksdb_filterpolicy_t *);
rocksdb_filterpolicy_t *rocksdb_filterpolicy_create_bloom(double bits_per_key);
rocksdb_lru_cache_options_t *rocksdb_lru_cache_options_create(void);
void rocksdb_lru_cache_options_set_capacity(rocksdb_lru_cache_options_t *, size_t);
void rocksdb_lru_cache_options_set_num_shard_bits(rocksdb_lru_cache_options_t *, int);
rocksdb_cache_t *rocksdb_cache_create_lru_opts(const rocksdb_lru_cache_options_t *);

rocksdb_t *rocksdb_open_column_families(const rocksdb_options_t *, const char *name, int, const char *const *names,
                                        const rocksdb_options_t *const *, rocksdb_column_family_handle_t **, char **error);
rocksdb_t *rocksdb_open_for_read_only_column_families(const rocksdb_options_t *, const char *name, int,
                                                      const char *const *names, const rocksdb_options_t *const *,
                                                      rocksdb_column_family_handle_t **, unsigned char error_if_wal_exists,
                                                      char **error);
void rocksdb_column_family_handle_destroy(rocksdb_column_family_handle_t *);
void rocksdb_close(rocksdb_t *);
void rocksdb_free(void *);

rocksdb_writebatch_t *rocksdb_writebatch_create(void);
void rocksdb_writebatch_clear(rocksdb_writebatch_t *);
void rocksdb_writebatch_put_cf(rocksdb_writebatch_t *, rocksdb_column_family_handle_t *, const char *key, size_t,
                               const char *value, size_t);
void rocksdb_write(rocksdb_t *, const rocksdb_writeoptions_t *, rocksdb_writebatch_t *, char **error);
rocksdb_writeoptions_t *rocksdb_writeoptions_create(void);
void rocksdb_writeoptions_set_sync(rocksdb_writeoptions_t *, unsigned char);

rocksdb_flushoptions_t *rocksdb_flushoptions_create(void);
void rocksdb_flushoptions_set_wait(rocksdb_flushoptions_t *, unsigned char);
void rocksdb_flush_cf(rocksdb_t *, const rocksdb_flushoptions_t *, rocksdb_column_family_handle_t *, char **error);
rocksdb_wait_for_compact_options_t *rocksdb_wait_for_compact_options_create(void);
void rocksdb_wait_for_compact(rocksdb_t *, rocksdb_wait_for_compact_options_t *, char **error);

rocksdb_readoptions_t *rocksdb_readoptions_create(void);
rocksdb_iterator_t *rocksdb_create_iterator_cf(rocksdb_t *, const rocksdb_readoptions_t *, rocksdb_column_family_handle_t *);
void rocksdb_iter_seek(rocksdb_iterator_t *, const char *key, size_t);
unsigned char rocksdb_iter_valid(const rocksdb_iterator_t *);
const char *rocksdb_iter_key(const rocksdb_iterator_t *, size_t *);
void rocksdb_iter_next(rocksdb_iterator_t *);
void rocksdb_iter_get_error(const rocksdb_iterator_t *, char **error);
void rocksdb_iter_destroy(rocksdb_iterator_t *);
void rocksdb_approximate_sizes_cf(rocksdb_t *, rocksdb_column_family_handle_t *, int, const char *const *starts,
                                  const size_t *, const char *const *limits, const size_t *, uint64_t *sizes, char **error);

#endif
