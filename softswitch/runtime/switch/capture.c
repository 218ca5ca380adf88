// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "capture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct capture {
  FILE *file;
  bool is_dirty;
  bool has_failed;
};

typedef struct {
  uint32_t magic;
  uint16_t major, minor;
  uint32_t zone, accuracy, snap_length, link_type;
} pcap_header_t;

typedef struct {
  uint32_t seconds, nanoseconds, captured_bytes, bytes;
} pcap_record_t;

int capture_open(capture_t **out, const char *path) {
  capture_t *capture = calloc(1, sizeof *capture);
  if (!capture) return -ENOMEM;
  capture->file = fopen(path, "wbe");
  if (!capture->file) {
    int error = errno;
    free(capture);
    return -error;
  }
  setvbuf(capture->file, NULL, _IOFBF, 256 * 1024);
  const pcap_header_t header = {0xa1b23c4d, 2, 4, 0, 0, 65535, 1};
  fwrite(&header, sizeof header, 1, capture->file);
  if (fflush(capture->file) != 0) {
    int error = errno;
    capture_close(capture);
    return -error;
  }
  *out = capture;
  return 0;
}

bool capture_write(capture_t *capture, const uint8_t *frame, uint32_t bytes) {
  if (capture->has_failed) return false;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  const pcap_record_t record = {(uint32_t)now.tv_sec, (uint32_t)now.tv_nsec, bytes, bytes};
  capture->is_dirty = true;
  capture->has_failed = fwrite(&record, sizeof record, 1, capture->file) != 1 ||
                        (bytes != 0 && fwrite(frame, bytes, 1, capture->file) != 1);
  return !capture->has_failed;
}

bool capture_flush(capture_t *capture) {
  if (!capture->is_dirty || capture->has_failed) return true;
  capture->is_dirty = false;
  capture->has_failed = fflush(capture->file) != 0;
  return !capture->has_failed;
}

void capture_close(capture_t *capture) {
  if (!capture) return;
  fclose(capture->file);
  free(capture);
}
