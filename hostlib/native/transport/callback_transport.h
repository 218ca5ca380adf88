// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A transport whose two calls are the caller's, on datagrams in rows: for transports that are written elsewhere.
#ifndef SWITCHFOLD_CALLBACK_TRANSPORT_H
#define SWITCHFOLD_CALLBACK_TRANSPORT_H

#include <stdint.h>

#include "transport.h"

// Send `count` rows; fill at most `capacity` rows. Both return how many, or -errno.
typedef int send_rows_t(const uint8_t *rows, uint32_t count);
typedef int receive_rows_t(uint8_t *rows, uint32_t capacity, double wait_s);

// NULL without memory; release with callback_transport_free.
transport_t *callback_transport_new(send_rows_t *, receive_rows_t *, uint32_t datagram_bytes);
void callback_transport_free(transport_t *);

#endif
