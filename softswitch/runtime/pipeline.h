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

#define PIPELINE_ABI_VERSION 5u

typedef struct pipeline pipeline_t; // tables, registers, counters of one loaded program
typedef void (*pipeline_log_t)(void *context, const char *text, uint32_t bytes);
typedef struct phv phv_t;           // headers and metadata of one packet; phv_bytes large, 64-byte aligned, owned by the caller

#define PIPELINE_NONE UINT32_MAX // in intrinsic_t: the program did not ask for it

// What the replication engine acts on, read after ingress or egress.
typedef struct {
  uint32_t egress_spec; // the drop port means drop
  uint32_t mcast_grp;
  uint32_t clone_session;      // ingress to egress after ingress, egress to egress after egress
  uint32_t clone_fields;       // field list of the clone; 0: none
  uint32_t resubmit_fields;    // field list, 0 for none; after ingress
  uint32_t recirculate_fields; // field list, 0 for none; after egress
  uint32_t digest_list;        // learn list; 0: no digest
  uint32_t truncate_bytes;     // of the whole packet
  uint32_t priority;
} intrinsic_t;

// simple_switch's instance types.
enum {
  INSTANCE_NORMAL = 0,
  INSTANCE_INGRESS_CLONE = 1,
  INSTANCE_EGRESS_CLONE = 2,
  INSTANCE_COALESCED = 3,
  INSTANCE_RECIRC = 4,
  INSTANCE_REPLICATION = 5,
  INSTANCE_RESUBMIT = 6,
};

