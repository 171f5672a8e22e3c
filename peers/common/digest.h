/* What every arm of a comparison computes from the reads it decoded, so that two arms can be shown to have
 * delivered the same values (docs/method.md, "Digests"). */
#ifndef PEER_DIGEST_H
#define PEER_DIGEST_H

#include "peer.h"

#include <stddef.h>
#include <stdint.h>

#define SHA256_HEX_LENGTH 64

/* The consumer's work: touches every sample. */
int64_t sum_samples(const int16_t *samples, uint64_t count);

/* Its work in picoampere: converts the samples of a read into an array of floats, and sums these. A sum that is no number
 * ends the program. Programs round differently, so that the number of samples takes the place of the sum in the row. */
int64_t sum_picoampere(const int16_t *samples, uint64_t count, double offset, double scale);

/* FNV-1a 64 over `read_id` TAB decimal(samples) TAB decimal(sum). A file's digest is the wrapping sum of these,
 * so it does not depend on the order of delivery. */
uint64_t read_hash(const char *read_id, uint64_t samples, int64_t sum);

/* What the published comparison of SLOW5 and POD5 takes from each read besides its samples and calibration. Text that a
 * file does not have is NULL. */
struct metadata {
    int32_t channel;
    uint32_t read_number;
    uint8_t mux;
    uint64_t start_sample;
    const char *run_id, *experiment, *flow_cell, *position;
};

/* read_hash with these behind it, each after a TAB; text that is NULL or empty is a dot. */
uint64_t metadata_hash(const char *read_id, uint64_t samples, int64_t sum, const struct metadata *metadata);

/* SHA-256 (FIPS 180-4) of `length` bytes as lower-case hex, NUL-terminated. For verification, never timed. */
void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX_LENGTH + 1]);

/* A row of --tsv or --digest. */
void print_row(const char *read_id, const int16_t *values, uint64_t samples, int64_t sum, enum rows rows);

#endif
