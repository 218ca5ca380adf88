// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The switch: ports, replication engine and at most one pipeline, behind one fair lock. Every function may be called
// from any thread, except that destroy must be the last call. Strings and arrays belong to the caller.
//
// Results: 0 or more is success; negative is -errno, for control operations a P_ code (pipeline.h) or S_NO_PROGRAM.
#ifndef SOFTSWITCH_SWITCH_H
#define SOFTSWITCH_SWITCH_H

#include "impairments.h"
#include "pipeline.h"

#define S_NO_PROGRAM (-1000)
#define S_CAPTURE_FAILED (-2000) // minus the errno of opening the port's capture file

typedef struct softswitch softswitch_t;
typedef struct {
  uint32_t port, replica_id;
} replica_t;

// NULL: out of memory. Each port has priority_queues queues; packets of that priority and above are dropped.
softswitch_t *switch_create(uint32_t cpu_port, uint32_t drop_port, uint32_t priority_queues, uint32_t pool_packets);
// Stop, close all ports, unload the program. Calls in progress end; later ones find no port and no program.
void switch_close(softswitch_t *);
void switch_destroy(softswitch_t *); // closes first
// Replace the pipeline, keep the ports, reset the groups. NULL: run without a program. ops must outlive its use here.
int switch_load(softswitch_t *, const pipeline_ops_t *ops);

int switch_start(softswitch_t *); // the data-plane thread; -EALREADY if it runs
int switch_stop(softswitch_t *);  // returns when the thread has ended; 0 also if none runs
int switch_is_running(softswitch_t *);

int switch_add_mem_port(softswitch_t *, uint32_t number, const char *capture_path); // capture_path may be NULL
int switch_add_veth_port(softswitch_t *, uint32_t number, const char *interface, int super_frames,
                         const char *capture_path);
int switch_add_udp_port(softswitch_t *, uint32_t number, const char *host, const char *service, const char *peer_host,
                        const char *peer_service, int super_frames, const char *capture_path);
int switch_remove_port(softswitch_t *, uint32_t number); // -ENOENT, -EPERM for the CPU port
int switch_reopen_port(softswitch_t *, uint32_t number); // after its interface vanished; -EALREADY: it is not down
int switch_udp_number(softswitch_t *, uint32_t number);
int switch_port_super_frames(softswitch_t *, uint32_t number); // SUPER_FRAMES_ bits of ports.h: what is in use
int switch_set_impairments(softswitch_t *, uint32_t number, int is_out, const impairments_t *);
uint32_t switch_statistics_count(void);
const char *switch_statistic_name(uint32_t index);
int switch_port_statistics(softswitch_t *, uint32_t number, uint64_t *out);

// Threaded use of a mem port. send returns the frames that found room. receive waits for a first frame.
int switch_mem_send(softswitch_t *, uint32_t number, const uint8_t *frames, const int32_t *lengths, uint32_t count,
                    size_t stride);
int switch_mem_receive(softswitch_t *, uint32_t number, uint8_t *frames, int32_t *lengths, uint32_t count,
                       size_t stride, int64_t timeout_ns);
// Synchronous use; -EBUSY while the thread runs. frame NULL releases the packets that impairments hold. With collect, *out
// and *out_bytes give everything that would be transmitted, valid until the next call: {u32 port, u32 bytes, frame padded
// to 4}...
int switch_process(softswitch_t *, uint32_t number, const uint8_t *frame, uint32_t bytes, int collect,
                   const uint8_t **out, size_t *out_bytes);

int switch_set_multicast_group(softswitch_t *, uint32_t group, const replica_t *, uint32_t count);
int switch_delete_multicast_group(softswitch_t *, uint32_t group); // P_NOT_FOUND
int switch_set_clone_session(softswitch_t *, uint32_t session, const replica_t *, uint32_t count,
                             uint32_t packet_length_bytes); // 0: copies keep their length
int switch_delete_clone_session(softswitch_t *, uint32_t session); // P_NOT_FOUND

