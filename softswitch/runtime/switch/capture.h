// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Capture to classic pcap files with nanosecond time stamps, in the machine's byte order.
#ifndef SOFTSWITCH_CAPTURE_H
#define SOFTSWITCH_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct capture capture_t;

int capture_open(capture_t **out, const char *path); // 0 or a negative errno
// False if the frame is not captured. After a failed write the capture ends, because its file may end in half a record.
bool capture_write(capture_t *, const uint8_t *frame, uint32_t bytes);
bool capture_flush(capture_t *); // once per batch, so that a running capture can be read; false if that failed
void capture_close(capture_t *); // NULL is allowed

#endif
