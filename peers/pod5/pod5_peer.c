/* POD5's C API as a benchmark peer: reads a POD5 file, sums every sample, and prints one JSON line. The clock runs from
 * before pod5_open_file to the end of the last sum.
 *
 *   pod5_peer seq  FILE [--threads N]                           every read; each is summed by who decoded it
 *   pod5_peer get  FILE --ids LIST [--threads N] [--batch N]    reads by id, in list order
 *   pod5_peer get1 FILE --ids LIST                              reads by id, one at a time, with latencies
 *
 * --pa: the consumer converts to picoampere. --metadata: it takes what the published comparison takes from each read.
 *
 * POD5_DISABLE_MMAP_OPEN=1 makes the library read the file instead of mapping it.
 *
 * Instead of the JSON line, --tsv prints read_id, samples and sum of each read, and --digest adds the SHA-256 of
 * the samples as little-endian int16. These are for checking values; nothing is timed then.
 */
#define _POSIX_C_SOURCE 200809L
#include "build_info.h"
#include "digest.h"
#include "peer.h"
#include "pod5.h"

#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_TEXT 37

struct outcome {
    uint64_t reads, samples;
    int64_t sum;
    uint64_t digest;
    double open_to_last;
    double open_s, index_s;            /* on one thread, which the consumer waits for */
    double fetch_decode_busy, sum_busy; /* over the threads */
    uint64_t needed_bytes;             /* of the wanted signal, by id only; else 0 */
    double *latencies;                 /* seconds, get1 only */
    size_t latency_count;
};

/* Ends with the library's own words. */
static void check(int error, const struct options *options) {
    if (error != 0) {
        die("%s: POD5: %s", options->file, pod5_get_error_string());
    }
}

static pod5_reader *open_file(const struct options *options, struct outcome *outcome) {
    double begin = now();
    pod5_reader *reader = pod5_open_file(options->file);
    check(reader == NULL, options);
    outcome->open_s = now() - begin;
    return reader;
}

/* ---- read ids ---- */

