// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "ports.h"

#include <stdlib.h>
#include <string.h>

#define IMPAIRMENT_NAMES(direction)                                                                            \
  direction "_lost", direction "_duplicated", direction "_corrupted", direction "_reordered", direction "_delayed", \
      direction "_overrun", direction "_burst_lost", direction "_script_lost"

const char *const port_statistic_names[STATISTICS_COUNT] = {
    "rx_packets", "rx_bytes", "tx_packets", "tx_bytes",
    "rx_super_frames", "tx_super_frames",
    "rx_oversize", "rx_overflow", "rx_foreign",
    "tx_oversize", "tx_overflow", "tx_down", "tx_no_peer",
    "port_errors", "capture_errors",
    "dropped_no_program", "dropped_by_program", "dropped_unknown_port", "dropped_unknown_group", "dropped_priority",
    "dropped_recirculated", "dropped_clones", "dropped_digests",
    IMPAIRMENT_NAMES("impaired_in"), IMPAIRMENT_NAMES("impaired_out"),
};

static bool collect(collector_t *collector, uint32_t port, const packet_t *packet) {
  size_t need = collector->bytes + 8 + ((packet->bytes + 3u) & ~3u);
  if (need > collector->capacity) {
    size_t capacity = need * 2;
    uint8_t *data = realloc(collector->data, capacity);
    if (!data) return false;
    collector->data = data;
    collector->capacity = capacity;
  }
  uint32_t head[2] = {port, packet->bytes};
  memcpy(collector->data + collector->bytes, head, sizeof head);
  memcpy(collector->data + collector->bytes + 8, packet->data, packet->bytes);
  collector->bytes = need;
  return true;
}

static void append_pending(port_t *port, batch_t *batch, packet_t *packet) {
  if (port->pending_count == PENDING_MAX || port->pending_bytes + packet->bytes > PENDING_BYTES_MAX) {
    port_flush(port, batch);
  }
  port->pending[port->pending_count++] = packet;
  port->pending_bytes += packet->bytes;
}

void port_enqueue(port_t *port, batch_t *batch, packet_t *packet, uint32_t priority) {
  if (!port->out.is_active) {
    append_pending(port, batch, packet);
    return;
  }
  impairments_push(&port->out, &batch->pool, packet, priority, batch->now_ns, batch->ignore_time);
  port_advance_out(port, batch, 0);
}

void port_advance_out(port_t *port, batch_t *batch, uint64_t now_ns) {
  impairments_advance(&port->out, now_ns);
  for (packet_t *packet = impairments_pop(&port->out); packet; packet = impairments_pop(&port->out)) {
    append_pending(port, batch, packet);
  }
}

void port_capture(port_t *port, const uint8_t *frame, uint32_t bytes) {
  if (port->capture && !capture_write(port->capture, frame, bytes)) port->statistics[CAPTURE_ERRORS]++;
}

void port_count_losses(port_t *port) {
  if (port->fd >= 0 && port->ops->count_losses) port->ops->count_losses(port);
}

void port_flush(port_t *port, batch_t *batch) {
  if (port->pending_count > 0) {
    for (uint32_t i = 0; port->capture && i < port->pending_count; i++) {
      port_capture(port, port->pending[i]->data, port->pending[i]->bytes);
    }
    if (batch->collector) {
      for (uint32_t i = 0; i < port->pending_count; i++) {
        bool is_kept = collect(batch->collector, port->number, port->pending[i]);
        port->statistics[is_kept ? TX_PACKETS : TX_OVERFLOW]++;
        if (is_kept) port->statistics[TX_BYTES] += port->pending[i]->bytes;
      }
    } else if (port->fd < 0) {
      port->statistics[TX_DOWN] += port->pending_count;
    } else {
      port->ops->transmit(port, port->pending, port->pending_count);
    }
    for (uint32_t i = 0; i < port->pending_count; i++) pool_give(&batch->pool, port->pending[i]);
    port->pending_count = port->pending_bytes = 0;
  }
  if (port->capture && !capture_flush(port->capture)) port->statistics[CAPTURE_ERRORS]++;
}

void port_close(port_t *port, batch_t *batch) {
  impairments_drop_all(&port->in, &batch->pool);
  impairments_drop_all(&port->out, &batch->pool);
  for (uint32_t i = 0; i < port->pending_count; i++) pool_give(&batch->pool, port->pending[i]);
  port->pending_count = 0;
  if (port->ops) port->ops->close(port);
  capture_close(port->capture);
  port->capture = NULL;
}
