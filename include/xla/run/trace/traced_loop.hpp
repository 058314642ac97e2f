// SPDX-License-Identifier: Apache-2.0
#pragma once

// The interface of a loop recorded at run time. loop/traced.hpp uses it and trace_loops.hpp
// implements it.

#include <cstdint>
#include <memory>

#include "xla/base/caller.hpp"
#include "xla/base/instance.hpp"
#include "xla/tensor/handle.hpp"

namespace xla::detail {

/// A loop or branch at run time whose body is recorded once: carries and slices are tensors without
/// elements.
class traced_loop {
 public:
  traced_loop() = default;
  traced_loop(const traced_loop&) = delete;
  virtual ~traced_loop() = default;

  /// Begins the body.
  virtual void begin() = 0;
  virtual void carry(int k, handle& result) = 0;
  virtual void slice(int k, handle& result) = 0;
  virtual void number(handle& result) = 0;
  /// The values that a step passes on as carries, and those that are stacked.
  virtual void hand_on(const handle& next) = 0;
  virtual void keep(const handle& y) = 0;
  /// Ends the body, whose tensors are no longer referenced: true if it must be recorded again, with
  /// carries through which gradients flow.
  virtual bool end() = 0;
  /// Afterwards: the last carries, and all stacks.
  virtual void result(int k, handle& result) = 0;
};

/// How often the steps of such a loop run, and what gradients save of them.
struct traced_steps {
  std::int64_t trip = 1;
  bool reverse = false;
  std::int64_t every = 0;  ///< see loop_range
  bool tested = false;     ///< the first carry says whether there is another step
  bool bounded = false;    ///< and there are no more than trip
  bool when = false;       ///< a branch: its single step runs if xs, one bool, holds
  bool unless = false;     ///< the other branch: its step runs if it does not

  bool is_branch() const { return when || unless; }
};

/// Such a loop, called by the function that `site` names.
template <class = void>
std::unique_ptr<traced_loop> open_traced_loop(const handle* const* init, int carries,
                                              const handle* const* xs, int count,
                                              const traced_steps& steps, call_site site);

/// Runs the body of a loop to record it; false if it cannot be recorded, so that its steps run one
/// by one.
template <class = void>
bool record_loop(void (*body)(void*), void* context);

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/trace/trace_loops.hpp"
#endif
