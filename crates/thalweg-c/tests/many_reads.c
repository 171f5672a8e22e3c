/* Reads a file of reads again and again: all reads by thw_next and thw_next_batch, some by their ids, and makes calls
 * that fail. Prints the number of reads, and how many kB of memory it has more at the end than after the first tenth.
 *
 *   many_reads FILE NETWORK READS
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <thalweg.h>
#include <unistd.h>

static void check(int is_true, const char *what) {
    if (!is_true) {
        fprintf(stderr, "%s: %s\n", what, thw_error());
        exit(1);
    }
}

static long resident_kb(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    check(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2, "statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint64_t round_of(const char *path, const char *store) {
    thw_options options = {sizeof options, 2, 32u << 20};
    thw_reads *reads = NULL;
    thw_run *run = NULL;
    thw_read read;
    char first[64] = "";
    const char *text = NULL;
    double real = 0;
    check(thw_reads_open(path, &options, &reads) == THW_OK, "open");
    check(thw_reads_all(reads, &run) == THW_OK, "all");
    uint64_t count = 0, samples = 0;
    int32_t code;
    while ((code = thw_next(run, &read)) == THW_OK) {
        check(strlen(read.id) == read.id_length && read.id_length < sizeof first, "id");
        if (count++ == 0) {
            memcpy(first, read.id, read.id_length + 1);
        }
        samples += read.sample_count;
        check(thw_read_text(run, "channel_number", &text) == THW_OK, "channel_number");
        check(thw_read_real(run, "median_before", &real) == THW_OK, "median_before");
        check(thw_read_text(run, "no such attribute", &text) == THW_MISSING, "an attribute that is not there");
    }
    check(code == THW_END && thw_next(run, &read) == THW_END, "end");
    thw_run_free(run);

    thw_batch batch;
    uint64_t in_batches = 0;
    check(thw_reads_all(reads, &run) == THW_OK, "all");
    while ((code = thw_next_batch(run, &batch)) == THW_OK) {
        in_batches += (uint64_t)(batch.sample_offsets[batch.reads] - batch.sample_offsets[0]);
    }
    check(code == THW_END && in_batches == samples, "batches");
    thw_run_free(run);

    const char *ids[] = {first, first};
    check(thw_reads_get(reads, ids, 2, &run) == THW_OK, "get");
    check(thw_next(run, &read) == THW_OK && strcmp(read.id, first) == 0, "by id");
    /* It ends before its reads were taken. */
    thw_reads_free(reads);
    thw_run_free(run);

    check(thw_reads_open("/no/such/file", NULL, &reads) == THW_IO && strlen(thw_error()) > 0, "no file");
    thw_network *network = NULL;
    check(thw_network_open(store, &options, &network) == THW_OK, "network");
    uint64_t vertices[] = {0, 1, 2};
    thw_lists lists;
    check(thw_neighbors(network, "Astrocyte", NULL, vertices, 3, &lists) == THW_OK && lists.count == 3, "neighbors");
    thw_lists_free(&lists);
    thw_lists_free(&lists);
    check(thw_neighbors(network, "Nothing", NULL, vertices, 3, &lists) == THW_NOT_FOUND, "no type");
    thw_network_free(network);
    return count;
}

int main(int argc, char **argv) {
    check(argc == 4, "usage: many_reads FILE NETWORK READS");
    uint64_t wanted = strtoull(argv[3], NULL, 10), count = 0;
    long before = 0;
    while (count < wanted) {
        count += round_of(argv[1], argv[2]);
        if (before == 0 && count >= wanted / 10) {
            before = resident_kb();
        }
    }
    printf("%" PRIu64 " %ld\n", count, resident_kb() - before);
    return 0;
}
