/* What slow5tools does to files, on its own library: slow5tools is in no package registry. It works as its `view`, `merge`
 * and `split -r` do: a batch of stored records is read on one thread, N threads decode and encode them, and one writes
 * them. Compressing anew, merging and splitting are the same loop.
 *
 *   slow5_tools copy  IN.. -o OUT [--record R] [--signal S] [--threads N] [--batch N]   one file out of one or more
 *   slow5_tools split IN   -o FOLDER --reads N [as above]                               files 0.blow5, 1.blow5, ... of N reads
 *   slow5_tools index IN                                                                IN.idx
 *
 * R is none, zlib or zstd, S none, svb-zd or ex-zd. Nothing is printed.
 */
#define _POSIX_C_SOURCE 200809L
#include "peer.h"

#include <limits.h>
#include <omp.h>
#include <slow5/slow5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The default of slow5tools. */
#define BATCH 4096

struct job {
    const char *mode, *out;
    const char **in;
    int inputs, threads, batch, reads;
    slow5_press_method_t press;
};

static enum slow5_press_method method(const char *option, const char *name) {
    static const struct {
        const char *name;
        enum slow5_press_method method;
    } known[] = {{"none", SLOW5_COMPRESS_NONE},
                 {"zlib", SLOW5_COMPRESS_ZLIB},
                 {"zstd", SLOW5_COMPRESS_ZSTD},
                 {"svb-zd", SLOW5_COMPRESS_SVB_ZD},
                 {"ex-zd", SLOW5_COMPRESS_EX_ZD}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) == 0) {
            return known[i].method;
        }
    }
    usage("%s: unknown compression: %s", option, name);
}

static struct job job_of(int argc, char **argv) {
    struct job job = {.threads = omp_get_num_procs(), .batch = BATCH, .press = {SLOW5_COMPRESS_ZLIB, SLOW5_COMPRESS_SVB_ZD}};
    job.in = checked_calloc((size_t)argc, sizeof *job.in);
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (option[0] != '-') {
            if (job.mode == NULL) {
                job.mode = option;
            } else {
                job.in[job.inputs++] = option;
            }
            continue;
        }
        const char *value = i + 1 < argc ? argv[++i] : NULL;
        if (value == NULL) {
            usage("no value after %s", option);
        } else if (strcmp(option, "-o") == 0) {
            job.out = value;
        } else if (strcmp(option, "--record") == 0) {
            job.press.record_method = method(option, value);
        } else if (strcmp(option, "--signal") == 0) {
            job.press.signal_method = method(option, value);
        } else if (strcmp(option, "--threads") == 0) {
            job.threads = positive(option, value);
        } else if (strcmp(option, "--batch") == 0) {
            job.batch = positive(option, value);
        } else if (strcmp(option, "--reads") == 0) {
            job.reads = positive(option, value);
        } else {
            usage("unknown option: %s", option);
        }
    }
    int splits = job.mode != NULL && strcmp(job.mode, "split") == 0;
    int copies = job.mode != NULL && strcmp(job.mode, "copy") == 0;
    int indexes = job.mode != NULL && strcmp(job.mode, "index") == 0;
    if (splits + copies + indexes == 0 || job.inputs < 1 || (!copies && job.inputs > 1) || (job.out == NULL) != indexes ||
        (job.reads > 0) != splits) {
        usage("slow5_tools copy IN.. -o OUT | split IN -o FOLDER --reads N | index IN");
    }
    return job;
}

static slow5_file_t *open_file(const char *path) {
    slow5_file_t *file = slow5_open(path, "r");
    if (file == NULL) {
        die("%s: slow5lib cannot open it (error %d)", path, slow5_errno);
    }
    return file;
}

/* A file of one read group: enough for what is measured. */
static slow5_file_t *open_group(const char *path) {
    slow5_file_t *file = open_file(path);
    if (file->header->num_read_groups != 1) {
        die("%s: found %u read groups, expected one", path, (unsigned)file->header->num_read_groups);
    }
    return file;
}

static void check(int ok, const char *path, const char *what) {
    if (!ok) {
        die("%s: slow5lib cannot %s (error %d)", path, what, slow5_errno);
    }
}

/* Records of all inputs are written with the auxiliary fields of the first one. */
static void check_fields(slow5_hdr_t *first, slow5_hdr_t *other, const char *path) {
    slow5_aux_meta_t *a = first->aux_meta, *b = other->aux_meta;
    int same = (a == NULL) == (b == NULL) && (a == NULL || a->num == b->num);
    for (uint32_t i = 0; same && a != NULL && i < a->num; i++) {
        int is_enum = a->types[i] == SLOW5_ENUM || a->types[i] == SLOW5_ENUM_ARRAY;
        same = strcmp(a->attrs[i], b->attrs[i]) == 0 && a->types[i] == b->types[i];
        same = same && (!is_enum || a->enum_num_labels[i] == b->enum_num_labels[i]);
        for (int label = 0; same && is_enum && label < a->enum_num_labels[i]; label++) {
            same = strcmp(a->enum_labels[i][label], b->enum_labels[i][label]) == 0;
        }
    }
    if (!same) {
        die("%s: found other auxiliary fields than in the first file, expected the same", path);
    }
}

/* Makes the read group of `from` one of `header`, and returns its number: that of a group with the same run_id, or a new
 * one. slow5tools merges by run_id, too. */
