/* slow5lib as the reference for values: rewrites files and indexes with slow5lib alone, so that the tests can hold
 * thalweg's readers and writers against it. Not a benchmark.
 *
 *   slow5_reference view IN OUT [--record none|zlib|zstd] [--signal none|svb-zd|ex-zd]
 *   slow5_reference index FILE OUT
 *
 * The extension of OUT says whether it becomes ASCII (.slow5) or binary (.blow5).
 */
#include "peer.h"

#include <slow5/slow5.h>
#include <stdlib.h>
#include <string.h>

/* Exported by slow5lib, but not declared in its public headers. */
int slow5_idx_to(slow5_file_t *file, const char *path);

static enum slow5_press_method method_named(const char *name) {
    static const struct {
        const char *name;
        enum slow5_press_method method;
    } METHODS[] = {
        {"none", SLOW5_COMPRESS_NONE},     {"zlib", SLOW5_COMPRESS_ZLIB},   {"zstd", SLOW5_COMPRESS_ZSTD},
        {"svb-zd", SLOW5_COMPRESS_SVB_ZD}, {"ex-zd", SLOW5_COMPRESS_EX_ZD},
    };
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++) {
        if (strcmp(name, METHODS[i].name) == 0) {
            return METHODS[i].method;
        }
    }
    usage("unknown compression: %s", name);
}

static slow5_file_t *open_or_die(const char *path, const char *mode) {
    slow5_file_t *file = slow5_open(path, mode);
    if (file == NULL) {
        die("%s: slow5lib cannot open it (error %d)", path, slow5_errno);
    }
    return file;
}

static void view(const char *from, const char *to, enum slow5_press_method record, enum slow5_press_method signal) {
    slow5_file_t *in = open_or_die(from, "r");
    slow5_file_t *out = open_or_die(to, "w");
    struct slow5_version version_in = in->header->version;
    slow5_hdr_t *header_out = out->header;
    if (out->format == SLOW5_FORMAT_BINARY && slow5_set_press(out, record, signal) < 0) {
        die("%s: slow5lib cannot set the compression (error %d)", to, slow5_errno);
    }
    /* slow5lib has no call that copies a header: lend the input's, under the version that this slow5lib writes */
    in->header->version = header_out->version;
    out->header = in->header;
    if (slow5_hdr_write(out) < 0) {
        die("%s: slow5lib cannot write the header (error %d)", to, slow5_errno);
    }
    slow5_rec_t *read = NULL;
    int got;
    while ((got = slow5_get_next(&read, in)) >= 0) {
        if (slow5_write(read, out) < 0) {
            die("%s: slow5lib cannot write read %s (error %d)", to, read->read_id, slow5_errno);
        }
    }
    if (got != SLOW5_ERR_EOF) {
        die("%s: slow5lib cannot read the next record (error %d)", from, got);
    }
    slow5_rec_free(read);
    out->header = header_out;
    if (slow5_close(out) != 0) {
        die("%s: slow5lib cannot finish it (error %d)", to, slow5_errno);
    }
    in->header->version = version_in;
    slow5_close(in);
}

static void write_index(const char *path, const char *to) {
    slow5_file_t *file = open_or_die(path, "r");
    if (slow5_idx_to(file, to) < 0) {
        die("%s: slow5lib cannot index it (error %d)", path, slow5_errno);
    }
    slow5_close(file);
}

int main(int argc, char **argv) {
    enum slow5_press_method record = SLOW5_COMPRESS_ZLIB, signal = SLOW5_COMPRESS_SVB_ZD;
    if (argc == 4 && strcmp(argv[1], "index") == 0) {
        write_index(argv[2], argv[3]);
        return EXIT_SUCCESS;
    }
    if (argc < 4 || argc % 2 != 0 || strcmp(argv[1], "view") != 0) {
        usage("slow5_reference view IN OUT [--record none|zlib|zstd] [--signal none|svb-zd|ex-zd] | index FILE OUT");
    }
    for (int i = 4; i < argc; i += 2) {
        if (strcmp(argv[i], "--record") == 0) {
            record = method_named(argv[i + 1]);
        } else if (strcmp(argv[i], "--signal") == 0) {
            signal = method_named(argv[i + 1]);
        } else {
            usage("unknown option: %s", argv[i]);
        }
    }
    view(argv[2], argv[3], record, signal);
    return EXIT_SUCCESS;
}
