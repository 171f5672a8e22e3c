/* thalweg for C: nanopore reads, arrays of HDF5 files, and networks.
 *
 * A function returns THW_OK, or another code of THW_CODE. After a code below zero, thw_error() has a message in
 * one line. Functions that end in _free take NULL, too. Strings are UTF-8. A null pointer where something is
 * needed is THW_ARGUMENT, and nothing is written to the places for results.
 *
 * Threads: handles of reads, arrays and networks may be used by several threads at the same time, and so may
 * every function without a handle. A run is for one thread at a time. Free a handle when no function uses it.
 * A run keeps what it needs of its reads, which may be freed before it.
 *
 * Pointers of a read or batch are valid until the next thw_next, thw_next_batch or thw_run_free of its run.
 * A text is valid until the next thw_read_text of its run.
 */
#ifndef THALWEG_H
#define THALWEG_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something is added. What is there stays as it is while the major version is the same. */
#define THW_VERSION_MAJOR 0
#define THW_VERSION_MINOR 1

enum THW_CODE {
    THW_OK = 0,
    /* No more reads. */
    THW_END = 1,
    /* The read or file does not have the attribute. */
    THW_MISSING = 2,
    /* An argument is not valid. */
    THW_ARGUMENT = -1,
    /* The system or a service refused or failed. */
    THW_IO = -2,
    /* Bytes of a file violate its format, or the file is cut short. */
    THW_FORMAT = -3,
    /* An intact file uses what thalweg does not have. */
    THW_UNSUPPORTED = -4,
    /* A file does not have what was asked for. */
    THW_NOT_FOUND = -5,
    /* A defect of thalweg. */
    THW_INTERNAL = -6,
    /* The handle was cancelled. */
    THW_CANCELLED = -7
};

/* Nanopore reads of one or more files: SLOW5, BLOW5, POD5, FAST5. */
typedef struct thw_reads thw_reads;
/* Reads that come one after the other. */
typedef struct thw_run thw_run;
/* Arrays of an HDF5 file. */
typedef struct thw_arrays thw_arrays;
/* A network of vertices and edges. */
typedef struct thw_network thw_network;

/* How something is opened. A field that is 0 has its default, except `size`. A null pointer stands for the defaults. */
typedef struct {
    /* sizeof(thw_options) of the program that calls. */
    size_t size;
    /* Threads that decode; all cores by default. */
    uint32_t threads;
    /* Bytes that reading may use in addition to the results that the caller holds; by default 192 MiB, and 384 MiB for objects at URLs. */
    uint64_t memory;
} thw_options;

/* One read. Picoampere = (sample + offset) * (range / digitisation). */
typedef struct {
    /* Ends with a zero byte. */
    const char *id;
    /* The bytes of the id, without the zero byte. */
    size_t id_length;
    const int16_t *samples;
    uint64_t sample_count;
    double digitisation;
    double offset;
    double range;
    /* Samples a second. */
    double sampling_rate;
    /* The number of the read group in its file. */
    uint32_t read_group;
    /* The number of the file, as the paths were given. */
    uint32_t file;
} thw_read;

/* Some reads of one file as columns. */
typedef struct {
    uint64_t reads;
    /* Id i is the bytes from ids + id_offsets[i] up to ids + id_offsets[i + 1], without a zero byte. */
    const char *ids;
    const int32_t *id_offsets;
    /* The samples of read i: from samples + sample_offsets[i] up to samples + sample_offsets[i + 1]. */
    const int16_t *samples;
    const int32_t *sample_offsets;
    const double *digitisation;
    const double *offset;
    const double *range;
    const double *sampling_rate;
    const uint32_t *read_group;
    uint32_t file;
} thw_batch;

/* What an array is. */
typedef struct {
    /* Dimensions; at most 32. */
    uint32_t rank;
    uint64_t shape[32];
    /* The bytes of an element, and of all elements. */
    uint64_t element_size;
    uint64_t bytes;
    /* numpy's name of the element type, such as "<f8"; ends with a zero byte. Longer names are cut. */
    char type[64];
} thw_array;

