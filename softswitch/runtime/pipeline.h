// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The seam between a generated pipeline and everything else: the switch runtime (ports, packet replication,
// impairments) calls down through it, and knows nothing of the P4 program; the generated code never does I/O.
//
// Threads: no function locks. The owner of a pipeline serialises every call on it (switch.c holds one mutex per batch of
// packets and per control operation), so that a table change is never seen half-done.
// Byte order: every key, mask, action parameter and register value crosses this seam as big-endian bytes,
// (width + 7) / 8 of them per field, in the order of the JSON.
#ifndef SOFTSWITCH_PIPELINE_H
#define SOFTSWITCH_PIPELINE_H

#include <stddef.h>
#include <stdint.h>

#define PIPELINE_ABI_VERSION 2u

typedef struct pipeline pipeline_t; // tables, registers, counters of one loaded program
typedef struct phv phv_t;           // headers and metadata of one packet; phv_bytes large, 64-byte aligned, owned by the caller

// standard_metadata that the replication engine acts on, read after ingress or egress.
typedef struct {
  uint32_t egress_spec; // 511 (or the program's drop port) means drop
  uint32_t mcast_grp;
} intrinsic_t;

// Of simple_switch's instance types: those that occur without clones, recirculation and resubmission.
enum { INSTANCE_NORMAL = 0, INSTANCE_REPLICATION = 5 };

typedef struct {
  uint32_t ingress_port;
  uint32_t packet_length; // bytes of the frame as received
  uint32_t instance_type;
  uint32_t egress_port; // egress only
  uint32_t egress_rid;  // egress only
  uint64_t ingress_global_timestamp; // us
  uint64_t egress_global_timestamp;  // us
  uint32_t enq_timestamp;            // us
  uint32_t enq_qdepth;               // packets
  uint32_t deq_timedelta;            // us
  uint32_t deq_qdepth;               // packets
} packet_info_t;

// Results of the control operations.
enum { P_OK = 0, P_NOT_FOUND = -1, P_EXISTS = -2, P_FULL = -3, P_BAD_ARGUMENT = -4, P_UNSUPPORTED = -5 };

// One table entry as the control plane sees it. Keys and masks: one byte string holding all fields in order.
typedef struct {
  const uint8_t *key;  // exact and lpm values, ternary values, range lows
  const uint8_t *mask; // ternary masks, range highs; exact: ignored; lpm: ignored
  int32_t prefix_len;  // of the lpm field, if there is one (whole field = width)
  int32_t priority;    // larger wins (P4Runtime order); 0 where the table has none
  uint32_t action_id;  // index into the JSON's actions by position (not the JSON id)
  const uint8_t *params; // all action parameters in order
  uint32_t params_bytes;
} table_entry_t;

typedef struct {
  uint32_t abi_version;
  uint32_t phv_bytes;
  uint32_t drop_port;
  const char *program_name;

  pipeline_t *(*create)(void); // NULL when out of memory
  void (*destroy)(pipeline_t *);

  // Parse, verify checksums, run the ingress control. The frame may be freed afterwards only once deparse is done: the
  // phv may point into it. Returns 0; a parser error is an outcome that the program sees, not a failure.
  int (*ingress)(pipeline_t *, phv_t *, const uint8_t *frame, uint32_t bytes, const packet_info_t *, intrinsic_t *out);
  // Run the egress control on a phv that ingress filled (or a copy of it). mcast_grp, egress_spec are kept; egress_spec
  // is cleared before, so that a drop in egress shows.
  int (*egress)(pipeline_t *, phv_t *, const packet_info_t *, intrinsic_t *out);
  // Update checksums and write the packet with its unparsed rest; returns its bytes, or a negative P_ code if it exceeds the capacity.
  int (*deparse)(pipeline_t *, phv_t *, uint8_t *out, uint32_t capacity);
  void (*copy_phv)(phv_t *to, const phv_t *from);

  // Tables, by position in the concatenation of the JSON pipelines' "tables" (ingress first).
  int (*table_insert)(pipeline_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
  int (*table_modify)(pipeline_t *, uint32_t table, const table_entry_t *); // found by its match
  int (*table_delete)(pipeline_t *, uint32_t table, const table_entry_t *);
  int (*table_find)(pipeline_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
  int (*table_set_default)(pipeline_t *, uint32_t table, uint32_t action_id, const uint8_t *params, uint32_t bytes);
  uint32_t (*table_size)(pipeline_t *, uint32_t table); // entries held
  int (*table_clear)(pipeline_t *, uint32_t table);
  // Direct counter of an entry (handle), or of the default entry (handle UINT64_MAX).
  int (*direct_counter)(pipeline_t *, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes);
  int (*direct_counter_write)(pipeline_t *, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes);

  // Arrays, by position in the JSON's "counter_arrays" and "register_arrays".
  int (*counter_read)(pipeline_t *, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes);
  int (*counter_write)(pipeline_t *, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes);
  int (*register_read)(pipeline_t *, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity);
  int (*register_write)(pipeline_t *, uint32_t array, uint32_t index, const uint8_t *value, uint32_t bytes);
} pipeline_ops_t;

// The one symbol that a generated library exports.
const pipeline_ops_t *p4_pipeline(void);

#endif
