// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums large tensors over processes in chunks, so that computing and sending overlap. The transport
// uses it for long sums; short ones travel in a single message.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "xla/ext/mpi_contribution.hpp"
#include "xla/ext/mpi_messages.hpp"

namespace xla::mpi::detail {

/// An all_reduce of many elements in chunks, several of which are in flight: one is combined while
/// others travel, and with up to some dozens of processes all of them stay in the cache. Each
/// process receives its part of a chunk from all others, combines it and sends it to all. Two
/// processes exchange whole chunks, which is no more data and one message fewer.
class chunked_reduction {
 public:
  explicit chunked_reduction(MPI_Comm comm) {
    for (int tag = 1; tag <= max_in_flight; ++tag) chunks_.emplace_back(comm, tag);
  }
  ~chunked_reduction() {
    // MPI may still write there after the end of the world.
    if (in_flight_ != 0) new std::vector<chunk>(std::move(chunks_));
  }
  chunked_reduction(const chunked_reduction&) = delete;
  chunked_reduction& operator=(const chunked_reduction&) = delete;

  /// Sends the first chunks of the exchange that begins in x.
  void begin(exchange_contribution& x) {
    x_ = &x;
    direct_ = x.all_parts() == 2 && x.ranks() == 2;
    size_of_chunks();
    for (std::size_t i = 0; i < chunks_.size(); ++i)
      start(chunks_[i], static_cast<std::int64_t>(i) * some_);
  }
  /// Continues as far as possible without waiting; true when nothing is left. Elements are accessed
  /// by f() in touch(f), which returns false once they must not be.
  template <class Touch>
  bool advance(Touch touch) {
    for (chunk& c : chunks_)
      while (c.next && c.in_flight.done())
        if (!touch([&] { (this->*std::exchange(c.next, nullptr))(c); })) return false;
    return in_flight_ == 0;
  }

 private:
  struct chunk {
    chunk(MPI_Comm comm, int tag) : in_flight(comm, tag) {}
    std::int64_t at = 0, count = 0;  // elements
    messages in_flight;
    void (chunked_reduction::*next)(chunk&) = nullptr;  // valid when they have arrived
    message_memory sent, received, result;
  };
  static constexpr int max_in_flight = 4;
  // The chunks in flight stay in the L2 cache.
  static constexpr std::int64_t chunk_bytes = 128 << 10, max_bytes = 8 << 20;
  static constexpr std::int64_t message_bytes = 16 << 10;  // of many processes' parts of a chunk

  std::int64_t wanted_bytes() const {
    if (!direct_) return std::min(std::max(chunk_bytes, x_->ranks() * message_bytes), max_bytes);
    const std::int64_t all = x_->about().elements * x_->element_size();
    return all <= max_in_flight * sent_at_once ? sent_at_once : chunk_bytes;
  }
  void size_of_chunks() {
    const std::int64_t elements = x_->about().elements;
    const std::int64_t most =
        std::max<std::int64_t>(1, wanted_bytes() / x_->element_size() / x_->max_parts());
    const std::int64_t chunks = (elements + most - 1) / most;
    const std::int64_t line = 64 / x_->element_size();
    some_ = ((elements + chunks - 1) / chunks + line - 1) / line * line;
  }
  int own() const { return x_->all().rank; }
  /// Where the part of rank r begins.
  std::int64_t cut(const chunk& c, int r) const { return c.count * r / x_->ranks(); }
  std::int64_t cut_size(const chunk& c, int r) const { return cut(c, r + 1) - cut(c, r); }
  /// All other ranks, beginning with a different one on each rank.
  template <class F>
  void each_other(F f) const {
    for (int i = 1; i < x_->ranks(); ++i) f((own() + i) % x_->ranks());
  }

  void start(chunk& c, std::int64_t at) {
    if (at >= x_->about().elements) return;
    ++in_flight_;
    c.at = at;
    c.count = std::min(some_, x_->about().elements - at);
    direct_ ? exchange_all(c) : exchange_parts(c);
  }
  /// The next chunk is the same on all processes, whichever were quicker there: chunks have tags.
  void end(chunk& c) {
    --in_flight_;
    start(c, c.at + max_in_flight * some_);
  }

  void exchange_all(chunk& c) {
    const std::int64_t bytes = c.count * x_->element_size();
    std::byte* const parts = c.received.room(2 * bytes);
    c.in_flight.receive(parts + (1 - own()) * bytes, bytes, 1 - own());
    x_->combine_all_own(c.at, c.count, parts + own() * bytes);
    c.in_flight.send(parts + own() * bytes, bytes, 1 - own());
    c.next = &chunked_reduction::combine_all;
  }
  void combine_all(chunk& c) {
    const std::int64_t bytes = c.count * x_->element_size();
    x_->combine_for_own([&](int i) { return c.received.data() + i * bytes; }, c.at, c.count);
    end(c);
  }

  void exchange_parts(chunk& c) {
    const std::int64_t size = x_->element_size(), mine = cut_size(c, own()) * size;
    std::byte* const parts = c.received.room(mine * x_->all_parts());
    std::byte* sent = c.sent.room(c.count * size * x_->parts(own()));
    each_other([&](int r) {
      c.in_flight.receive(parts + x_->first_part(r) * mine, x_->parts(r) * mine, r);
    });
    each_other([&](int r) {
      const std::int64_t bytes = cut_size(c, r) * size * x_->parts(own());
      x_->combine_all_own(c.at + cut(c, r), cut_size(c, r), sent);
      c.in_flight.send(sent, bytes, r);
      sent += bytes;
    });
    x_->combine_all_own(c.at + cut(c, own()), cut_size(c, own()),
                        parts + x_->first_part(own()) * mine);
    c.next = &chunked_reduction::combine_part;
  }
  void combine_part(chunk& c) {
    const std::int64_t size = x_->element_size(), mine = cut_size(c, own()) * size;
    std::byte* const result = c.result.room(c.count * size);
    std::byte* const part = result + cut(c, own()) * size;
    x_->combine_all([&](int i) { return c.received.data() + i * mine; }, cut_size(c, own()), part);
    each_other([&](int r) {
      c.in_flight.receive(result + cut(c, r) * size, cut_size(c, r) * size, r);
      c.in_flight.send(part, mine, r);
    });
    c.next = &chunked_reduction::distribute;
  }
  void distribute(chunk& c) {
    x_->distribute(c.at, c.count, c.result.data());
    end(c);
  }

  exchange_contribution* x_ = nullptr;
  bool direct_ = false;
  std::int64_t some_ = 0;  // elements of a chunk
  int in_flight_ = 0;
  std::vector<chunk> chunks_;
};

}  // namespace xla::mpi::detail