// Reports of the data plane: digest samples (id: learn list) and messages of log_msg. Each kind is off until it is opened.
typedef enum { REPORT_DIGEST, REPORT_MESSAGE } report_kind_t;
int switch_open_reports(softswitch_t *, report_kind_t, uint32_t capacity);
int switch_close_reports(softswitch_t *, report_kind_t); // wakes readers
int switch_wait_report(softswitch_t *, report_kind_t, int64_t timeout_ns); // -EAGAIN: none
// Bytes; -EAGAIN: none, -EMSGSIZE: longer than the capacity. Does not wait.
int switch_take_report(softswitch_t *, report_kind_t, uint32_t *id, uint8_t *out, uint32_t capacity);
uint64_t switch_lost_reports(softswitch_t *, report_kind_t); // dropped for lack of room

// The control operations of pipeline.h under the lock.
int switch_table_insert(softswitch_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
int switch_table_modify(softswitch_t *, uint32_t table, const table_entry_t *);
int switch_table_delete(softswitch_t *, uint32_t table, const table_entry_t *);
int switch_table_find(softswitch_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
int switch_table_set_default(softswitch_t *, uint32_t table, const table_entry_t *);
int switch_table_size(softswitch_t *, uint32_t table, uint32_t *out);
int switch_table_clear(softswitch_t *, uint32_t table);
// match NULL: the default entry.
int switch_direct_counter_read(softswitch_t *, uint32_t table, const table_entry_t *match, uint64_t *packets,
                               uint64_t *bytes);
int switch_direct_counter_write(softswitch_t *, uint32_t table, const table_entry_t *match, uint64_t packets,
                                uint64_t bytes);
int switch_direct_meter_read(softswitch_t *, uint32_t table, const table_entry_t *match, meter_rates_t *out);
int switch_direct_meter_write(softswitch_t *, uint32_t table, const table_entry_t *match, const meter_rates_t *);
int switch_meter_read(softswitch_t *, uint32_t array, uint32_t index, meter_rates_t *out);
int switch_meter_write(softswitch_t *, uint32_t array, uint32_t index, const meter_rates_t *);
int switch_table_idle(softswitch_t *, uint32_t table, const table_entry_t *match, uint64_t *idle_us);
// table_expired for the first table with timeouts from *table on, to which it sets *table; P_BAD_ARGUMENT if there is none.
// It skips tables without timeouts within one call, because each call has to wait for the lock.
int switch_table_expired(softswitch_t *, uint32_t *table, uint32_t *from, uint32_t entries, uint64_t *handles);
int switch_table_match(softswitch_t *, uint32_t table, uint64_t handle, uint8_t *key, uint8_t *mask,
                       int32_t *prefix_len, int32_t *priority);
int switch_table_layout(softswitch_t *, uint32_t table, table_layout_t *out);
int switch_table_dump(softswitch_t *, uint32_t table, uint32_t *from, uint32_t records, uint8_t *out);
int switch_table_get(softswitch_t *, uint32_t table, const table_entry_t *match, uint8_t *out); // one record
int switch_table_open(softswitch_t *, uint32_t table);
// Insert one by one, each atomic by itself, into a table of exact fields: {u32 action, u32 bytes of params, key, params}...
// Writes a result for each and returns how many were tried: all, or up to the first failure.
int switch_table_insert_many(softswitch_t *, uint32_t table, uint32_t key_bytes, const uint8_t *entries, uint32_t count,
                             int stop_at_failure, int32_t *results);
int switch_profile_add_member(softswitch_t *, uint32_t profile, uint32_t member, const table_entry_t *action);
int switch_profile_modify_member(softswitch_t *, uint32_t profile, uint32_t member, const table_entry_t *action);
int switch_profile_delete_member(softswitch_t *, uint32_t profile, uint32_t member);
int switch_profile_set_group(softswitch_t *, uint32_t profile, uint32_t group, const group_member_t *, uint32_t count);
int switch_profile_delete_group(softswitch_t *, uint32_t profile, uint32_t group);
int switch_counter_read(softswitch_t *, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes);
int switch_counter_write(softswitch_t *, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes);
int switch_register_read(softswitch_t *, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity);
int switch_register_write(softswitch_t *, uint32_t array, uint32_t index, const uint8_t *value, uint32_t bytes);
int switch_value_set_write(softswitch_t *, uint32_t set, const uint8_t *members, uint32_t bytes, uint32_t count);

#endif
