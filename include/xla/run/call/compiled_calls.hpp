// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/run/call/compile_options.hpp"
#include "xla/run/plan/memory.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

/// What the C++ compiler has made of a function at given argument types.
struct compiled_program {
  program source;
  const region_kernel* kernels;
  const program* ops;  ///< the same for engines; nullptr where the program links none
  const double* facts;
  const std::int8_t* flags;  ///< per fact: 1 or -1 where the body sets a training flag; or nullptr
  void (*visit)(void* const* arguments, leaf_visitor& to);
  const node* forward;  ///< for a backward() outside; see forward_finder
  int forward_count;
  bool cuts;  ///< the body has no_grad(), or detaches an argument

  const node& forward_result(int i) const {
    return forward[forward_count - source.count.results + i];
  }
};

/// The executables of one compiled function and its calls, whatever its type; run/call/compiled.hpp
/// defines it.
template <class In>
class basic_compiled_calls {
 public:
  explicit basic_compiled_calls(CompileOptions options);
  basic_compiled_calls(basic_compiled_calls&& o) noexcept
      : state_(std::exchange(o.state_, nullptr)) {}
  basic_compiled_calls& operator=(basic_compiled_calls&& o) noexcept {
    std::swap(state_, o.state_);
    return *this;
  }
  ~basic_compiled_calls();

  void run(const compiled_program& p, void* const* arguments, handle* results);
  MemoryAnalysis analyse(const compiled_program& p, void* const* arguments);

 private:
  struct state;
  state& reached();
  state* state_;
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/call/compiled.hpp"
#endif
