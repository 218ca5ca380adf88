// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// A bounded ring of byte strings from the data plane to one or more readers: digest samples, messages of the program.
// The writer never waits for a reader: a report without room is dropped and counted. The ring has a lock of its own, which
// a reader holds only while it copies one report.
#ifndef SOFTSWITCH_REPORTS_H
#define SOFTSWITCH_REPORTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t filled;
  uint8_t *data; // NULL: off, everything is ignored
  uint32_t capacity;
  uint64_t written, taken; // bytes since the start
  uint64_t lost;           // reports that found no room
} reports_t;

void reports_init(reports_t *);
void reports_destroy(reports_t *);
int reports_open(reports_t *, uint32_t capacity); // 0 or -ENOMEM; an open ring keeps its reports
void reports_close(reports_t *);                  // wakes readers; discards the reports that wait
// False if the report was lost. A ring that is off ignores it.
bool reports_put(reports_t *, uint32_t id, const void *data, uint32_t bytes);
// Bytes of the report and its id; -EAGAIN when none came in time or the ring is off, -EMSGSIZE when it exceeds the
// capacity (it stays). timeout_ns 0 does not wait.
int reports_take(reports_t *, uint32_t *id, void *out, uint32_t capacity, int64_t timeout_ns);
// Wait until there is a report: 0, or -EAGAIN.
int reports_wait(reports_t *, int64_t timeout_ns);
uint64_t reports_lost(reports_t *);

#endif
