// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums large tensors over processes in chunks, so that computing and sending overlap. The carrier
// uses it for long sums; short ones travel in a single message.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "xla/ext/mpi_messages.hpp"
#include "xla/ext/mpi_parts.hpp"

namespace xla::mpi::detail {

/// An all_reduce of many elements, in chunks of which several are under way: one is combined while
/// others travel, and with up to some dozens of processes none leaves the cache in between. Of a
/// chunk each process gets a part from all, combines it and gives it to all; of two, each gets all
/// that the other has, which is no more and takes one way.
class chunked_reduction {
 public:
  explicit chunked_reduction(MPI_Comm comm) {
    for (int tag = 1; tag <= most_under_way; ++tag) chunks_.emplace_back(comm, tag);
  }
  ~chunked_reduction() {
    // After the end of the world MPI may still write there.
    if (under_way_ != 0) new std::vector<chunk>(std::move(chunks_));
  }
  chunked_reduction(const chunked_reduction&) = delete;
  chunked_reduction& operator=(const chunked_reduction&) = delete;

  /// Sends what comes first of what is begun in x.
  void begin(parts_of_exchange& x) {
    x_ = &x;
    direct_ = x.all_parts() == 2 && x.ranks() == 2;
    size_of_chunks();
    for (std::size_t i = 0; i < chunks_.size(); ++i)
      start(chunks_[i], static_cast<std::int64_t>(i) * some_);
  }
  /// Goes on as far as it can without waiting; true when nothing is left. Elements are read and
  /// written by f() in touch(f), which is false when they are not to be touched any more.
  template <class Touch>
  bool advance(Touch touch) {
    for (chunk& c : chunks_)
      while (c.next && c.travels.done())
        if (!touch([&] { (this->*std::exchange(c.next, nullptr))(c); })) return false;
    return under_way_ == 0;
  }

 private:
  struct chunk {
    chunk(MPI_Comm comm, int tag) : travels(comm, tag) {}
    std::int64_t at = 0, count = 0;  // elements
    messages travels;
    void (chunked_reduction::*next)(chunk&) = nullptr;  // when they have come
    message_memory sent, received, result;
  };
  static constexpr int most_under_way = 4;
  // What is under way stays in the second cache.
  static constexpr std::int64_t chunk_bytes = 128 << 10, most_bytes = 8 << 20;
  static constexpr std::int64_t message_bytes = 16 << 10;  // of many processes' parts of a chunk

  std::int64_t wanted_bytes() const {
    if (!direct_) return std::min(std::max(chunk_bytes, x_->ranks() * message_bytes), most_bytes);
    const std::int64_t all = x_->about().elements * x_->element_size();
    return all <= most_under_way * sent_at_once ? sent_at_once : chunk_bytes;
  }
  void size_of_chunks() {
    const std::int64_t elements = x_->about().elements;
    const std::int64_t most =
        std::max<std::int64_t>(1, wanted_bytes() / x_->element_size() / x_->most_parts());
    const std::int64_t chunks = (elements + most - 1) / most;
    const std::int64_t line = 64 / x_->element_size();
    some_ = ((elements + chunks - 1) / chunks + line - 1) / line * line;
  }
  int own() const { return x_->all().rank; }
  /// Where the part of rank r begins.
  std::int64_t cut(const chunk& c, int r) const { return c.count * r / x_->ranks(); }
  std::int64_t cut_size(const chunk& c, int r) const { return cut(c, r + 1) - cut(c, r); }
  /// All other ranks, each beginning with another one.
  template <class F>
  void each_other(F f) const {
    for (int i = 1; i < x_->ranks(); ++i) f((own() + i) % x_->ranks());
  }

  void start(chunk& c, std::int64_t at) {
    if (at >= x_->about().elements) return;
    ++under_way_;
    c.at = at;
    c.count = std::min(some_, x_->about().elements - at);
    direct_ ? exchange_all(c) : exchange_parts(c);
  }
  /// The next is the same on all processes, whichever chunks were quicker there: it has a tag.
  void end(chunk& c) {
    --under_way_;
    start(c, c.at + most_under_way * some_);
  }

  void exchange_all(chunk& c) {
    const std::int64_t bytes = c.count * x_->element_size();
    std::byte* const parts = c.received.room(2 * bytes);
    c.travels.receive(parts + (1 - own()) * bytes, bytes, 1 - own());
    x_->combine_all_own(c.at, c.count, parts + own() * bytes);
    c.travels.send(parts + own() * bytes, bytes, 1 - own());
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
      c.travels.receive(parts + x_->first_part(r) * mine, x_->parts(r) * mine, r);
    });
    each_other([&](int r) {
      const std::int64_t bytes = cut_size(c, r) * size * x_->parts(own());
      x_->combine_all_own(c.at + cut(c, r), cut_size(c, r), sent);
      c.travels.send(sent, bytes, r);
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
      c.travels.receive(result + cut(c, r) * size, cut_size(c, r) * size, r);
      c.travels.send(part, mine, r);
    });
    c.next = &chunked_reduction::hand_out;
  }
  void hand_out(chunk& c) {
    x_->hand_out(c.at, c.count, c.result.data());
    end(c);
  }

  parts_of_exchange* x_ = nullptr;
  bool direct_ = false;
  std::int64_t some_ = 0;  // elements of a chunk
  int under_way_ = 0;
  std::vector<chunk> chunks_;
};

}  // namespace xla::mpi::detail
