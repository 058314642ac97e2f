// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/ext/pjrt/arguments.hpp"
#include "xla/ext/pjrt/executable.hpp"
#include "xla/ext/stablehlo/program.hpp"
#include "xla/run/engine/common.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/tensor/heap.hpp"

namespace xla::detail {

/// A program's text, and the types of what it takes and gives.
struct pjrt_text {
  stablehlo_program written;
  list<ext::pjrt::array_type> arguments, results;

  /// rooms: each output has memory of its own among the arguments.
  pjrt_text(const sized_program& p, bool rooms) : written(write_stablehlo(p, rooms)) {
    for (const stablehlo_argument& a : written.arguments) arguments.push_back(pjrt_type_of(a.type));
    for (int i = 0; i < p.source.count.writes + p.source.count.results; ++i) {
      const int v = output_of(p.source, i);
      results.push_back({ext::pjrt::element_of(p.source.values[v].type), p.shapes[v]});
    }
  }
};

/// What a call takes, with that of the code, where there is any, on its device.
inline MemoryAnalysis pjrt_memory(const sized_program& p, const ext::pjrt::executable* code) {
  MemoryAnalysis m = memory_outside(p);
  if (!code) return m;
  const ext::pjrt::program_memory there = code->memory();
  m.aliased = there.aliased;
  m.arena = there.temporaries;
  return m;
}

/// Runs a program, and keeps for its next run what that can use again. One run at a time.
class call_memory {
 public:
  call_memory() = default;
  call_memory(const call_memory&) = delete;
  virtual ~call_memory() = default;
  /// After it has thrown it is of no use.
  virtual void run(const ext::pjrt::executable& by, const run_arguments& with) = 0;
};

/// One for each run at the same time.
class call_memories {
 public:
  template <class Make>
  void run(const ext::pjrt::executable& by, const run_arguments& with, Make make) {
    std::unique_ptr<call_memory> one = take();
    if (!one) one = make();
    one->run(by, with);
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
