/* Prints the id, the number of samples, their sum, the mean current and the channel of each read, as a program with
 * slow5lib does in a loop of slow5_get_next:
 *
 *   slow5_file_t *file = slow5_open(path, "r");       thw_reads_open(path, NULL, &reads);
 *                                                     thw_reads_all(reads, &run);
 *   while (slow5_get_next(&rec, file) >= 0) ...       while ((code = thw_next(run, &read)) == THW_OK) ...
 *   slow5_rec_free(rec);                              thw_run_free(run);
 *   slow5_close(file);                                thw_reads_free(reads);
 *
 * Files are decoded on all cores. SLOW5, BLOW5, POD5 and FAST5 are read alike, also folders, patterns and URLs.
 *
 *   cc -I include examples/each_read.c -L ../../target/release -lthalweg_c -o each_read
 *   ./each_read reads.blow5            all reads, in the order of the file
 *   ./each_read reads.blow5 ID...      these reads, in this order
 */
#include <inttypes.h>
#include <stdio.h>
#include <thalweg.h>

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, thw_error());
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: each_read FILE [ID]...\n");
        return 2;
    }
    thw_reads *reads = NULL;
    if (thw_reads_open(argv[1], NULL, &reads) != THW_OK) {
        return failed(argv[1]);
    }
    thw_run *run = NULL;
    int32_t code = argc == 2 ? thw_reads_all(reads, &run)
                             : thw_reads_get(reads, (const char *const *)(argv + 2), (size_t)argc - 2, &run);
    thw_read read;
    while (code == THW_OK && (code = thw_next(run, &read)) == THW_OK) {
        int64_t sum = 0;
        for (uint64_t i = 0; i < read.sample_count; i++) {
            sum += read.samples[i];
        }
        double mean = read.sample_count == 0 ? 0 : (double)sum / (double)read.sample_count;
        double current = (mean + read.offset) * read.range / read.digitisation;
        const char *channel = NULL;
        int32_t found = thw_read_text(run, "channel_number", &channel);
        printf("%s\t%" PRIu64 "\t%" PRId64 "\t%.17g\t%s\n", read.id, read.sample_count, sum, current,
               found == THW_OK ? channel : ".");
    }
    int status = code == THW_END ? 0 : failed(argv[1]);
    thw_run_free(run);
    thw_reads_free(reads);
    return status;
}
