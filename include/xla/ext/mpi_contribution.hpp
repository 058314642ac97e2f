// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the replicas of this process contribute to one exchange, and how it combines with the
// contributions of others. It sends nothing; mpi_transport.hpp and mpi_reduction.hpp do.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "xla/ext/mpi_process_map.hpp"
#include "xla/kernel/reduce/replica_sum.hpp"
#include "xla/run/world/exchange_summary.hpp"

namespace xla::mpi::detail {

/// The current exchange: the contributions that the replicas of this process have started, in the
/// order of their ordinals, and how they combine with those of others.
class exchange_contribution {
 public:
  /// All contributions stay at their addresses until the exchange is done.
  void begin(const process_map& all, std::span<const started> own) {
    all_ = &all;
    own_ = own;
    about_ = about(0);
    how_ = about_.how == reduce_type::mean ? reduce_type::sum : about_.how;
    size_ = size_of(about_.type);
  }
  const process_map& all() const { return *all_; }
  std::span<const started> own() const { return own_; }
  const exchange_summary& about() const { return about_; }
  /// What a replica of this process contributes.
  exchange_summary about(int own) const {
    return summary_of(own_[static_cast<std::size_t>(own)].what, all_->at(all_->rank) + own);
  }
  reduce_type how() const { return how_; }  ///< as far as the summation tree goes
  std::int64_t element_size() const { return size_; }
  int ranks() const { return all_->ranks(); }
  int world_size() const { return all_->world_size(); }
  /// The partial sums that rank r sends: one for each unit of its replicas.
  int parts(int r) const { return all_->devices(r) / all_->unit; }
  int all_parts() const { return world_size() / all_->unit; }
  int first_part(int r) const { return all_->at(r) / all_->unit; }
  int max_parts() const { return all_->most() / all_->unit; }
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count * size_); }

  const exchange_piece& piece(int own, int p) const {
    return own_[static_cast<std::size_t>(own)].pieces[static_cast<std::size_t>(p)];
  }
  const std::byte* in(int own, int p, std::int64_t at) const {
    return static_cast<const std::byte*>(piece(own, p).in) + at * size_;
  }
  std::byte* out(int own, int p, std::int64_t at) const {
    return static_cast<std::byte*>(piece(own, p).out) + at * size_;
  }

  /// Calls f(piece, at, count, done) for the elements [begin, begin + count) of all pieces in
  /// order.
  template <class F>
  void each_run(std::int64_t begin, std::int64_t count, F f) const {
    std::int64_t done = 0;
    for (int p = 0; done < count; ++p) {
      const std::int64_t here = piece(0, p).count;
      if (begin >= here) {
        begin -= here;
        continue;
      }
      const std::int64_t some = std::min(here - begin, count - done);
      f(p, begin, some, done);
      done += some;
      begin = 0;
    }
  }
  /// The sum over a unit of this process's replicas.
  void combine_own(int part, int p, std::int64_t at, std::int64_t count, std::byte* to) {
    sources_.clear();
    for (int i = 0; i < all_->unit; ++i) sources_.push_back(in(part * all_->unit + i, p, at));
    kernel::sum_replicas(how_, about_.type, sources_.data(), all_->unit, count, to);
  }
  /// The part of this process in such elements, its replicas' parts one after the other.
  void combine_all_own(std::int64_t begin, std::int64_t count, std::byte* to) {
    for (int j = 0; j < parts(all_->rank); ++j)
      each_run(begin, count, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
        combine_own(j, p, at, some, to + (j * count + done) * size_);
      });
  }
  /// The combination of all parts; part i is at from(i).
  template <class From>
  void combine_all(From from, std::int64_t count, std::byte* to) {
    sources_.clear();
    for (int i = 0; i < all_parts(); ++i) sources_.push_back(from(i));
    kernel::sum_replicas(how_, about_.type, sources_.data(), all_parts(), count, to);
    finish_mean(count, to);
  }
  /// The same from element `begin` on, for all replicas of this process.
  template <class From>
  void combine_for_own(From from, std::int64_t begin, std::int64_t count) {
    each_run(begin, count, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
      combine_all([&](int i) { return from(i) + done * size_; }, some, out(0, p, at));
      for (int i = 1; i < all_->own(); ++i) std::memcpy(out(i, p, at), out(0, p, at), bytes(some));
    });
  }
  void finish_mean(std::int64_t count, std::byte* to) const {
    if (about_.how != reduce_type::mean) return;
    about_.type == dtype::float64 ? scale<double>(count, to) : scale<float>(count, to);
  }
  void distribute(std::int64_t begin, std::int64_t count, const std::byte* from) const {
    for (int i = 0; i < all_->own(); ++i)
      each_run(begin, count, [&](int p, std::int64_t at, std::int64_t some, std::int64_t done) {
        std::memcpy(out(i, p, at), from + done * size_, bytes(some));
      });
  }

 private:
  template <class T>
  void scale(std::int64_t count, std::byte* to) const {
    const T by = T(1) / static_cast<T>(world_size());
    const auto x = reinterpret_cast<T*>(to);
    for (std::int64_t i = 0; i < count; ++i) x[i] *= by;
  }

  const process_map* all_ = nullptr;
  std::span<const started> own_;
  exchange_summary about_;
  reduce_type how_ = reduce_type::sum;
  std::int64_t size_ = 0;
  std::vector<const void*> sources_;
};

}  // namespace xla::mpi::detail
