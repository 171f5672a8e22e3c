/* The raw device as a benchmark peer: threads that read every byte of a file past the page cache (O_DIRECT), each one
 * block at a time, and drop them. No reader can be faster on this device at this block size and depth; how near a
 * decoder comes is a ratio of paired trials, where a probe before or after would be of another minute's device.
 *
 *   raw_peer FILE [--block BYTES] [--depth THREADS]
 *
 * The last bytes of a file that do not fill a unit of alignment come through the page cache.
 */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ALIGNMENT = 4096 };

struct job {
    const char *path;
    int direct, cached;
    uint64_t size;
    size_t block;
    _Atomic uint64_t next;
    _Atomic uint64_t bytes;
};

static void fill(const struct job *job, int file, char *buffer, uint64_t from, size_t length) {
    size_t done = 0;
    while (done < length) {
        ssize_t got = pread(file, buffer + done, length - done, (off_t)(from + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            die("%s: offset %" PRIu64 ": %s", job->path, from + done, got == 0 ? "the file ends here" : strerror(errno));
        }
        done += (size_t)got;
    }
}

static void *work(void *argument) {
    struct job *job = argument;
    void *buffer;
    if (posix_memalign(&buffer, ALIGNMENT, job->block) != 0) {
        die("no memory for %zu bytes", job->block);
    }
    for (;;) {
        uint64_t from = atomic_fetch_add(&job->next, job->block);
        if (from >= job->size) {
            break;
        }
        uint64_t left = job->size - from;
        size_t length = left < job->block ? (size_t)left : job->block;
        size_t whole = length / ALIGNMENT * ALIGNMENT;
        fill(job, job->direct, buffer, from, whole);
        fill(job, job->cached, (char *)buffer + whole, from + whole, length - whole);
        atomic_fetch_add(&job->bytes, length);
    }
    free(buffer);
    return NULL;
}

int main(int argc, char **argv) {
    static const char how[] = "raw_peer FILE [--block BYTES] [--depth THREADS]";
    struct job job = {.block = 1 << 20};
    int depth = 4;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--block") == 0 && i + 1 < argc) {
            job.block = (size_t)positive(argv[i], argv[i + 1]);
            i++;
        } else if (strcmp(argv[i], "--depth") == 0 && i + 1 < argc) {
            depth = positive(argv[i], argv[i + 1]);
            i++;
        } else if (job.path == NULL && argv[i][0] != '-') {
            job.path = argv[i];
        } else {
            usage("%s", how);
        }
    }
    if (job.path == NULL || job.block % ALIGNMENT != 0) {
        usage("%s (BYTES: a multiple of %d)", how, ALIGNMENT);
    }
    pthread_t *threads = checked_calloc((size_t)depth, sizeof *threads);

    double begin = now();
    job.cached = open(job.path, O_RDONLY);
    job.direct = open(job.path, O_RDONLY | O_DIRECT);
    struct stat about;
    if (job.cached < 0 || job.direct < 0 || fstat(job.cached, &about) != 0) {
        die("%s: %s", job.path, strerror(errno));
    }
    job.size = (uint64_t)about.st_size;
    for (int i = 0; i < depth; i++) {
        if (pthread_create(&threads[i], NULL, work, &job) != 0) {
            die("no thread");
        }
    }
    for (int i = 0; i < depth; i++) {
        pthread_join(threads[i], NULL);
    }
    double seconds = now() - begin;

    close(job.direct);
    close(job.cached);
    free(threads);
    printf("{\"workload\":\"raw\",\"version\":\"O_DIRECT\",\"open_to_last_s\":%.9f,\"bytes\":%" PRIu64
           ",\"block\":%zu,\"threads\":%d,\"digest\":null}\n",
           seconds, (uint64_t)job.bytes, job.block, depth);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