static void id_text(const uint8_t id[16], char text[ID_TEXT]) {
    char *at = text;
    for (int i = 0; i < 16; i++) {
        at += sprintf(at, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", id[i]);
    }
}

static void parse_id(const char *text, uint8_t id[16]) {
    const char *at = text;
    for (int i = 0; i < 16; i++) {
        int length = 0;
        at += *at == '-';
        if (sscanf(at, "%2hhx%n", &id[i], &length) != 1 || length != 2) {
            die("not a UUID: %s", text);
        }
        at += 2;
    }
}

/* ---- one read ---- */

/* A signal in a buffer that the next read takes over. */
struct signal {
    char read_id[ID_TEXT];
    uint64_t samples;
    int16_t *values;
    size_t capacity;
    float offset, scale; /* to picoampere */
    struct metadata metadata;
    struct run_info *run; /* whose text the metadata have; NULL without --metadata */
};

/* Where a read is. */
struct place {
    pod5_batch *batch;
    size_t row;
};

static struct row_info info_of(struct place place, const struct options *options) {
    struct row_info info;
    uint16_t version;
    check(pod5_get_read_batch_row_info_data(place.batch, place.row, ROW_INFO_VERSION, &info, &version), options);
    return info;
}

static void decode(const pod5_reader *reader, struct place place, const struct row_info *info,
                   const struct options *options, struct signal *signal) {
    signal->samples = info->num_samples;
    if (signal->samples > signal->capacity) {
        free(signal->values);
        signal->capacity = signal->samples + signal->samples / 4;
        signal->values = checked_calloc(signal->capacity, sizeof *signal->values);
    }
    check(pod5_get_read_complete_signal(reader, place.batch, place.row, signal->samples, signal->values), options);
    id_text(info->read_id, signal->read_id);
    signal->offset = info->calibration_offset;
    signal->scale = info->calibration_scale;
    if (options->metadata) {
        check(pod5_get_run_info(place.batch, info->run_info, &signal->run), options);
        signal->metadata = (struct metadata){
            .channel = info->channel,
            .read_number = info->read_number,
            .mux = info->well,
            .start_sample = info->start_sample,
            .run_id = signal->run->acquisition_id,
            .experiment = signal->run->experiment_name,
            .flow_cell = signal->run->flow_cell_id,
            .position = signal->run->sequencer_position,
        };
    }
}

/* The consumer. */
static void consume(struct signal *signal, const struct options *options, struct outcome *outcome) {
    int64_t sum = options->pa ? sum_picoampere(signal->values, signal->samples, signal->offset, signal->scale)
                              : sum_samples(signal->values, signal->samples);
    outcome->reads++;
    outcome->samples += signal->samples;
    outcome->sum += sum;
    if (options->metadata) {
        outcome->digest += metadata_hash(signal->read_id, signal->samples, sum, &signal->metadata);
        check(pod5_free_run_info(signal->run), options);
    } else {
        outcome->digest += read_hash(signal->read_id, signal->samples, sum);
    }
    if (options->rows != ROWS_NONE) {
        print_row(signal->read_id, signal->values, signal->samples, sum, options->rows);
    }
}

static void add(struct outcome *total, const struct outcome *part) {
    total->reads += part->reads;
    total->samples += part->samples;
    total->sum += part->sum;
    total->digest += part->digest;
    total->fetch_decode_busy += part->fetch_decode_busy;
    total->sum_busy += part->sum_busy;
}

/* ---- seq ---- */

/* The batch that reads are handed out from, and how many still hold it. */
struct held {
    pod5_batch *batch;
    size_t rows, next;
    int users;
};

struct feed {
    pod5_reader *reader;
    size_t batches, next;
    struct held *current;
};

static void let_go(struct held *held, const struct options *options) {
    if (--held->users == 0) {
        check(pod5_free_read_batch(held->batch), options);
        free(held);
    }
}

/* Reads a task. The published benchmark has one; with two threads, cold and mapped, 16 took a tenth less time. */
#define TASK 16

/* The next reads, from `row` to before `end`, or NULL after the last. For one thread at a time. */
static struct held *take(struct feed *feed, struct held *done, size_t *row, size_t *end, const struct options *options) {
    if (done != NULL) {
        let_go(done, options);
    }
    while (feed->current == NULL || feed->current->next == feed->current->rows) {
        if (feed->current != NULL) {
            let_go(feed->current, options);
            feed->current = NULL;
        }
        if (feed->next == feed->batches) {
            return NULL;
        }
        struct held *held = checked_calloc(1, sizeof *held);
        held->users = 1;
        check(pod5_get_read_batch(&held->batch, feed->reader, feed->next++), options);
        check(pod5_get_read_batch_row_count(&held->rows, held->batch), options);
        feed->current = held;
    }
    struct held *held = feed->current;
    held->users++;
    *row = held->next;
    *end = held->rows - held->next < TASK ? held->rows : held->next + TASK;
    held->next = *end;
    return held;
}

static void run_seq(const struct options *options, struct outcome *outcome) {
    double begin = now();
    struct feed feed = {.reader = open_file(options, outcome)};
    check(pod5_get_read_batch_count(&feed.batches, feed.reader), options);
#pragma omp parallel
    {
        struct outcome own = {0};
        struct signal signal = {0};
        struct held *held = NULL;
        for (;;) {
            size_t row, end;
#pragma omp critical(feed)
            held = take(&feed, held, &row, &end, options);
            if (held == NULL) {
                break;
            }
            for (; row < end; row++) {
                double t0 = now();
                struct place place = {held->batch, row};
                struct row_info info = info_of(place, options);
                decode(feed.reader, place, &info, options, &signal);
                double t1 = now();
                consume(&signal, options, &own);
                own.fetch_decode_busy += t1 - t0;
                own.sum_busy += now() - t1;
            }
        }
        free(signal.values);
#pragma omp critical(total)
        add(outcome, &own);
    }
    outcome->open_to_last = now() - begin;
    check(pod5_close_and_free_reader(feed.reader), options);
}

/* ---- get, get1: reads by id ---- */

/* Batches, kept once they were asked for: asking again would parse and check them again. */
struct batches {
    pod5_reader *reader;
    size_t count;
    pod5_batch **kept;
};

static struct batches open_batches(const struct options *options, struct outcome *outcome) {
    struct batches batches = {.reader = open_file(options, outcome)};
    check(pod5_get_read_batch_count(&batches.count, batches.reader), options);
    batches.kept = checked_calloc(batches.count, sizeof *batches.kept);
    return batches;
}

static pod5_batch *batch_number(struct batches *batches, size_t number, const struct options *options) {
    if (batches->kept[number] == NULL) {
        check(pod5_get_read_batch(&batches->kept[number], batches->reader, number), options);
    }
    return batches->kept[number];
}

static void close_batches(struct batches *batches, const struct options *options) {
    for (size_t i = 0; i < batches->count; i++) {
        if (batches->kept[i] != NULL) {
            check(pod5_free_read_batch(batches->kept[i]), options);
        }
    }
    free(batches->kept);
    check(pod5_close_and_free_reader(batches->reader), options);
}

/* A read id and its number: in the list of a window, or in the file. */
struct wanted {
    uint8_t id[16];
    size_t number;
};

static int by_id(const void *a, const void *b) {
    return memcmp(((const struct wanted *)a)->id, ((const struct wanted *)b)->id, 16);
}

static int by_id_then_number(const void *a, const void *b) {
    const struct wanted *x = a, *y = b;
    int order = by_id(a, b);
    return order != 0 ? order : (x->number > y->number) - (x->number < y->number);
}

/* The ids of the file, sorted, with their places: planning a traversal for a single read walks all ids of the file. */
struct lookup {
    struct wanted *sorted;
    struct place *places;
    size_t count;
};

static struct lookup new_lookup(struct batches *batches, const struct options *options) {
    struct lookup lookup;
    check(pod5_get_read_count(batches->reader, &lookup.count), options);
    uint8_t(*ids)[16] = checked_calloc(lookup.count, sizeof *ids);
    check(pod5_get_read_ids(batches->reader, lookup.count, ids), options);
    lookup.sorted = checked_calloc(lookup.count, sizeof *lookup.sorted);
    lookup.places = checked_calloc(lookup.count, sizeof *lookup.places);
    size_t read = 0;
    for (size_t b = 0; b < batches->count; b++) {
        pod5_batch *batch = batch_number(batches, b, options);
        size_t rows;
        check(pod5_get_read_batch_row_count(&rows, batch), options);
        for (size_t row = 0; row < rows && read < lookup.count; row++, read++) {
            memcpy(lookup.sorted[read].id, ids[read], sizeof ids[read]);
            lookup.sorted[read].number = read;
            lookup.places[read] = (struct place){batch, row};
        }
    }
    free(ids);
    qsort(lookup.sorted, lookup.count, sizeof *lookup.sorted, by_id);
    return lookup;
}

static const struct place *look_up(const struct lookup *lookup, const char *id, const struct options *options) {
    struct wanted key;
    parse_id(id, key.id);
    const struct wanted *hit = bsearch(&key, lookup->sorted, lookup->count, sizeof *lookup->sorted, by_id);
    if (hit == NULL) {
        die("%s: no read %s", options->file, id);
    }
    return &lookup->places[hit->number];
}

static void free_lookup(struct lookup *lookup) {
    free(lookup->sorted);
    free(lookup->places);
}

/* Stored bytes of the signals of the listed reads, a repeated one counted once. */
static uint64_t bytes_of_reads(struct batches *batches, struct id_list ids, const struct options *options) {
    struct lookup lookup = new_lookup(batches, options);
    char *seen = checked_calloc(lookup.count, 1);
    uint64_t bytes = 0;
    for (size_t i = 0; i < ids.count; i++) {
        const struct place *at = look_up(&lookup, ids.ids[i], options);
        struct place place = *at;
        size_t number = (size_t)(at - lookup.places);
        if (seen[number]) {
            continue;
        }
        seen[number] = 1;
        size_t parts = (size_t)info_of(place, options).signal_row_count;
        uint64_t *rows = checked_calloc(parts, sizeof *rows);
        struct signal_row_info **infos = checked_calloc(parts, sizeof *infos);
        check(pod5_get_signal_row_indices(place.batch, place.row, (int64_t)parts, rows), options);
        check(pod5_get_signal_row_info(batches->reader, parts, rows, infos), options);
        for (size_t k = 0; k < parts; k++) {
            bytes += infos[k]->stored_byte_count;
        }
        check(pod5_free_signal_row_info(parts, infos), options);
        free(infos);
        free(rows);
    }
    free(seen);
    free_lookup(&lookup);
    return bytes;
}

/* What every window of an id list uses again. */
struct window {
    struct wanted *sorted;
    size_t *first; /* by number: where its read is decoded into; a repeated id shares that */
    uint8_t *ids;
    uint32_t *batch_counts, *batch_rows;
    struct place *places; /* in file order, each once */
    struct signal *signals;
};

static struct window new_window(size_t size, size_t batches) {
    return (struct window){
        .sorted = checked_calloc(size, sizeof(struct wanted)),
        .first = checked_calloc(size, sizeof(size_t)),
        .ids = checked_calloc(size, 16),
        .batch_counts = checked_calloc(batches, sizeof(uint32_t)),
        .batch_rows = checked_calloc(size, sizeof(uint32_t)),
        .places = checked_calloc(size, sizeof(struct place)),
        .signals = checked_calloc(size, sizeof(struct signal)),
    };
}

static void free_window(struct window *w, size_t size) {
    for (size_t i = 0; i < size; i++) {
        free(w->signals[i].values);
    }
    free(w->sorted), free(w->first), free(w->ids), free(w->batch_counts), free(w->batch_rows), free(w->places);
    free(w->signals);
}

/* Finds the reads of a window. Returns how many different ones there are; their places are in file order. */
static size_t find(struct window *w, char **ids, size_t count, struct batches *batches, const struct options *options) {
    for (size_t i = 0; i < count; i++) {
        parse_id(ids[i], w->ids + 16 * i);
        memcpy(w->sorted[i].id, w->ids + 16 * i, 16);
        w->sorted[i].number = i;
    }
    qsort(w->sorted, count, sizeof *w->sorted, by_id_then_number);
    for (size_t i = 0; i < count; i++) {
        int repeated = i > 0 && by_id(&w->sorted[i - 1], &w->sorted[i]) == 0;
        w->first[w->sorted[i].number] = repeated ? w->first[w->sorted[i - 1].number] : w->sorted[i].number;
    }
    size_t found;
    check(pod5_plan_traversal(batches->reader, w->ids, count, w->batch_counts, w->batch_rows, &found), options);
    if (found != count) {
        struct lookup lookup = new_lookup(batches, options);
        for (size_t i = 0; i < count; i++) {
            look_up(&lookup, ids[i], options); /* ends with the name of the first that is not there */
        }
        die("%s: %zu reads of %zu found", options->file, found, count);
    }
    size_t places = 0, at = 0;
    for (size_t b = 0; b < batches->count; b++) {
        for (uint32_t k = 0; k < w->batch_counts[b]; k++, at++) {
            if (k == 0 || w->batch_rows[at] != w->batch_rows[at - 1]) {
                w->places[places++] = (struct place){batch_number(batches, b, options), w->batch_rows[at]};
            }
        }
    }
    return places;
}

/* Decodes a window in file order, each read a task, and sums it when it is whole. */
static void deliver(struct window *w, size_t places, size_t count, const pod5_reader *reader,
                    const struct options *options, struct outcome *outcome) {
#pragma omp parallel
    {
        struct outcome own = {0};
        double t0 = now();
#pragma omp for schedule(dynamic, 1) nowait
        for (size_t i = 0; i < places; i++) {
            struct row_info info = info_of(w->places[i], options);
            struct wanted key;
            memcpy(key.id, info.read_id, sizeof key.id);
            const struct wanted *hit = bsearch(&key, w->sorted, count, sizeof *w->sorted, by_id);
            if (hit == NULL) {
                die("%s: a read that nobody asked for", options->file);
            }
            decode(reader, w->places[i], &info, options, &w->signals[w->first[hit->number]]);
        }
        own.fetch_decode_busy = now() - t0;
#pragma omp barrier
        double t1 = now();
#pragma omp for schedule(static) nowait
        for (size_t i = 0; i < count; i++) {
            consume(&w->signals[w->first[i]], options, &own);
        }
        own.sum_busy = now() - t1;
#pragma omp critical(total)
        add(outcome, &own);
    }
}

static void run_get(const struct options *options, struct outcome *outcome, struct id_list ids) {
    size_t size = (size_t)options->batch;
    double begin = now();
    struct batches batches = open_batches(options, outcome);
    struct window w = new_window(size, batches.count);
    for (size_t at = 0; at < ids.count; at += size) {
        size_t count = ids.count - at < size ? ids.count - at : size;
        double t0 = now();
        size_t places = find(&w, ids.ids + at, count, &batches, options);
        outcome->index_s += now() - t0;
        deliver(&w, places, count, batches.reader, options, outcome);
    }
    outcome->open_to_last = now() - begin;

    if (options->rows == ROWS_NONE) {
        outcome->needed_bytes = bytes_of_reads(&batches, ids, options);
    }
    free_window(&w, size);
    close_batches(&batches, options);
}

static void run_get1(const struct options *options, struct outcome *outcome, struct id_list ids) {
    outcome->latencies = checked_calloc(ids.count, sizeof *outcome->latencies);
    outcome->latency_count = ids.count;

    double begin = now();
    struct batches batches = open_batches(options, outcome);
    double t = now();
    struct lookup lookup = new_lookup(&batches, options);
    outcome->index_s = now() - t;
    struct signal signal = {0};
    for (size_t i = 0; i < ids.count; i++) {
        double t0 = now();
        struct place place = *look_up(&lookup, ids.ids[i], options);
        struct row_info info = info_of(place, options);
        decode(batches.reader, place, &info, options, &signal);
        double t1 = now();
        consume(&signal, options, outcome);
        /* a request ends with its samples summed */
        outcome->latencies[i] = now() - t0;
        outcome->fetch_decode_busy += t1 - t0;
        outcome->sum_busy += now() - t1;
    }
    outcome->open_to_last = now() - begin;

    if (options->rows == ROWS_NONE) {
        outcome->needed_bytes = bytes_of_reads(&batches, ids, options);
    }
    free(signal.values);
    free_lookup(&lookup);
    close_batches(&batches, options);
}

/* ---- the JSON line ---- */

static void print_json(const struct options *options, const struct outcome *outcome) {
    const char *preloaded = getenv("LD_PRELOAD");
    printf("{\"workload\":\"pod5-c-%s\",\"version\":\"POD5 C API " POD5_VERSION "\"", options->mode);
    printf(",\"build\":{\"compiler\":\"" BUILD_COMPILER "\",\"flags\":\"" BUILD_FLAGS "\",\"library\":\"as published in the "
           "lib_pod5 wheel\",\"allocator\":\"the C library's%s; the library's own for Arrow's buffers\"}",
           preloaded != NULL && *preloaded != '\0' ? ", LD_PRELOAD is set" : "");
    printf(",\"mmap\":%s", getenv("POD5_DISABLE_MMAP_OPEN") == NULL ? "true" : "false");
    printf(",\"open_to_last_s\":%.9f", outcome->open_to_last);
    printf(",\"reads\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"sum\":%" PRId64 ",\"digest\":\"%016" PRIx64 "\"",
           outcome->reads, outcome->samples, outcome->sum, outcome->digest);
    printf(",\"bytes_decoded\":%" PRIu64, outcome->samples * (uint64_t)sizeof(int16_t));
    printf(",\"threads\":%d,\"batch\":%d", options->threads, options->batch);
    printf(",\"stages\":{\"open\":{\"busy_s\":%.9f,\"exposed_s\":%.9f}", outcome->open_s, outcome->open_s);
    if (outcome->index_s > 0) {
        printf(",\"index\":{\"busy_s\":%.9f,\"exposed_s\":%.9f}", outcome->index_s, outcome->index_s);
    }
    printf(",\"fetch_decode\":%.9f,\"sum\":%.9f}", outcome->fetch_decode_busy, outcome->sum_busy);
    if (options->ids != NULL) {
        printf(",\"needed_bytes\":%" PRIu64, outcome->needed_bytes);
    }
    print_latency(outcome->latencies, outcome->latency_count);
    puts("}");
}

int main(int argc, char **argv) {
    struct options options = options_of(argc, argv, omp_get_num_procs(), "pod5_peer seq|get|get1");
    if (options.rows != ROWS_NONE) {
        options.threads = 1; /* so that rows come in order */
    }
    struct outcome outcome = {0};
    struct id_list ids = {0};
    if (options.ids != NULL) {
        ids = load_ids(options.ids);
    }
    omp_set_num_threads(options.threads);
    check(pod5_init(), &options);

    if (strcmp(options.mode, "seq") == 0) {
        run_seq(&options, &outcome);
    } else if (strcmp(options.mode, "get") == 0) {
        run_get(&options, &outcome, ids);
    } else if (strcmp(options.mode, "get1") == 0) {
        run_get1(&options, &outcome, ids);
    } else {
        usage("unknown mode: %s", options.mode);
    }
    if (options.rows == ROWS_NONE) {
        print_json(&options, &outcome);
    }
    pod5_terminate();
    free(outcome.latencies);
    free_ids(ids);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
