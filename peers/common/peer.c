#define _POSIX_C_SOURCE 200809L
#include "peer.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void end(int code, const char *format, va_list arguments) {
    fputs(code == 2 ? "usage: " : "error: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    exit(code);
}

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(1, format, arguments);
    abort();
}

void usage(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    end(2, format, arguments);
    abort();
}

void *checked_calloc(size_t count, size_t size) {
    void *memory = calloc(count > 0 ? count : 1, size);
    if (memory == NULL) {
        die("no memory for %zu x %zu bytes", count, size);
    }
    return memory;
}

int positive(const char *option, const char *value) {
    char *rest;
    errno = 0;
    long number = strtol(value, &rest, 10);
    if (errno != 0 || *rest != '\0' || number < 1 || number > INT_MAX) {
        usage("%s wants a whole number from 1: %s", option, value);
    }
    return (int)number;
}

struct options options_of(int argc, char **argv, int threads, const char *program) {
    struct options o = {.threads = threads, .batch = 1000, .rows = ROWS_NONE};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--tsv") == 0) {
            o.rows = ROWS_TSV;
        } else if (strcmp(argv[i], "--digest") == 0) {
            o.rows = ROWS_DIGEST;
        } else if (strcmp(argv[i], "--pa") == 0) {
            o.pa = 1;
        } else if (strcmp(argv[i], "--metadata") == 0) {
            o.metadata = 1;
        } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
            o.threads = positive(argv[i], argv[i + 1]);
            i++;
        } else if (strcmp(argv[i], "--batch") == 0 && i + 1 < argc) {
            o.batch = positive(argv[i], argv[i + 1]);
            i++;
        } else if (strcmp(argv[i], "--ids") == 0 && i + 1 < argc) {
            o.ids = argv[++i];
        } else if (argv[i][0] == '-') {
            usage("unknown option, or no value after it: %s", argv[i]);
        } else if (o.mode == NULL) {
            o.mode = argv[i];
        } else if (o.file == NULL) {
            o.file = argv[i];
        } else {
            usage("one file at a time: %s", argv[i]);
        }
    }
    if (o.mode == NULL || o.file == NULL) {
        usage("%s FILE [--threads N] [--batch N] [--ids LIST] [--pa] [--metadata] [--tsv|--digest]", program);
    }
    if ((o.pa || o.metadata) && o.rows != ROWS_NONE) {
        usage("--pa, --metadata: rows are of the samples");
    }
    if (o.metadata && o.ids != NULL) {
        usage("--metadata: reads by id are not asked for it");
    }
    int one = strcmp(o.mode, "get1") == 0;
    if ((one || strcmp(o.mode, "get") == 0) != (o.ids != NULL)) {
        usage("--ids LIST goes with get and get1, and only with them");
    }
    if (one) {
        o.threads = o.batch = 1;
    }
    return o;
}

static char *read_text(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        die("%s: %s", path, strerror(errno));
    }
    size_t length = 0, capacity = 1 << 16, got;
    char *text = checked_calloc(capacity, 1);
    while ((got = fread(text + length, 1, capacity - length - 1, file)) > 0) {
        length += got;
        if (capacity - length == 1) {
            char *larger = realloc(text, capacity *= 2);
            if (larger == NULL) {
                die("no memory for %zu bytes of %s", capacity, path);
            }
            text = larger;
        }
    }
    if (ferror(file)) {
        die("%s: %s", path, strerror(errno));
    }
    fclose(file);
    text[length] = '\0';
    return text;
}

struct id_list load_ids(const char *path) {
    struct id_list list = {.text = read_text(path)};
    size_t lines = 1;
    for (const char *c = list.text; *c != '\0'; c++) {
        lines += *c == '\n';
    }
    list.ids = checked_calloc(lines, sizeof *list.ids);
    char *save = NULL;
    for (char *id = strtok_r(list.text, "\r\n", &save); id != NULL; id = strtok_r(NULL, "\r\n", &save)) {
        list.ids[list.count++] = id;
    }
    if (list.count == 0) {
        die("%s: no read ids in it", path);
    }
    return list;
}

void free_ids(struct id_list list) {
    free(list.ids);
    free(list.text);
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct latency latency_of(double *seconds, size_t count) {
    qsort(seconds, count, sizeof *seconds, ascending);
    double total = 0;
    for (size_t i = 0; i < count; i++) {
        total += seconds[i];
    }
    return (struct latency){
        .mean = total / (double)count,
        .p50 = seconds[(count * 50 + 99) / 100 - 1],
        .p99 = seconds[(count * 99 + 99) / 100 - 1],
        .max = seconds[count - 1],
    };
}

void print_latency(double *seconds, size_t count) {
    if (count > 0) {
        struct latency l = latency_of(seconds, count);
        printf(",\"latency_us\":{\"mean\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f}", l.mean * 1e6, l.p50 * 1e6,
               l.p99 * 1e6, l.max * 1e6);
    }
}
