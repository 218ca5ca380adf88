// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

settings_t settings;

static const char *text(int argc, char **argv, const char *name) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], name) == 0) return argv[i + 1];
  }
  return NULL;
}

static double number(int argc, char **argv, const char *name, double otherwise) {
  const char *found = text(argc, argv, name);
  return found ? atof(found) : otherwise;
}

static void open_files(int argc, char **argv) {
  const char *path = text(argc, argv, "large");
  if (path) {
    FILE *file = fopen(path, "rb");
    uint8_t *large = room(NULL, settings.num_chunks);
    if (!file || fread(large, 1, settings.num_chunks, file) != settings.num_chunks) fail("no byte for each chunk can be read");
    fclose(file);
    settings.large = large;
  }
  path = text(argc, argv, "bitmaps");
  if (path && !(settings.bitmaps = fopen(path, "wb"))) fail("the file of bitmaps cannot be opened");
  if (path && settings.tolerated <= 0) fail("sums that lack nothing have no bitmaps");
}

void settings_read(int argc, char **argv) {
  double loss = number(argc, argv, "loss", 0);
  settings = (settings_t){.num_jobs = (uint32_t)number(argc, argv, "jobs", 1),
                          .num_workers = (uint32_t)number(argc, argv, "workers", 4),
                          .num_chunks = (uint32_t)number(argc, argv, "chunks", 400),
                          .window = (uint32_t)number(argc, argv, "window", 256),
                          .seed = (uint64_t)number(argc, argv, "seed", 1),
                          .seconds = number(argc, argv, "seconds", 5),
                          .packet_s = 1 / number(argc, argv, "rate", 8000),
                          .delay_s = number(argc, argv, "delay", 0.0002),
                          .pause_s = number(argc, argv, "pause", 0.0005),
                          .queue_packets = number(argc, argv, "queue", 1000),
                          .mark_packets = number(argc, argv, "mark", INFINITY),
                          .loss = {number(argc, argv, "up", loss), number(argc, argv, "down", loss)},
                          .late_s = number(argc, argv, "late", 0),
                          .nap_s = number(argc, argv, "nap", 0),
                          .nap_off_s = number(argc, argv, "awake", 0.1),
                          .late_share = number(argc, argv, "late_share", 1),
                          .is_adaptive = number(argc, argv, "adaptive", 0) > 0,
                          .is_incast_dynamic = number(argc, argv, "incast", 0) > 0,
                          .tolerated = number(argc, argv, "tolerated", 0),
                          .stale = number(argc, argv, "stale", 0),
                          .is_transposed = number(argc, argv, "transposed", 0) > 0,
                          .uplink_packet_s = 1 / number(argc, argv, "uplink", INFINITY),
                          .num_flows = (uint32_t)number(argc, argv, "flows", 0),
                          .flow_s = number(argc, argv, "flows_at", WARM_UP_S),
                          .burst_loss = number(argc, argv, "burst", 0),
                          .burst_on_s = number(argc, argv, "on", 0.02),
                          .burst_off_s = number(argc, argv, "off", 0.1)};
  if (settings.num_workers < 1 || settings.num_workers > 31 || settings.num_jobs < 1 || settings.num_jobs > MAX_JOBS) {
    fail("1 to 31 workers and 1 to 64 jobs can be simulated");
  }
  if (settings.num_flows > MAX_FLOWS) fail("at most 8 flows can be simulated");
  open_files(argc, argv);
}

uint32_t settings_most_chunks(void) { return settings.num_chunks > WARM_UP_CHUNKS ? settings.num_chunks : WARM_UP_CHUNKS; }
