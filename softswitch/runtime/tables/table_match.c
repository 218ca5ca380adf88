// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "table_match.h"

#include "packet.h"

static uint32_t words_of(uint32_t width) { return (width + 63) / 64; }

// False when bits beyond the field's width are set.
static bool load_words(const uint8_t *from, uint32_t width, uint64_t *words) {
  uint32_t bytes = (width + 7) / 8;
  if (width % 8 != 0 && from[0] >> (width % 8) != 0) return false;
  uint32_t first = bytes % 8;
  if (first != 0) *words++ = load_be(from, first);
  for (uint32_t at = first; at < bytes; at += 8) *words++ = load_be64(from + at);
  return true;
}

static void prefix_words(uint32_t width, uint32_t length, uint64_t *words) {
  uint32_t count = words_of(width);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t bits = i == 0 ? width - (count - 1) * 64 : 64;
    uint32_t taken = length < bits ? length : bits;
    words[i] = low_mask(bits) & ~low_mask(bits - taken);
    length -= taken;
  }
}

static int compare_words(const uint64_t *left, const uint64_t *right, uint32_t words) {
  for (uint32_t i = 0; i < words; i++)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

int match_decode(const table_shape_t *shape, const table_entry_t *entry, match_t *match) {
  uint32_t byte = 0;
  uint32_t word = 0;
  if (entry->key_bytes != shape->key_bytes) return P_BAD_ARGUMENT;
  for (uint32_t i = 0; i < shape->num_fields; i++) {
    const key_field_t *field = &shape->fields[i];
    uint32_t words = words_of(field->width);
    uint64_t *key = match->key + word;
    uint64_t *mask = match->mask + word;
    if (entry->key == NULL || !load_words(entry->key + byte, field->width, key)) return P_BAD_ARGUMENT;
    switch (field->kind) {
    case MATCH_EXACT: prefix_words(field->width, field->width, mask); break;
    case MATCH_LPM:
      if (entry->prefix_len < 0 || (uint32_t)entry->prefix_len > field->width) return P_BAD_ARGUMENT;
      prefix_words(field->width, (uint32_t)entry->prefix_len, mask);
      break;
    case MATCH_TERNARY:
    case MATCH_RANGE:
      if (entry->mask == NULL || !load_words(entry->mask + byte, field->width, mask)) return P_BAD_ARGUMENT;
      if (field->kind == MATCH_RANGE && compare_words(key, mask, words) > 0) return P_BAD_ARGUMENT;
      break;
    }
    if (shape->key_mask != NULL) // as simple_switch does: only the value, or a range's lower end
      for (uint32_t k = 0; k < words; k++) key[k] &= shape->key_mask[word + k];
    if (field->kind != MATCH_RANGE)
      for (uint32_t k = 0; k < words; k++) key[k] &= mask[k];
    byte += (field->width + 7) / 8;
    word += words;
  }
  match->rank = shape->kind == MATCH_EXACT ? 0 : shape->kind == MATCH_LPM ? entry->prefix_len : entry->priority;
  match->hash = shape->kind == MATCH_EXACT ? match_hash(match->key, shape->words, 0) : 0;
  return P_OK;
}

static void store_words(uint8_t *to, uint32_t width, const uint64_t *words) {
  uint32_t bytes = (width + 7) / 8;
  uint32_t first = bytes % 8;
  if (first != 0) store_be(to, first, *words++);
  for (uint32_t at = first; at < bytes; at += 8) store_be64(to + at, *words++);
}

void match_encode(const table_shape_t *shape, const table_node_t *node, uint8_t *key, uint8_t *mask,
                  int32_t *prefix_len) {
  const uint64_t *held = shape->kind == MATCH_EXACT ? table_exact_key(node) : table_node_key(node);
  const uint64_t *masks = held + shape->words; // not there in exact tables
  *prefix_len = 0;
  for (uint32_t i = 0; i < shape->num_fields; i++) {
    const key_field_t *field = &shape->fields[i];
    uint64_t ones[MATCH_MAX_WORDS];
    uint32_t words = words_of(field->width);
    prefix_words(field->width, field->width, ones);
    bool is_masked = field->kind == MATCH_TERNARY || field->kind == MATCH_RANGE;
    if (field->kind == MATCH_LPM)
      for (uint32_t k = 0; k < words; k++) *prefix_len += __builtin_popcountll(masks[k]);
    store_words(key, field->width, held);
    store_words(mask, field->width, is_masked ? masks : ones);
    key += (field->width + 7) / 8;
    mask += (field->width + 7) / 8;
    held += words;
    masks += words;
  }
}

bool match_ranges(const table_shape_t *shape, const uint64_t *held, const uint64_t *key) {
  const uint64_t *mask = held + shape->words;
  uint32_t word = 0;
  for (uint32_t i = 0; i < shape->num_fields; i++) {
    uint32_t words = words_of(shape->fields[i].width);
    if (shape->fields[i].kind == MATCH_RANGE) {
      if (compare_words(key + word, held + word, words) < 0) return false;
      if (compare_words(key + word, mask + word, words) > 0) return false;
    } else {
      for (uint32_t k = word; k < word + words; k++)
        if (((key[k] ^ held[k]) & mask[k]) != 0) return false;
    }
    word += words;
  }
  return true;
}
