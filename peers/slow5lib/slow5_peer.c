/* slow5lib as a benchmark peer: reads a SLOW5 or BLOW5 file in one of the ways that slow5lib offers, sums every
 * sample, and prints one JSON line. The clock runs from before slow5_open to the end of the last batch's sums.
 *
 *   slow5_peer seq  FILE [--threads N] [--batch N]              read a batch on one thread, then decode it on N
 *   slow5_peer pool FILE [--threads N] [--batch N]              read on one thread; each read is a task of a pool of N
 *   slow5_peer mt   FILE [--threads N] [--batch N]              slow5lib's own batch API
 *   slow5_peer get  FILE --ids LIST [--threads N] [--batch N]   reads by id, in list order
 *   slow5_peer get1 FILE --ids LIST                             reads by id, one at a time, with latencies
 *
 * --pa: the consumer converts to picoampere. --metadata: it takes what the published comparison takes from each read.
 *
 * Instead of the JSON line, --tsv prints read_id, samples and sum of each read, and --digest adds the SHA-256 of
 * the samples as little-endian int16. These are for checking values; nothing is timed then.
 */
#define _POSIX_C_SOURCE 200809L
#include "build_info.h"
#include "digest.h"
#include "peer.h"

#include <inttypes.h>
#include <omp.h>
#include <pthread.h>
#include <slow5/slow5.h>
#include <slow5/slow5_mt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#include <zlib.h>
#include <zstd.h>

/* Seconds of one stage: of work, summed over the threads, and of waiting for it, on the clock. */
struct stage {
    double busy, exposed;
};

/* fetch_decode: where the interface does not let a caller see the two apart. Its busy time cannot be seen either. */
struct stages {
    struct stage open, index, fetch, decode, fetch_decode, sum, release;
};

struct outcome {
    const char *workload;
    uint64_t reads, samples;
    int64_t sum;
    uint64_t digest;
    double open_to_last;
    struct stages stages;
    uint64_t needed_bytes; /* of the data file, by id only; else 0 */
    int index_was_there;
    double *latencies; /* seconds, get1 only */
    size_t latency_count;
};

/* Work on one thread, which the consumer waits for. */
static void add_serial(struct stage *stage, double seconds) {
    stage->busy += seconds;
    stage->exposed += seconds;
}

/* ---- the consumer ---- */

static int64_t sum_record(const slow5_rec_t *r, const struct options *options) {
    return options->pa ? sum_picoampere(r->raw_signal, r->len_raw_signal, r->offset, r->range / r->digitisation)
                       : sum_samples(r->raw_signal, r->len_raw_signal);
}

/* The file is closed last, so that its header outlives the records. */
static uint64_t hash_record(const slow5_rec_t *r, int64_t sum, const slow5_file_t *file, const struct options *options) {
    if (!options->metadata) {
        return read_hash(r->read_id, r->len_raw_signal, sum);
    }
    const char *channel = slow5_aux_get_string(r, "channel_number", NULL, NULL);
    struct metadata metadata = {
        .channel = channel != NULL ? atoi(channel) : 0,
        .read_number = (uint32_t)slow5_aux_get_int32(r, "read_number", NULL),
        .mux = slow5_aux_get_uint8(r, "start_mux", NULL),
        .start_sample = slow5_aux_get_uint64(r, "start_time", NULL),
        .run_id = slow5_hdr_get("run_id", r->read_group, file->header),
        .experiment = slow5_hdr_get("experiment_name", r->read_group, file->header),
        .flow_cell = slow5_hdr_get("flow_cell_id", r->read_group, file->header),
        .position = slow5_hdr_get("sequencer_position", r->read_group, file->header),
    };
    return metadata_hash(r->read_id, r->len_raw_signal, sum, &metadata);
}

/* Sums a batch on all threads and adds it to the outcome. */
static void consume(slow5_rec_t **records, int count, const slow5_file_t *file, const struct options *options,
                    struct outcome *outcome) {
    uint64_t samples = 0, digest = 0;
    int64_t sum = 0;
    double busy = 0, begin = now();
#pragma omp parallel reduction(+ : samples, sum, digest, busy)
    {
        double start = now();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < count; i++) {
            const slow5_rec_t *r = records[i];
            int64_t of_read = sum_record(r, options);
            samples += r->len_raw_signal;
            sum += of_read;
            digest += hash_record(r, of_read, file, options);
        }
        busy += now() - start;
    }
    outcome->stages.sum.busy += busy;
    outcome->stages.sum.exposed += now() - begin;
    outcome->reads += (uint64_t)count;
    outcome->samples += samples;
    outcome->sum += sum;
    outcome->digest += digest;
    for (int i = 0; i < count && options->rows != ROWS_NONE; i++) {
        const slow5_rec_t *r = records[i];
        print_row(r->read_id, r->raw_signal, r->len_raw_signal, sum_samples(r->raw_signal, r->len_raw_signal), options->rows);
    }
}

