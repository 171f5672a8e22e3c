/* `cat` as a benchmark peer: one thread reads the whole file in 128 KiB pieces (the size that GNU cat uses) and
 * drops them. It times itself from open to the last byte, so that no process start is in the figure. It is what
 * one sequential reader gets from the store, not the limit of the device.
 *
 *   cat_peer FILE [--block BYTES]
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *path = NULL;
    int block = 128 * 1024;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--block") == 0 && i + 1 < argc) {
            block = positive(argv[i], argv[i + 1]);
            i++;
        } else if (path == NULL && argv[i][0] != '-') {
            path = argv[i];
        } else {
            usage("cat_peer FILE [--block BYTES]");
        }
    }
    if (path == NULL) {
        usage("cat_peer FILE [--block BYTES]");
    }
    /* aligned to a page, as cat's own buffer is */
    void *buffer;
    if (posix_memalign(&buffer, 4096, (size_t)block) != 0) {
        die("no memory for %d bytes", block);
    }

    double begin = now();
    int file = open(path, O_RDONLY);
    if (file < 0) {
        die("%s: %s", path, strerror(errno));
    }
    posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    uint64_t bytes = 0;
    for (;;) {
        ssize_t got = read(file, buffer, (size_t)block);
        if (got == 0) {
            break;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            die("%s: offset %" PRIu64 ": %s", path, bytes, strerror(errno));
        }
        bytes += (uint64_t)got;
    }
    double seconds = now() - begin;

    close(file);
    free(buffer);
    printf("{\"workload\":\"cat\",\"version\":\"one reader\",\"open_to_last_s\":%.9f,\"bytes\":%" PRIu64
           ",\"block\":%d,\"threads\":1,\"digest\":null}\n",
           seconds, bytes, block);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
