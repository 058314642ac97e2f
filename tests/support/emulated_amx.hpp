// SPDX-License-Identifier: Apache-2.0
// The tile instructions of AMX in plain C++: what Intel's manual says that they compute, and what
// is wrong in how they are used, where a processor would end the program, or not even notice.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "xla/kernel/simd/amx/tiles.hpp"

namespace test {

/// A result of the instruction: denormals are 0, of their sign.
inline float flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.f, x) : x;
}

class emulated_amx {
 public:
  static void configure(const xla::kernel::detail::tile_shapes& shapes) {
    thread& t = mine();
    if (t.open) return tell("configured twice");
    if (shapes.palette != 1 || shapes.start_row != 0) return tell("not a palette of tiles");
    for (int i = 0; i < 8; ++i) {
      if (shapes.rows[i] > 16 || shapes.row_bytes[i] > 64) return tell("a tile that is too large");
      t.tiles[i] = {shapes.rows[i], shapes.row_bytes[i], {}};
    }
    t.open = true;
    ++held_threads;
    ++all_sessions;
  }
  static void release() {
    thread& t = mine();
    if (!t.open) return tell("released, but not configured");
    t.open = false;
    --held_threads;
  }
  template <int Tile>
  static void zero() {
    if (tile* const t = tile_at<Tile>()) std::memset(t->data, 0, sizeof t->data);
  }
  template <int Tile>
  static void load(const void* from, std::int64_t row_bytes) {
    tile* const t = tile_at<Tile>();
    if (!t) return;
    std::memset(t->data, 0, sizeof t->data);
    for (int i = 0; i < t->rows; ++i)
      std::memcpy(t->data[i], static_cast<const char*>(from) + i * row_bytes, t->row_bytes);
  }
  template <int Tile>
  static void store(void* to, std::int64_t row_bytes) {
    const tile* const t = tile_at<Tile>();
    for (int i = 0; t && i < t->rows; ++i)
      std::memcpy(static_cast<char*>(to) + i * row_bytes, t->data[i], t->row_bytes);
  }
  /// Each step rounds to the nearest even and takes denormals for 0.
  template <int Sum, int Left, int Right>
  static void dot() {
    static_assert(Sum != Left && Sum != Right && Left != Right);
    tile* const c = tile_at<Sum>();
    const tile *const a = tile_at<Left>(), *const b = tile_at<Right>();
    if (!a || !b || !c) return;
    if (a->rows != c->rows || b->row_bytes != c->row_bytes || a->row_bytes != 4 * b->rows)
      return tell("tiles whose shapes do not fit");
    float left[16][32], right[16][32], sum[16][16];
    widen(*a, left);
    widen(*b, right);
    std::memcpy(sum, c->data, sizeof sum);
    for (int m = 0; m < c->rows; ++m)
      for (int n = 0; n < c->row_bytes / 4; ++n) {
        float even = 0, odd = 0;
        for (int k = 0; k < b->rows; ++k) {
          even = flushed(std::fma(left[m][2 * k], right[k][2 * n], even));
          odd = flushed(std::fma(left[m][2 * k + 1], right[k][2 * n + 1], odd));
        }
        sum[m][n] = flushed(flushed(sum[m][n]) + flushed(even + odd));
      }
    std::memcpy(c->data, sum, sizeof sum);
  }

  /// The first misuse since it was asked last, on any thread.
  static std::string told() {
    const char* const first = misuse.exchange(nullptr);
    return first ? first : "";
  }
  /// How many threads hold tiles now, and how often one took some.
  static int held() { return held_threads; }
  static int sessions() { return all_sessions; }

 private:
  struct tile {
    int rows, row_bytes;
    unsigned char data[16][64];
  };
  struct thread {
    bool open = false;
    tile tiles[8];
    ~thread() {
      if (!open) return;
      --held_threads;
      tell("a thread ended with tiles");
    }
  };
  static thread& mine() {
    static thread_local thread t{};
    return t;
  }
  template <int Tile>
  static tile* tile_at() {
    static_assert(Tile >= 0 && Tile < 8);
    thread& t = mine();
    if (!t.open) return tell("used, but not configured"), nullptr;
    if (t.tiles[Tile].rows == 0 || t.tiles[Tile].row_bytes == 0)
      return tell("a tile without a shape"), nullptr;
    return &t.tiles[Tile];
  }
  static void tell(const char* what) {
    const char* none = nullptr;
    misuse.compare_exchange_strong(none, what);
  }
  static void widen(const tile& from, float (&to)[16][32]) {
    std::uint16_t half[16][32];
    std::memcpy(half, from.data, sizeof half);
    for (int i = 0; i < 16; ++i)
      for (int k = 0; k < 32; ++k)
        to[i][k] = flushed(std::bit_cast<float>(static_cast<std::uint32_t>(half[i][k]) << 16));
  }

  static inline std::atomic<const char*> misuse{nullptr};
  static inline std::atomic<int> held_threads{0}, all_sessions{0};
};

}  // namespace test
