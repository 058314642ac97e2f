// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a call's memory on devices: arguments, results, and buffers that stay for the
// next call. transferred_memory.hpp and zero_copy_memory.hpp implement it.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/ext/pjrt/arguments.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/tensor/heap.hpp"

namespace xla::detail {

/// A program's text, and the types of its arguments and results.
struct pjrt_text {
  stablehlo_program written;
  list<ext::pjrt::array_type> arguments, results;

  pjrt_text(const sized_program& p, const stablehlo_wording& how)
      : written(write_stablehlo(p, how)) {
    for (const stablehlo_argument& a : written.arguments) arguments.push_back(pjrt_type_of(a.type));
    for (int i = 0; i < p.source.count.writes + p.source.count.results; ++i) {
      const int v = output_of(p.source, i);
      results.push_back({ext::pjrt::element_of(p.source.values[v].type), p.shapes[v]});
    }
  }
};

/// The buffers that a program reads and writes in a call, on the devices that run it for one
/// caller, and those that serve the next call. One call at a time; after an exception it is
/// unusable.
class call_memory {
 public:
  using handle = ext::pjrt::abi::buffer*;

  call_memory(const call_memory&) = delete;
  virtual ~call_memory() {
    for (handle const h : out_) on_.drop(h);
  }
  /// Transfers the arguments: in()[device][argument].
  virtual void prepare(const run_arguments& with) = 0;
  /// Where the run may put an event per device if it may return before its results are ready;
  /// nullptr: the run must wait.
  virtual ext::pjrt::abi::event** in_flight() { return nullptr; }
  /// Passes the results in out()[device][result] on to the call's outputs.
  virtual void keep(const run_arguments& with) = 0;

  handle const* const* in() const { return ins_.data(); }
  handle* const* out() const { return outs_.data(); }
  /// The numbers of arguments that someone else holds, which therefore cannot be donated.
  std::span<const std::int64_t> non_donatable() const {
    return {non_donatable_.data(), static_cast<std::size_t>(non_donatable_.size())};
  }

 protected:
  call_memory(const ext::pjrt::client& on, const pjrt_text& of, int first_device)
      : on_(on),
        of_(of),
        device_(first_device),
        in_(of.written.partitions * of.arguments.size()),
        out_(of.written.partitions * of.results.size()) {
    for (int d = 0; d < of.written.partitions; ++d) {
      ins_.push_back(in_.data() + d * of.arguments.size());
      outs_.push_back(out_.data() + d * of.results.size());
    }
  }

  const ext::pjrt::client& on_;
  const pjrt_text& of_;
  const int device_;
  list<handle> in_, out_;  // those of the first device, then of the next
  list<handle const*> ins_;
  list<handle*> outs_;
  list<std::int64_t> non_donatable_;
};

/// A pool of these, one for each concurrent call.
class call_memories {
 public:
  /// Calls `use` with a free one, or with a new one.
  template <class Make, class Use>
  void run(Make make, Use use) {
    std::unique_ptr<call_memory> one = take();
    if (!one) one = make();
    use(*one);
    const std::lock_guard hold(lock_);
    free_.push_back(std::move(one));
  }

 private:
  std::unique_ptr<call_memory> take() {
    const std::lock_guard hold(lock_);
    if (free_.empty()) return {};
    auto one = std::move(free_.back());
    free_.pop_back();
    return one;
  }
  spin_lock lock_;
  list<std::unique_ptr<call_memory>> free_;
};

}  // namespace xla::detail
