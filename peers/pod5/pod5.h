/* The part of POD5's C API that the peer uses. The wheel that carries the library has no headers; these declarations
 * follow its public documentation (pod5 0.3.49; the layout of row information is version 3's, which stays). */
#ifndef PEER_POD5_H
#define PEER_POD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct Pod5FileReader pod5_reader;
typedef struct Pod5ReadRecordBatch pod5_batch;

/* Everything that returns an int returns 0, or an error of the calling thread. */
int pod5_init(void);
int pod5_terminate(void);
const char *pod5_get_error_string(void);

/* Maps the file into memory unless POD5_DISABLE_MMAP_OPEN is in the environment. NULL is an error. */
pod5_reader *pod5_open_file(const char *path);
int pod5_close_and_free_reader(pod5_reader *reader);

int pod5_get_read_count(const pod5_reader *reader, size_t *count);
int pod5_get_read_ids(const pod5_reader *reader, size_t count, uint8_t (*read_ids)[16]);
int pod5_get_read_batch_count(size_t *count, const pod5_reader *reader);
int pod5_get_read_batch(pod5_batch **batch, const pod5_reader *reader, size_t index);
int pod5_free_read_batch(pod5_batch *batch);
int pod5_get_read_batch_row_count(size_t *count, const pod5_batch *batch);

#define ROW_INFO_VERSION 3
struct row_info {
    uint8_t read_id[16];
    uint32_t read_number;
    uint64_t start_sample;
    float median_before;
    uint16_t channel;
    uint8_t well;
    int16_t pore_type;
    float calibration_offset, calibration_scale;
    int16_t end_reason;
    uint8_t end_reason_forced;
    int16_t run_info;
    uint64_t num_minknow_events;
    float tracked_scaling_scale, tracked_scaling_shift;
    float predicted_scaling_scale, predicted_scaling_shift;
    uint32_t num_reads_since_mux_change;
    float time_since_mux_change;
    int64_t signal_row_count;
    uint64_t num_samples;
};
int pod5_get_read_batch_row_info_data(const pod5_batch *batch, size_t row, uint16_t version, void *info,
                                      uint16_t *table_version);

struct pairs {
    size_t count;
    const char **keys, **values;
};

/* The run that a row's `run_info` numbers. */
struct run_info {
    const char *acquisition_id;
    int64_t acquisition_start_time_ms;
    int16_t adc_max, adc_min;
    struct pairs context_tags;
    const char *experiment_name, *flow_cell_id, *flow_cell_product_code, *protocol_name, *protocol_run_id;
    int64_t protocol_start_time_ms;
    const char *sample_id;
    uint16_t sample_rate;
    const char *sequencing_kit, *sequencer_position, *sequencer_position_type, *software, *system_name, *system_type;
    struct pairs tracking_id;
};
int pod5_get_run_info(pod5_batch *batch, int16_t run_info, struct run_info **info);
int pod5_free_run_info(struct run_info *info);

/* `read_ids` has 16 bytes an id. Rows come in file order, `batch_counts[b]` of them for batch b. */
int pod5_plan_traversal(const pod5_reader *reader, const uint8_t *read_ids, size_t count, uint32_t *batch_counts,
                        uint32_t *batch_rows, size_t *found);

int pod5_get_read_complete_signal(const pod5_reader *reader, const pod5_batch *batch, size_t row, size_t samples,
                                  int16_t *signal);

struct signal_row_info {
    size_t batch_index, batch_row_index;
    uint32_t stored_sample_count;
    size_t stored_byte_count;
};
int pod5_get_signal_row_indices(const pod5_batch *batch, size_t row, int64_t count, uint64_t *rows);
int pod5_get_signal_row_info(const pod5_reader *reader, size_t count, const uint64_t *rows, struct signal_row_info **info);
int pod5_free_signal_row_info(size_t count, struct signal_row_info **info);

#endif
