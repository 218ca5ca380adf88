// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "transport.h"

#include <string.h>

#define AT_ONCE 256u

int transport_send_rows(transport_t *transport, uint8_t *rows, uint32_t count, uint32_t row_bytes) {
  uint8_t *datagrams[AT_ONCE];
  uint32_t done = 0;
  while (done < count) {
    uint32_t part = count - done < AT_ONCE ? count - done : AT_ONCE;
    for (uint32_t i = 0; i < part; i++) datagrams[i] = rows + (size_t)(done + i) * row_bytes;
    int sent = transport->send(transport, datagrams, part);
    if (sent < 0) return sent;
    done += (uint32_t)sent;
    if (sent < (int)part) break;
  }
  return (int)done;
}

int transport_receive_rows(transport_t *transport, uint8_t *rows, uint32_t capacity, uint32_t row_bytes, double wait_s) {
  const uint8_t *datagrams[AT_ONCE];
  int count = transport->receive(transport, datagrams, capacity < AT_ONCE ? capacity : AT_ONCE, wait_s);
  for (int i = 0; i < count; i++) memcpy(rows + (size_t)i * row_bytes, datagrams[i], row_bytes);
  return count;
}