static uint32_t add_group(slow5_hdr_t *header, slow5_hdr_t *from, const char *path) {
    const char *run = slow5_hdr_get("run_id", 0, from);
    for (uint32_t group = 0; group < header->num_read_groups; group++) {
        const char *known = slow5_hdr_get("run_id", group, header);
        if (run != NULL && known != NULL && strcmp(run, known) == 0) {
            return group;
        }
    }
    int64_t group = slow5_hdr_add_rg(header);
    check(group >= 0, path, "add a read group");
    uint64_t count = 0;
    const char **names = slow5_get_hdr_keys(from, &count);
    for (uint64_t i = 0; i < count; i++) {
        const char *value = slow5_hdr_get(names[i], 0, from);
        /* an attribute that is there already stays */
        (void)slow5_hdr_add(names[i], header);
        check(value == NULL || slow5_hdr_set(names[i], value, (uint32_t)group, header) >= 0, path, "set an attribute");
    }
    free(names);
    return (uint32_t)group;
}

static FILE *begin(const char *path, slow5_hdr_t *header, const struct job *job) {
    FILE *out = fopen(path, "wb");
    if (out == NULL || slow5_hdr_fwrite(out, header, SLOW5_FORMAT_BINARY, job->press) < 0) {
        die("%s: cannot write the header", path);
    }
    return out;
}

static void end(FILE *out, const char *path) {
    if (slow5_eof_fwrite(out) < 0 || fclose(out) != 0) {
        die("%s: cannot write the end", path);
    }
}

struct records {
    char **stored;
    size_t *lengths;
    void **encoded;
};

static struct records new_records(int batch) {
    size_t count = (size_t)batch;
    return (struct records){checked_calloc(count, sizeof(char *)), checked_calloc(count, sizeof(size_t)),
                            checked_calloc(count, sizeof(void *))};
}

/* Reads at most `most` records, decodes and encodes them. Returns how many; fewer at the end of the file. */
static int convert(struct records *records, int most, slow5_file_t *file, slow5_aux_meta_t *aux, uint32_t group,
                   const struct job *job) {
    int count = 0;
    while (count < most && slow5_get_next_bytes(&records->stored[count], &records->lengths[count], file) >= 0) {
        count++;
    }
    if (count < most && slow5_errno != SLOW5_ERR_EOF) {
        die("slow5lib cannot read the next record (error %d)", slow5_errno);
    }
#pragma omp parallel
    {
        slow5_press_t *press = slow5_press_init(job->press);
        if (press == NULL) {
            die("slow5lib does not compress so (error %d)", slow5_errno);
        }
#pragma omp for schedule(static)
        for (int i = 0; i < count; i++) {
            slow5_rec_t *record = NULL;
            if (slow5_decode(&records->stored[i], &records->lengths[i], &record, file) < 0) {
                die("slow5lib cannot decode a record (error %d)", slow5_errno);
            }
            free(records->stored[i]);
            record->read_group = group;
            records->encoded[i] = slow5_rec_to_mem(record, aux, SLOW5_FORMAT_BINARY, press, &records->lengths[i]);
            if (records->encoded[i] == NULL) {
                die("slow5lib cannot encode a record (error %d)", slow5_errno);
            }
            slow5_rec_free(record);
        }
        slow5_press_free(press);
    }
    return count;
}

static void write_all(struct records *records, int count, FILE *out, const char *path) {
    for (int i = 0; i < count; i++) {
        if (fwrite(records->encoded[i], 1, records->lengths[i], out) != records->lengths[i]) {
            die("%s: cannot write a record", path);
        }
        free(records->encoded[i]);
    }
}

static void run_copy(const struct job *job) {
    slow5_file_t **files = checked_calloc((size_t)job->inputs, sizeof *files);
    uint32_t *groups = checked_calloc((size_t)job->inputs, sizeof *groups);
    for (int i = 0; i < job->inputs; i++) {
        files[i] = open_group(job->in[i]);
        check_fields(files[0]->header, files[i]->header, job->in[i]);
        groups[i] = i == 0 ? 0 : add_group(files[0]->header, files[i]->header, job->in[i]);
    }
    FILE *out = begin(job->out, files[0]->header, job);
    struct records records = new_records(job->batch);
    for (int i = 0; i < job->inputs; i++) {
        int count;
        do {
            count = convert(&records, job->batch, files[i], files[0]->header->aux_meta, groups[i], job);
            write_all(&records, count, out, job->out);
        } while (count == job->batch);
    }
    end(out, job->out);
}

static void run_split(const struct job *job) {
    slow5_file_t *file = open_group(job->in[0]);
    struct records records = new_records(job->batch);
    for (int part = 0;; part++) {
        char path[PATH_MAX];
        FILE *out = NULL;
        int left = job->reads, most, count;
        do {
            most = left < job->batch ? left : job->batch;
            count = convert(&records, most, file, file->header->aux_meta, 0, job);
            if (out == NULL && count > 0) {
                snprintf(path, sizeof path, "%s/%d.blow5", job->out, part);
                out = begin(path, file->header, job);
            }
            write_all(&records, count, out, path);
            left -= count;
        } while (left > 0 && count == most);
        if (out != NULL) {
            end(out, path);
        }
        if (left > 0) {
            return;
        }
    }
}

int main(int argc, char **argv) {
    struct job job = job_of(argc, argv);
    omp_set_num_threads(job.threads);
    if (strcmp(job.mode, "copy") == 0) {
        run_copy(&job);
    } else if (strcmp(job.mode, "split") == 0) {
        run_split(&job);
    } else {
        check(slow5_idx_create(open_file(job.in[0])) >= 0, job.in[0], "make an index");
    }
    return EXIT_SUCCESS;
}