static slow5_file_t *open_file(const struct options *options, struct outcome *outcome) {
    double begin = now();
    slow5_file_t *file = slow5_open(options->file, "r");
    if (file == NULL) {
        die("%s: slow5lib cannot open it (error %d)", options->file, slow5_errno);
    }
    add_serial(&outcome->stages.open, now() - begin);
    return file;
}

/* ---- the index file, read outside the timed region ---- */

static FILE *open_index(const char *file) {
    char *path = checked_calloc(strlen(file) + sizeof ".idx", 1);
    sprintf(path, "%s.idx", file);
    FILE *index = fopen(path, "rb");
    free(path);
    return index;
}

static int index_exists(const char *file) {
    FILE *index = open_index(file);
    if (index != NULL) {
        fclose(index);
    }
    return index != NULL;
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How many bytes the wanted records take in the data file; a record that is wanted twice counts once. Sorts the ids.
 * SLOW5 specification, "SLOW5 index": 64 bytes of header; then u16 id length, id, u64 offset, u64 size; then a marker. */
static uint64_t bytes_of_reads(const char *file, struct id_list ids) {
    FILE *index = open_index(file);
    if (index == NULL || fseek(index, 64, SEEK_SET) != 0) {
        die("%s: no index beside it", file);
    }
    qsort(ids.ids, ids.count, sizeof *ids.ids, by_text);
    static char text[UINT16_MAX + 1];
    uint64_t bytes = 0, place[2];
    uint16_t length;
    while (fread(&length, sizeof length, 1, index) == 1 && fread(text, 1, length, index) == length &&
           fread(place, sizeof place, 1, index) == 1) {
        text[length] = '\0';
        const char *id = text;
        if (bsearch(&id, ids.ids, ids.count, sizeof *ids.ids, by_text) != NULL) {
            bytes += place[1];
        }
    }
    fclose(index);
    return bytes;
}

/* ---- seq: the fork-join driver of the published benchmark ---- */

/* Returns how many records were read: fewer than asked for at the end of the file. */
static int read_batch(slow5_file_t *file, char **stored, size_t *lengths, const struct options *options) {
    int count = 0;
    while (count < options->batch && slow5_get_next_bytes(&stored[count], &lengths[count], file) >= 0) {
        count++;
    }
    if (count < options->batch && slow5_errno != SLOW5_ERR_EOF) {
        die("%s: slow5lib cannot read the next record (error %d)", options->file, slow5_errno);
    }
    return count;
}

/* Returns the seconds of work, summed over the threads. */
static double decode_batch(slow5_file_t *file, char **stored, size_t *lengths, slow5_rec_t **records, int count) {
    double busy = 0;
#pragma omp parallel reduction(+ : busy)
    {
        double start = now();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < count; i++) {
            if (slow5_decode(&stored[i], &lengths[i], &records[i], file) < 0) {
                die("slow5lib cannot decode a record (error %d)", slow5_errno);
            }
            free(stored[i]);
        }
        busy += now() - start;
    }
    return busy;
}

/* Returns the seconds of work, summed over the threads. */
static double free_records(slow5_rec_t **records, int count) {
    double busy = 0;
#pragma omp parallel reduction(+ : busy)
    {
        double start = now();
#pragma omp for schedule(static) nowait
        for (int i = 0; i < count; i++) {
            slow5_rec_free(records[i]);
            records[i] = NULL;
        }
        busy += now() - start;
    }
    return busy;
}

