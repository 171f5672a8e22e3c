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

/* FNV-1a 64 over `read_id` TAB decimal(samples) TAB decimal(sum). A file's digest is the wrapping sum of these,
 * so it does not depend on the order of delivery. */
uint64_t read_hash(const char *read_id, uint64_t samples, int64_t sum);

/* SHA-256 (FIPS 180-4) of `length` bytes as lower-case hex, NUL-terminated. For verification, never timed. */
void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX_LENGTH + 1]);

/* A row of --tsv or --digest. */
void print_row(const char *read_id, const int16_t *values, uint64_t samples, int64_t sum, enum rows rows);

#endif
