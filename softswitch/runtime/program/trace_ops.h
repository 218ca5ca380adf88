// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of the seam in a traced build: those of pipeline_ops.h, which here record their inputs and outputs.
// Included once, at the end of generated code, after pipeline_ops.h, whose p4_pipeline has another name then.
#ifndef SOFTSWITCH_TRACE_OPS_H
#define SOFTSWITCH_TRACE_OPS_H

static bool trace_awaits_clone; // the last packet asked for a clone from ingress, which is parsed again

// A packet counts when it arrives; its clones and later passes are recorded with it.
static bool trace_wants(const packet_info_t *info) {
  pthread_mutex_lock(&trace_sink.lock);
  bool is_wanted = trace_sink.is_on;
  if (info->instance_type == INSTANCE_NORMAL) {
    is_wanted = trace_sink.packets_left > 0 &&
                (trace_sink.port < 0 || (uint64_t)trace_sink.port == info->ingress_port);
    if (is_wanted) trace_sink.packets_left--;
  }
  pthread_mutex_unlock(&trace_sink.lock);
  return is_wanted;
}

static void traced_start(pipeline_t *s, phv_t *p, const uint8_t *frame, uint32_t bytes, const packet_info_t *info) {
  // A clone is started with nothing but its port.
  const bool is_clone = trace_awaits_clone && info->packet_length == 0;
  trace_awaits_clone = false;
  if (!is_clone) trace_sink.is_on = trace_wants(info);
  op_start(s, p, frame, bytes, info);
  if (trace_sink.is_on) trace_record(TRACE_START_RECORD, is_clone, sizeof *info, info, sizeof *info, NULL, 0);
  trace_bytes(TRACE_FRAME_RECORD, 0, frame, bytes);
}

static int traced_ingress(pipeline_t *s, phv_t *p, intrinsic_t *out) {
  const int result = op_ingress(s, p, out);
  trace_awaits_clone = out->clone_session != PIPELINE_NONE;
  trace_bytes(TRACE_INGRESS_RECORD, 0, out, sizeof *out);
  return result;
}

static int traced_egress(pipeline_t *s, phv_t *p, const packet_info_t *info, intrinsic_t *out) {
  trace_bytes(TRACE_COPY_RECORD, 0, info, sizeof *info);
  const int result = op_egress(s, p, info, out);
  trace_bytes(TRACE_EGRESS_RECORD, 0, out, sizeof *out);
  return result;
}

static int traced_deparse(pipeline_t *s, phv_t *p, uint8_t *out, uint32_t capacity) {
  const int result = op_deparse(s, p, out, capacity);
  trace_bytes(TRACE_SENT_RECORD, 0, out, result < 0 ? 0 : (size_t)result);
  return result;
}

const pipeline_ops_t *p4_pipeline(void) {
  static pipeline_ops_t ops;
  ops = *p4_plain_pipeline();
  ops.start = traced_start;
  ops.ingress = traced_ingress;
  ops.egress = traced_egress;
  ops.deparse = traced_deparse;
  return &ops;
}

#endif