static void run_seq(const struct options *options, struct outcome *outcome) {
    size_t capacity = (size_t)options->batch;
    char **stored = checked_calloc(capacity, sizeof *stored);
    size_t *lengths = checked_calloc(capacity, sizeof *lengths);
    slow5_rec_t **records = checked_calloc(capacity, sizeof *records);
    outcome->workload = "slow5lib-forkjoin";

    double begin = now();
    slow5_file_t *file = open_file(options, outcome);
    int count = 0;
    do {
        double t0 = now();
        if (count > 0) {
            outcome->stages.release.busy += free_records(records, count);
        }
        double t1 = now();
        count = read_batch(file, stored, lengths, options);
        double t2 = now();
        outcome->stages.decode.busy += decode_batch(file, stored, lengths, records, count);
        outcome->stages.decode.exposed += now() - t2;
        outcome->stages.release.exposed += t1 - t0;
        add_serial(&outcome->stages.fetch, t2 - t1);
        consume(records, count, file, options, outcome);
    } while (count == options->batch);
    outcome->open_to_last = now() - begin;

    free_records(records, count);
    free(records);
    free(lengths);
    free(stored);
    slow5_close(file);
}

/* ---- pool: a task a read, as the published benchmark's second driver has it ---- */

struct task {
    char *stored;
    size_t length;
};

/* Tasks that wait for a thread, at most a batch of them, in a ring. */
struct pool {
    slow5_file_t *file;
    const struct options *options;
    struct task *tasks;
    size_t capacity, first, count;
    int over;
    pthread_mutex_t lock;
    pthread_cond_t added, taken;
    struct outcome *outcome;
};

static int next_task(struct pool *pool, struct task *task) {
    pthread_mutex_lock(&pool->lock);
    while (pool->count == 0 && !pool->over) {
        pthread_cond_wait(&pool->added, &pool->lock);
    }
    int found = pool->count > 0;
    if (found) {
        *task = pool->tasks[pool->first];
        pool->first = (pool->first + 1) % pool->capacity;
        pool->count--;
        pthread_cond_signal(&pool->taken);
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void add_task(struct pool *pool, struct task task) {
    pthread_mutex_lock(&pool->lock);
    while (pool->count == pool->capacity) {
        pthread_cond_wait(&pool->taken, &pool->lock);
    }
    pool->tasks[(pool->first + pool->count++) % pool->capacity] = task;
    pthread_cond_signal(&pool->added);
    pthread_mutex_unlock(&pool->lock);
}

static void end_tasks(struct pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->over = 1;
    pthread_cond_broadcast(&pool->added);
    pthread_mutex_unlock(&pool->lock);
}

static void *work(void *of) {
    struct pool *pool = of;
    struct outcome own = {0};
    struct task task;
    while (next_task(pool, &task)) {
        double t0 = now();
        slow5_rec_t *record = NULL;
        if (slow5_decode(&task.stored, &task.length, &record, pool->file) < 0) {
            die("slow5lib cannot decode a record (error %d)", slow5_errno);
        }
        free(task.stored);
        double t1 = now();
        int64_t sum = sum_record(record, pool->options);
        own.reads++;
        own.samples += record->len_raw_signal;
        own.sum += sum;
        own.digest += hash_record(record, sum, pool->file, pool->options);
        own.stages.decode.busy += t1 - t0;
        own.stages.sum.busy += now() - t1;
        if (pool->options->rows != ROWS_NONE) {
            print_row(record->read_id, record->raw_signal, record->len_raw_signal, sum, pool->options->rows);
        }
        slow5_rec_free(record);
    }
    pthread_mutex_lock(&pool->lock);
    pool->outcome->reads += own.reads;
    pool->outcome->samples += own.samples;
    pool->outcome->sum += own.sum;
    pool->outcome->digest += own.digest;
    pool->outcome->stages.decode.busy += own.stages.decode.busy;
    pool->outcome->stages.sum.busy += own.stages.sum.busy;
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void run_pool(const struct options *options, struct outcome *outcome) {
    outcome->workload = "slow5lib-pool";
    /* rows come in the order of the file */
    int count = options->rows == ROWS_NONE ? options->threads : 1;
    pthread_t *threads = checked_calloc((size_t)count, sizeof *threads);

    double begin = now();
    struct pool pool = {.options = options, .capacity = (size_t)options->batch, .outcome = outcome};
    pool.file = open_file(options, outcome);
    pool.tasks = checked_calloc(pool.capacity, sizeof *pool.tasks);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.added, NULL);
    pthread_cond_init(&pool.taken, NULL);
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, work, &pool) != 0) {
            die("no thread number %d", i + 1);
        }
    }
    for (;;) {
        struct task task = {0};
        double t0 = now();
        int status = slow5_get_next_bytes(&task.stored, &task.length, pool.file);
        outcome->stages.fetch.busy += now() - t0;
        if (status < 0) {
            break;
        }
        add_task(&pool, task);
    }
    int reason = slow5_errno;
    if (reason != SLOW5_ERR_EOF) {
        die("%s: slow5lib cannot read the next record (error %d)", options->file, reason);
    }
    end_tasks(&pool);
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    outcome->open_to_last = now() - begin;

    pthread_cond_destroy(&pool.taken);
    pthread_cond_destroy(&pool.added);
    pthread_mutex_destroy(&pool.lock);
    free(pool.tasks);
    free(threads);
    slow5_close(pool.file);
}