typedef struct {
  uint32_t ingress_port;
  uint32_t packet_length; // bytes of the frame as it came to ingress: from the wire, or recirculated
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
enum { P_OK = 0, P_NOT_FOUND = -1, P_EXISTS = -2, P_FULL = -3, P_BAD_ARGUMENT = -4, P_UNSUPPORTED = -5, P_IN_USE = -6 };

// What a table entry refers to, in tables with an action profile.
enum { INDIRECT_NONE = 0, INDIRECT_MEMBER = 1, INDIRECT_GROUP = 2 };

// One table entry as the control plane sees it. Keys and masks: one byte string holding all fields in order.
typedef struct {
  const uint8_t *key;  // exact and lpm values, ternary values, range lows
  const uint8_t *mask; // ternary masks, range highs; exact: ignored; lpm: ignored
  int32_t prefix_len;  // of the lpm field, if there is one (whole field = width)
  int32_t priority;    // larger wins (P4Runtime order); 0 if the table has none
  uint32_t action_id;  // index into the JSON's actions by position (not the JSON id)
  const uint8_t *params; // all action parameters in order
  uint32_t params_bytes;
  uint32_t indirect_kind; // INDIRECT_MEMBER or INDIRECT_GROUP in tables with an action profile: action and params are ignored
  uint32_t indirect_id;
  uint64_t idle_timeout_ns; // 0: never
  uint64_t now_us; // of the control operation, on the clock of the packets' ingress time stamps
  uint32_t key_bytes; // of the key, and of the mask if there is one
} table_entry_t;

typedef struct {
  uint32_t member, weight;
} group_member_t;

// What table_dump writes per entry: table_record_t, then what the extras name, in this order, then key, mask and parameters.
enum { EXTRA_COUNTS = 1, EXTRA_IDLE = 2 };

typedef struct {
  uint32_t key_bytes;    // of key and mask each
  uint32_t params_bytes; // room for the parameters of any action
  uint32_t extras;       // EXTRA_COUNTS: two 64-bit numbers, packets and bytes; EXTRA_IDLE: two, timeout (ns) and idle time (us)
  uint32_t record_bytes;
} table_layout_t;

typedef struct {
  uint32_t handle;
  uint32_t action_id;
  int32_t prefix_len; // -1 if all fields are exact
  int32_t priority;
  uint32_t indirect_kind;
  uint32_t indirect_id;
  uint32_t params_bytes; // bytes in use of the room for parameters
} table_record_t;

// Rates per second and bursts, both in packets or bytes as the meter counts.
typedef struct {
  uint64_t cir, cburst, pir, pburst;
  uint64_t is_configured; // 0: every packet is green
} meter_rates_t;

typedef struct {
  uint32_t abi_version;
  uint32_t phv_bytes;
  uint32_t drop_port; // of a new pipeline
  const char *program_name;

  pipeline_t *(*create)(void); // NULL when out of memory
  void (*destroy)(pipeline_t *);
  void (*set_drop_port)(pipeline_t *, uint32_t port);
  void (*set_log)(pipeline_t *, pipeline_log_t, void *context); // NULL: messages of the program are not even formatted

  // Reset the phv and fill in metadata. The phv points into the frame until deparse is done.
  void (*start)(pipeline_t *, phv_t *, const uint8_t *frame, uint32_t bytes, const packet_info_t *);
  // Parse and verify checksums. Returns 0; a parser error is an outcome that the program sees, not a failure.
  int (*parse)(pipeline_t *, phv_t *);
  int (*ingress)(pipeline_t *, phv_t *, intrinsic_t *out); // the ingress control
  // Run the egress control on a phv that ingress filled (or a copy of it). It first clears egress_spec, so that a drop in
  // egress is visible.
  int (*egress)(pipeline_t *, phv_t *, const packet_info_t *, intrinsic_t *out);
  // Update checksums and write the packet with its unparsed rest; returns its bytes, or a negative P_ code if it exceeds the capacity.
  int (*deparse)(pipeline_t *, phv_t *, uint8_t *out, uint32_t capacity);
  void (*copy_phv)(phv_t *to, const phv_t *from);

  // Field lists and learn lists, by their ids in the JSON; a list that does not exist has no fields.
  // Clear all metadata and requests of a phv, then copy the list's fields.
  int (*copy_fields)(pipeline_t *, phv_t *to, const phv_t *from, uint32_t field_list);
  // The list's fields for a packet that waits; bytes written, or P_FULL. load_fields comes after start.
  int (*save_fields)(pipeline_t *, const phv_t *, uint32_t field_list, uint8_t *out, uint32_t capacity);
  int (*load_fields)(pipeline_t *, phv_t *, uint32_t field_list, const uint8_t *from, uint32_t bytes);
  // Big-endian bytes of a learn list's fields; bytes written, P_FULL, or P_NOT_FOUND.
  int (*digest)(pipeline_t *, const phv_t *, uint32_t learn_list, uint8_t *out, uint32_t capacity);

  // Tables, by position in the concatenation of the JSON pipelines' "tables" (ingress first).
  int (*table_insert)(pipeline_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
  int (*table_modify)(pipeline_t *, uint32_t table, const table_entry_t *); // found by its match
  int (*table_delete)(pipeline_t *, uint32_t table, const table_entry_t *);
  int (*table_find)(pipeline_t *, uint32_t table, const table_entry_t *, uint64_t *handle_out);
  // The match is ignored. In a table with an action profile, INDIRECT_NONE removes the default.
  int (*table_set_default)(pipeline_t *, uint32_t table, const table_entry_t *);
  uint32_t (*table_size)(pipeline_t *, uint32_t table); // entries held
  int (*table_clear)(pipeline_t *, uint32_t table);
  // Direct counter of an entry (handle), or of the default entry (handle UINT64_MAX).
  int (*direct_counter)(pipeline_t *, uint32_t table, uint64_t handle, uint64_t *packets, uint64_t *bytes);
  int (*direct_counter_write)(pipeline_t *, uint32_t table, uint64_t handle, uint64_t packets, uint64_t bytes);

  // The same for direct meters. That of a default entry colours misses once it is configured.
  int (*direct_meter)(pipeline_t *, uint32_t table, uint64_t handle, meter_rates_t *out);
  int (*direct_meter_write)(pipeline_t *, uint32_t table, uint64_t handle, const meter_rates_t *);
  // Time since an entry's last hit or write.
  int (*table_idle)(pipeline_t *, uint32_t table, uint64_t handle, uint64_t now_us, uint64_t *idle_us);
  // Check up to `entries` entries from *from on. Advances *from, which is 0 at the end of the table. Writes the handles of
  // the entries whose idle timeout has passed, each once until it is hit or written. Returns their number.
  int (*table_expired)(pipeline_t *, uint32_t table, uint64_t now_us, uint32_t *from, uint32_t entries, uint64_t *handles);
  // An entry's match; returns the bytes of key and mask. Exact and lpm fields have ones as mask; the prefix length is -1
  // if all fields are exact.
  int (*table_match)(pipeline_t *, uint32_t table, uint64_t handle, uint8_t *key, uint8_t *mask, int32_t *prefix_len,
                     int32_t *priority);

  int (*table_layout)(pipeline_t *, uint32_t table, table_layout_t *out);
  // Write the records of up to `records` entries from *from on. Advances *from, which is 0 at the end. Returns how many.
  int (*table_dump)(pipeline_t *, uint32_t table, uint64_t now_us, uint32_t *from, uint32_t records, uint8_t *out);
  // Make the entries that the program declares changeable; they are const until then.
  int (*table_open)(pipeline_t *, uint32_t table);

  // Action profiles, by position in the concatenation of the JSON pipelines' "action_profiles" (ingress first).
  int (*profile_add_member)(pipeline_t *, uint32_t profile, uint32_t member, const table_entry_t *action);
  int (*profile_modify_member)(pipeline_t *, uint32_t profile, uint32_t member, const table_entry_t *action);
  int (*profile_delete_member)(pipeline_t *, uint32_t profile, uint32_t member); // P_IN_USE while anything refers to it
  int (*profile_set_group)(pipeline_t *, uint32_t profile, uint32_t group, const group_member_t *, uint32_t count);
  int (*profile_delete_group)(pipeline_t *, uint32_t profile, uint32_t group);

  // Meters, by position in the JSON's "meter_arrays".
  int (*meter_read)(pipeline_t *, uint32_t array, uint32_t index, meter_rates_t *out);
  int (*meter_write)(pipeline_t *, uint32_t array, uint32_t index, const meter_rates_t *);

  // Arrays, by position in the JSON's "counter_arrays" and "register_arrays".
  int (*counter_read)(pipeline_t *, uint32_t array, uint32_t index, uint64_t *packets, uint64_t *bytes);
  int (*counter_write)(pipeline_t *, uint32_t array, uint32_t index, uint64_t packets, uint64_t bytes);
  int (*register_read)(pipeline_t *, uint32_t array, uint32_t index, uint8_t *out, uint32_t capacity);
  int (*register_write)(pipeline_t *, uint32_t array, uint32_t index, const uint8_t *value, uint32_t bytes);

  // Replace the members of a value set, by position in the JSON's "parse_vsets". Each is a value and a mask of equal size, with
  // the fields of the select's key; bytes counts all of them. P_FULL beyond the size that the program gives.
  int (*value_set_write)(pipeline_t *, uint32_t set, const uint8_t *members, uint32_t bytes, uint32_t count);
} pipeline_ops_t;

// The one symbol that a generated library exports.
const pipeline_ops_t *p4_pipeline(void);

#endif
