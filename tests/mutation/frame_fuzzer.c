// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// frame_fuzzer FRAMES SEED: sends mutated frames through a whole switch, runtime and generated code, built with the
// address and undefined-behaviour sanitizers. state.h, written for each program, holds seed frames and table entries.
// Status 0: no crash, no leak, and memory did not grow after the first tenth. The sanitizers choose other statuses.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline.h"
#include "switch.h"

typedef struct {
  uint32_t bytes;
  const uint8_t *frame;
} seed_t;

typedef struct {
  uint32_t table;
  table_entry_t entry;
} held_entry_t;

#include "state.h" // seeds, entries

enum { FRAME_BYTES = 2048, NUM_PORTS = 8, NUM_GROUPS = 6, CPU_PORT = 255, DROP = 511, POOL_PACKETS = 4096, GROWTH_KIB_MAX = 4096 };

static uint64_t state;

static uint32_t draw(uint32_t limit) { // splitmix64
  uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ z >> 31) % limit);
}

static uint32_t grow(uint8_t *frame, uint32_t bytes) {
  uint32_t more = 1 + draw(FRAME_BYTES - bytes < 64 ? FRAME_BYTES - bytes : 64);
  for (uint32_t i = 0; i < more; i++) frame[bytes + i] = (uint8_t)draw(256);
  return bytes + more;
}

static void splice(uint8_t *frame, uint32_t bytes) {
  const seed_t *other = &seeds[draw(NUM_SEEDS)];
  uint32_t length = 1 + draw(other->bytes < bytes ? other->bytes : bytes);
  memcpy(frame + draw(bytes - length + 1), other->frame + draw(other->bytes - length + 1), length);
}

static uint32_t mutate(uint8_t *frame, uint32_t bytes) {
  static const uint8_t corners[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
  switch (draw(6)) {
  case 0: frame[draw(bytes)] ^= (uint8_t)(1u << draw(8)); return bytes;
  case 1: frame[draw(bytes)] = (uint8_t)draw(256); return bytes;
  case 2: frame[draw(bytes)] = corners[draw(sizeof corners)]; return bytes;
  case 3: return 1 + draw(bytes);
  case 4: return bytes < FRAME_BYTES ? grow(frame, bytes) : bytes;
  default: splice(frame, bytes); return bytes;
  }
}

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  if (file != NULL) fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static uint32_t prepare(softswitch_t *held) {
  uint32_t accepted = 0;
  for (uint32_t port = 0; port < NUM_PORTS; port++) switch_add_mem_port(held, port, NULL);
  for (uint32_t group = 1; group <= NUM_GROUPS; group++) {
    const replica_t replicas[] = {{group, 1}, {(group + 1) % NUM_PORTS, 2}, {CPU_PORT, 3}};
    switch_set_multicast_group(held, group, replicas, 3);
    switch_set_clone_session(held, group, replicas, 2, group == NUM_GROUPS ? 20 : 0);
  }
  for (uint32_t i = 0; i < NUM_ENTRIES; i++) {
    uint64_t handle = 0;
    accepted += switch_table_insert(held, entries[i].table, &entries[i].entry, &handle) == P_OK;
  }
  return accepted;
}

static int fuzz(softswitch_t *held, uint64_t frames) {
  static uint8_t frame[FRAME_BYTES];
  long resident = 0;
  uint64_t out_bytes = 0;
  for (uint64_t i = 0; i < frames; i++) {
    const seed_t *from = &seeds[draw(NUM_SEEDS)];
    uint32_t bytes = from->bytes;
    memcpy(frame, from->frame, bytes);
    for (uint32_t times = draw(5); times > 0; times--) bytes = mutate(frame, bytes);
    const uint8_t *out = NULL;
    size_t size = 0;
    uint32_t port = draw(NUM_PORTS + 1);
    int result = switch_process(held, port == NUM_PORTS ? CPU_PORT : port, frame, bytes, 1, &out, &size);
    if (result < 0) {
      fprintf(stderr, "frame %llu: switch_process returned %d\n", (unsigned long long)i, result);
      return 1;
    }
    out_bytes += size;
    if (i == frames / 10) resident = resident_kib();
  }
  long growth = resident_kib() - resident;
  printf("%llu frames, %llu bytes out, resident memory grew by %ld KiB\n", (unsigned long long)frames,
         (unsigned long long)out_bytes, growth);
  if (growth <= GROWTH_KIB_MAX) return 0;
  fprintf(stderr, "resident memory grew by %ld KiB, at most %d are allowed\n", growth, GROWTH_KIB_MAX);
  return 1;
}

int main(int count, char **arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: %s FRAMES SEED\n", arguments[0]);
    return 2;
  }
  softswitch_t *held = switch_create(CPU_PORT, DROP, 1, POOL_PACKETS);
  if (held == NULL || switch_load(held, p4_pipeline()) < 0) return 1;
  printf("%u of %u entries accepted\n", prepare(held), (unsigned)NUM_ENTRIES);
  state = strtoull(arguments[2], NULL, 10);
  int status = fuzz(held, strtoull(arguments[1], NULL, 10));
  switch_destroy(held);
  return status;
}