/* ---- mt: slow5lib's own batch interface. It exits on errors. ---- */

static void run_mt(const struct options *options, struct outcome *outcome) {
    outcome->workload = "slow5lib-mt";

    double begin = now();
    slow5_file_t *file = open_file(options, outcome);
    slow5_mt_t *pool = slow5_init_mt(options->threads, file);
    slow5_batch_t *batch = slow5_init_batch(options->batch);
    int count;
    do {
        double t0 = now();
        count = slow5_get_next_batch(pool, batch, options->batch);
        outcome->stages.fetch_decode.exposed += now() - t0;
        consume(batch->slow5_rec, count, file, options, outcome);
    } while (count == options->batch);
    outcome->open_to_last = now() - begin;

    slow5_free_batch(batch);
    slow5_free_mt(pool);
    slow5_close(file);
}

/* ---- get, get1: reads by id ---- */

/* slow5lib writes an index beside the file when there is none; the outcome says so, for that is another job. */
static void load_index(slow5_file_t *file, const struct options *options, struct outcome *outcome) {
    double begin = now();
    if (slow5_idx_load(file) < 0) {
        die("%s: slow5lib cannot load the index (error %d)", options->file, slow5_errno);
    }
    add_serial(&outcome->stages.index, now() - begin);
}

static void run_get(const struct options *options, struct outcome *outcome, struct id_list ids) {
    outcome->workload = "slow5lib-get";

    double begin = now();
    slow5_file_t *file = open_file(options, outcome);
    load_index(file, options, outcome);
    slow5_mt_t *pool = slow5_init_mt(options->threads, file);
    slow5_batch_t *batch = slow5_init_batch(options->batch);
    for (size_t at = 0; at < ids.count; at += (size_t)options->batch) {
        size_t left = ids.count - at;
        int wanted = left < (size_t)options->batch ? (int)left : options->batch;
        double t0 = now();
        int count = slow5_get_batch(pool, batch, ids.ids + at, wanted);
        outcome->stages.fetch_decode.exposed += now() - t0;
        consume(batch->slow5_rec, count, file, options, outcome);
    }
    outcome->open_to_last = now() - begin;

    slow5_free_batch(batch);
    slow5_free_mt(pool);
    slow5_idx_unload(file);
    slow5_close(file);
}

static void run_get1(const struct options *options, struct outcome *outcome, struct id_list ids) {
    outcome->workload = "slow5lib-get1";
    outcome->latencies = checked_calloc(ids.count, sizeof *outcome->latencies);
    outcome->latency_count = ids.count;

    double begin = now();
    slow5_file_t *file = open_file(options, outcome);
    load_index(file, options, outcome);
    slow5_rec_t *record = NULL;
    for (size_t i = 0; i < ids.count; i++) {
        double t0 = now();
        if (slow5_get(ids.ids[i], &record, file) < 0) {
            die("%s: slow5lib cannot get read %s (error %d)", options->file, ids.ids[i], slow5_errno);
        }
        outcome->stages.fetch_decode.exposed += now() - t0;
        consume(&record, 1, file, options, outcome);
        /* a request ends with its samples summed */
        outcome->latencies[i] = now() - t0;
    }
    outcome->open_to_last = now() - begin;

    slow5_rec_free(record);
    slow5_idx_unload(file);
    slow5_close(file);
}

/* ---- the JSON line ---- */

/* A stage that took no part is left out. */
static void print_stage(const char *separator, const char *name, struct stage stage) {
    if (stage.busy > 0) {
        printf("%s\"%s\":{\"busy_s\":%.9f,\"exposed_s\":%.9f}", separator, name, stage.busy, stage.exposed);
    } else if (stage.exposed > 0) {
        printf("%s\"%s\":{\"exposed_s\":%.9f}", separator, name, stage.exposed);
    }
}

static void print_wall(const char *name, struct stage stage) {
    if (stage.exposed > 0) {
        printf(",\"%s\":%.9f", name, stage.exposed);
    } else {
        printf(",\"%s\":null", name);
    }
}

