#include "digest.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t sum_samples(const int16_t *samples, uint64_t count) {
    int64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        sum += samples[i];
    }
    return sum;
}

int64_t sum_picoampere(const int16_t *samples, uint64_t count, double offset, double scale) {
    static _Thread_local float *values;
    static _Thread_local uint64_t capacity;
    if (count > capacity) {
        free(values);
        capacity = count + count / 4;
        values = checked_calloc(capacity, sizeof *values);
    }
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (float)((samples[i] + offset) * scale);
    }
    /* independent sums, which the compiler can vectorise */
    double sums[8] = {0}, sum = 0;
    uint64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int k = 0; k < 8; k++) {
            sums[k] += values[i + k];
        }
    }
    for (; i < count; i++) {
        sum += values[i];
    }
    for (int k = 0; k < 8; k++) {
        sum += sums[k];
    }
    if (!isfinite(sum)) {
        die("a read has samples that are no numbers in picoampere");
    }
    return (int64_t)count;
}

static uint64_t fnv1a(uint64_t hash, const char *text) {
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        hash = (hash ^ *c) * UINT64_C(0x00000100000001b3);
    }
    return hash;
}

uint64_t read_hash(const char *read_id, uint64_t samples, int64_t sum) {
    /* two tabs, 20 digits, a sign and 19 digits, NUL */
    char tail[48];
    snprintf(tail, sizeof tail, "\t%" PRIu64 "\t%" PRId64, samples, sum);
    return fnv1a(fnv1a(UINT64_C(0xcbf29ce484222325), read_id), tail);
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return fnv1a(fnv1a(hash, "\t"), text == NULL || *text == '\0' ? "." : text);
}

uint64_t metadata_hash(const char *read_id, uint64_t samples, int64_t sum, const struct metadata *m) {
    char numbers[64];
    snprintf(numbers, sizeof numbers, "\t%" PRId32 "\t%" PRIu32 "\t%" PRIu8 "\t%" PRIu64, m->channel, m->read_number, m->mux,
             m->start_sample);
    uint64_t hash = fnv1a(read_hash(read_id, samples, sum), numbers);
    return hash_text(hash_text(hash_text(hash_text(hash, m->run_id), m->experiment), m->flow_cell), m->position);
}

/* FIPS 180-4, section 4.2.2 */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

/* FIPS 180-4, section 6.2.2 */
static void compress(uint32_t state[8], const unsigned char block[64]) {
    uint32_t w[64];
    for (int t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 | (uint32_t)block[4 * t + 2] << 8 |
               block[4 * t + 3];
    }
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t v[8];
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t big1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
        uint32_t choose = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + big1 + choose + K[t] + w[t];
        uint32_t big0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + big0 + majority;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void sha256_hex(const void *bytes, size_t length, char hex[SHA256_HEX_LENGTH + 1]) {
    /* FIPS 180-4, section 5.3.3 */
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *at = bytes;
    size_t left = length;
    for (; left >= 64; at += 64, left -= 64) {
        compress(state, at);
    }
    /* the rest, 0x80, zeros, and the length in bits: one block, or two when fewer than 9 bytes are free */
    unsigned char tail[128] = {0};
    if (left > 0) {
        memcpy(tail, at, left);
    }
    tail[left] = 0x80;
    size_t tail_length = left < 56 ? 64 : 128;
    uint64_t bits = (uint64_t)length * 8;
    for (int i = 0; i < 8; i++) {
        tail[tail_length - 1 - i] = (unsigned char)(bits >> (8 * i));
    }
    for (size_t i = 0; i < tail_length; i += 64) {
        compress(state, tail + i);
    }
    for (int i = 0; i < 8; i++) {
        snprintf(hex + 8 * i, 9, "%08" PRIx32, state[i]);
    }
}

void print_row(const char *read_id, const int16_t *values, uint64_t samples, int64_t sum, enum rows rows) {
    printf("%s\t%" PRIu64 "\t%" PRId64, read_id, samples, sum);
    if (rows == ROWS_DIGEST) {
        char hex[SHA256_HEX_LENGTH + 1];
        sha256_hex(values, samples * sizeof *values, hex);
        printf("\t%s", hex);
    }
    putchar('\n');
}
