// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "crc.h"

#include "packet.h"

// Element [k][b]: the register after byte b and k zero bytes, from a register of 0.
typedef uint32_t crc_table_t[8][256];

static crc_table_t table_32, table_16, table_ccitt;

static void fill_rest(crc_table_t table, bool is_reflected) {
  for (uint32_t row = 1; row < 8; row++) {
    for (uint32_t i = 0; i < 256; i++) {
      const uint32_t before = table[row - 1][i];
      table[row][i] = is_reflected ? before >> 8 ^ table[0][before & 255] : before << 8 ^ table[0][before >> 24];
    }
  }
}

static void fill_reflected(crc_table_t table, uint32_t polynomial) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    table[0][i] = crc;
  }
  fill_rest(table, true);
}

static void fill_plain(crc_table_t table, uint32_t polynomial) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t crc = i << 24;
    for (int bit = 0; bit < 8; bit++) crc = crc << 1 ^ (crc >> 31 ? polynomial : 0);
    table[0][i] = crc;
  }
  fill_rest(table, false);
}

// Runs when the library is loaded, before any thread can use the tables.
__attribute__((constructor)) static void fill_tables(void) {
  fill_reflected(table_32, UINT32_C(0xedb88320));
  fill_reflected(table_16, 0xa001);
  fill_plain(table_ccitt, UINT32_C(0x1021) << 16);
}

// Eight bytes: rows 7 to 4 are for the word that is combined with the register, rows 3 to 0 for the other. The first byte
// of a word uses its highest row.
static inline uint32_t look_up(crc_table_t table, uint32_t first, uint32_t second) {
  const uint32_t left = table[7][first >> 24] ^ table[6][first >> 16 & 255] ^ table[5][first >> 8 & 255] ^ table[4][first & 255];
  const uint32_t right = table[3][second >> 24] ^ table[2][second >> 16 & 255] ^ table[1][second >> 8 & 255] ^ table[0][second & 255];
  return left ^ right;
}

static inline uint32_t reflected(crc_table_t table, uint32_t crc, const uint8_t *from, uint32_t bytes) {
  for (; bytes >= 8; bytes -= 8, from += 8) {
    crc = look_up(table, load_be32(from) ^ __builtin_bswap32(crc), load_be32(from + 4));
  }
  for (; bytes > 0; bytes--) crc = crc >> 8 ^ table[0][(crc ^ *from++) & 255];
  return crc;
}

uint32_t crc_32(uint32_t crc, const uint8_t *from, uint32_t bytes) { return reflected(table_32, crc, from, bytes); }

uint32_t crc_16(uint32_t crc, const uint8_t *from, uint32_t bytes) { return reflected(table_16, crc, from, bytes); }

uint32_t crc_ccitt(uint32_t crc, const uint8_t *from, uint32_t bytes) {
  crc <<= 16; // to the top of the register
  for (; bytes >= 8; bytes -= 8, from += 8) crc = look_up(table_ccitt, load_be32(from) ^ crc, load_be32(from + 4));
  for (; bytes > 0; bytes--) crc = crc << 8 ^ table_ccitt[0][crc >> 24 ^ *from++];
  return crc >> 16;
}