/* The C library's own, unless another was loaded before it. */
static const char *allocator(void) {
    static char text[64];
    const char *preloaded = getenv("LD_PRELOAD");
#ifdef __GLIBC__
    snprintf(text, sizeof text, "glibc %s malloc%s", gnu_get_libc_version(),
             preloaded != NULL && *preloaded != '\0' ? ", LD_PRELOAD is set" : "");
#else
    snprintf(text, sizeof text, "the C library's%s", preloaded != NULL && *preloaded != '\0' ? ", LD_PRELOAD is set" : "");
#endif
    return text;
}

static void print_json(const struct options *options, const struct outcome *outcome) {
    const struct stages *s = &outcome->stages;
    printf("{\"workload\":\"%s\",\"version\":\"slow5lib " SLOW5LIB_VERSION "\"", outcome->workload);
    printf(",\"build\":{\"compiler\":\"" BUILD_COMPILER "\",\"flags\":\"" BUILD_FLAGS "\",\"zstd\":\"%s\","
           "\"zstd_source\":\"" BUILD_ZSTD_SOURCE "\",\"zlib\":\"%s\",\"source_sha256\":\"" BUILD_SOURCE_SHA256 "\""
           ",\"allocator\":\"%s\"}",
           ZSTD_versionString(), zlibVersion(), allocator());
    printf(",\"open_to_last_s\":%.9f", outcome->open_to_last);
    print_wall("disk_s", s->fetch);
    print_wall("decode_s", s->decode);
    print_wall("sum_s", s->sum);
    printf(",\"reads\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"sum\":%" PRId64 ",\"digest\":\"%016" PRIx64 "\"",
           outcome->reads, outcome->samples, outcome->sum, outcome->digest);
    printf(",\"bytes_decoded\":%" PRIu64, outcome->samples * (uint64_t)sizeof(int16_t));
    printf(",\"threads\":%d,\"batch\":%d,\"stages\":{", options->threads, options->batch);
    print_stage("", "open", s->open);
    print_stage(",", "index", s->index);
    print_stage(",", "fetch", s->fetch);
    print_stage(",", "decode", s->decode);
    print_stage(",", "fetch_decode", s->fetch_decode);
    print_stage(",", "sum", s->sum);
    print_stage(",", "free", s->release);
    putchar('}');
    if (options->ids != NULL) {
        printf(",\"needed_bytes\":%" PRIu64 ",\"index_was_there\":%s", outcome->needed_bytes,
               outcome->index_was_there ? "true" : "false");
    }
    print_latency(outcome->latencies, outcome->latency_count);
    puts("}");
}

/* Idle OpenMP threads spin for some milliseconds. In seq they wait for their own next batch, as in the published
 * program; in the other modes they would take cores from slow5lib's threads. libgomp reads the policy when it is
 * loaded, so the program starts anew, before anything is timed. */
static void let_idle_threads_sleep(char **argv) {
    if (getenv("OMP_WAIT_POLICY") == NULL && setenv("OMP_WAIT_POLICY", "passive", 1) == 0) {
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv) {
    struct options options = options_of(argc, argv, omp_get_num_procs(), "slow5_peer seq|pool|mt|get|get1");
    if (strcmp(options.mode, "seq") != 0) {
        let_idle_threads_sleep(argv);
    }
    struct outcome outcome = {0};
    struct id_list ids = {0};
    if (options.ids != NULL) {
        ids = load_ids(options.ids);
        outcome.index_was_there = index_exists(options.file);
    }
    omp_set_num_threads(options.threads);

    if (strcmp(options.mode, "seq") == 0) {
        run_seq(&options, &outcome);
    } else if (strcmp(options.mode, "pool") == 0) {
        run_pool(&options, &outcome);
    } else if (strcmp(options.mode, "mt") == 0) {
        run_mt(&options, &outcome);
    } else if (strcmp(options.mode, "get") == 0) {
        run_get(&options, &outcome, ids);
    } else if (strcmp(options.mode, "get1") == 0) {
        run_get1(&options, &outcome, ids);
    } else {
        usage("unknown mode: %s", options.mode);
    }
    if (options.rows == ROWS_NONE) {
        if (options.ids != NULL) {
            outcome.needed_bytes = bytes_of_reads(options.file, ids);
        }
        print_json(&options, &outcome);
    }
    free(outcome.latencies);
    free_ids(ids);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
