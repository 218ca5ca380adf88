// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Capture to classic pcap files with nanosecond time stamps, in the machine's byte order.
#ifndef SOFTSWITCH_CAPTURE_H
#define SOFTSWITCH_CAPTURE_H

#include <stdint.h>

typedef struct capture capture_t;

int capture_open(capture_t **out, const char *path); // 0 or a negative errno
void capture_write(capture_t *, const uint8_t *frame, uint32_t bytes);
void capture_flush(capture_t *); // once per batch, so that a running capture can be read
void capture_close(capture_t *); // NULL is allowed

#endif