/* Lists of ids. List i is from ids + offsets[i] up to ids + offsets[i + 1]. */
typedef struct {
    uint64_t count;
    const uint64_t *offsets;
    const uint64_t *ids;
    /* For thw_lists_free. */
    void *owner;
} thw_lists;

/* The version of the library, as in "0.1.0". */
const char *thw_version(void);

/* The message of the last failure on this thread; empty if there was none. It is valid until the next failure. */
const char *thw_error(void);

/* Opens a file, folder, pattern or URL of reads. */
int32_t thw_reads_open(const char *path, const thw_options *options, thw_reads **reads);

void thw_reads_free(thw_reads *reads);

/* How many reads there are. SLOW5 and BLOW5 files without an index are read for it, once. */
int32_t thw_reads_count(const thw_reads *reads, uint64_t *count);

/* An attribute of a read group of a file's header, as in "experiment_type". The text is valid until the reads are
 * freed, or this thread asks again. */
int32_t thw_reads_header(const thw_reads *reads, uint32_t file, uint32_t read_group, const char *name,
                         const char **text);

/* Starts a run of all reads, in the order of the files. */
int32_t thw_reads_all(const thw_reads *reads, thw_run **run);

/* Starts a run of the reads with these ids, in their order. An id that is not there ends the run with THW_NOT_FOUND. */
int32_t thw_reads_get(const thw_reads *reads, const char *const *ids, size_t count, thw_run **run);

/* Ends all runs of these reads, from any thread: they return THW_CANCELLED, and so do later runs. */
int32_t thw_reads_cancel(const thw_reads *reads);

/* The next read, or THW_END. */
int32_t thw_next(thw_run *run, thw_read *read);

/* The next reads, or THW_END. After some calls of thw_next, these are the reads of the batch that are left. */
int32_t thw_next_batch(thw_run *run, thw_batch *batch);

/* An attribute of the read that thw_next gave last, such as "channel_number": as a whole number, as a floating-point
 * number, or as text, which ends with a zero byte. Text is parsed as a number where that is asked for. After
 * thw_next_batch it is THW_ARGUMENT. */
int32_t thw_read_integer(thw_run *run, const char *name, int64_t *value);
int32_t thw_read_real(thw_run *run, const char *name, double *value);
int32_t thw_read_text(thw_run *run, const char *name, const char **text);

void thw_run_free(thw_run *run);

/* Opens an HDF5 file. */
int32_t thw_arrays_open(const char *path, const thw_options *options, thw_arrays **arrays);

void thw_arrays_free(thw_arrays *arrays);

/* What the array at a path is. Strings and lists of any length are THW_UNSUPPORTED. */
int32_t thw_arrays_info(const thw_arrays *arrays, const char *path, thw_array *info);

/* Reads an array, in C order and little-endian, into memory of the caller's. `start` and `count` have a number for each
 * dimension; null pointers are all of the array. `bytes` must be the size of what is read. */
int32_t thw_arrays_read(const thw_arrays *arrays, const char *path, const uint64_t *start, const uint64_t *count,
                        void *memory, size_t bytes);

/* Opens the network in a folder or at a URL. */
int32_t thw_network_open(const char *path, const thw_options *options, thw_network **network);

void thw_network_free(thw_network *network);

/* How many vertices of a type there are. */
int32_t thw_vertex_count(const thw_network *network, const char *type, uint64_t *count);

/* The neighbours of vertices of a type, in the order of the ids; each list ascends. `to` is the type of the neighbours,
 * or a null pointer for all types. A vertex that does not exist has no neighbours. */
int32_t thw_neighbors(const thw_network *network, const char *from, const char *to, const uint64_t *ids, size_t count,
                      thw_lists *lists);

/* Frees the lists, and sets all of the structure to zero. */
void thw_lists_free(thw_lists *lists);

#ifdef __cplusplus
}
#endif

#endif
