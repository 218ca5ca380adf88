// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "callback_transport.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ROWS 256u

typedef struct {
  transport_t base;
  send_rows_t *send;
  receive_rows_t *receive;
  uint32_t datagram_bytes;
  uint8_t *out, *in; // MAX_ROWS rows each
} callback_transport_t;

static int callback_send(transport_t *base, uint8_t *const *datagrams, uint32_t count) {
  callback_transport_t *transport = (callback_transport_t *)base;
  uint32_t done = 0;
  while (done < count) {
    uint32_t part = count - done < MAX_ROWS ? count - done : MAX_ROWS;
    for (uint32_t i = 0; i < part; i++) {
      memcpy(transport->out + (size_t)i * transport->datagram_bytes, datagrams[done + i], transport->datagram_bytes);
    }
    int sent = transport->send(transport->out, part);
    if (sent < 0) return sent;
    done += (uint32_t)sent;
    if (sent < (int)part) break;
  }
  return (int)done;
}

static int callback_receive(transport_t *base, const uint8_t **datagrams, uint32_t capacity, double wait_s) {
  callback_transport_t *transport = (callback_transport_t *)base;
  int count = transport->receive(transport->in, capacity < MAX_ROWS ? capacity : MAX_ROWS, wait_s);
  for (int i = 0; i < count; i++) datagrams[i] = transport->in + (size_t)i * transport->datagram_bytes;
  return count;
}

transport_t *callback_transport_new(send_rows_t *send, receive_rows_t *receive, uint32_t datagram_bytes) {
  callback_transport_t *transport = calloc(1, sizeof *transport);
  if (!transport) return NULL;
  *transport = (callback_transport_t){{callback_send, callback_receive, NULL}, send, receive, datagram_bytes, NULL, NULL};
  transport->out = malloc((size_t)MAX_ROWS * datagram_bytes);
  transport->in = malloc((size_t)MAX_ROWS * datagram_bytes);
  if (transport->out && transport->in) return &transport->base;
  callback_transport_free(&transport->base);
  return NULL;
}

void callback_transport_free(transport_t *base) {
  callback_transport_t *transport = (callback_transport_t *)base;
  free(transport->out);
  free(transport->in);
  free(transport);
}
