// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// How datagrams of one size go to the switch and come from it. One thread sends and receives.
#ifndef SWITCHFOLD_TRANSPORT_H
#define SWITCHFOLD_TRANSPORT_H

#include <stdint.h>

typedef struct transport transport_t;
struct transport {
  // Send datagrams in order; with several switches, in order to each. Returns how many were taken, or -errno. Less than all
  // means that the network is busy.
  int (*send)(transport_t *, uint8_t *const *datagrams, uint32_t count);
  // Wait until something arrives, the transport is woken or the time is over. Returns how many datagrams were taken, at
  // most `capacity`, or -errno. They stay valid until the next call.
  int (*receive)(transport_t *, const uint8_t **datagrams, uint32_t capacity, double wait_s);
  // Wait until the time is over or the transport is woken, whatever arrives. NULL: it cannot.
  void (*pause)(transport_t *, double pause_s);
};

// The same over rows without gaps. A received row is a copy.
int transport_send_rows(transport_t *, uint8_t *rows, uint32_t count, uint32_t row_bytes);
int transport_receive_rows(transport_t *, uint8_t *rows, uint32_t capacity, uint32_t row_bytes, double wait_s);

#endif
