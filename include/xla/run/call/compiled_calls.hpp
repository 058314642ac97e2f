// SPDX-License-Identifier: Apache-2.0
#pragma once

// The untyped part of a compiled function: its executables and its calls. xla::compile()'s result
// owns one (compile.hpp), and compiled.hpp defines it.

#include <string>
#include <utility>

#include "xla/base/instance.hpp"
#include "xla/run/call/compiled_program.hpp"
#include "xla/run/plan/memory.hpp"

namespace xla::detail {

template <class>
class basic_executable;

/// The executables of one compiled function and its calls, independent of its type;
/// run/call/compiled.hpp defines it.
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
  std::string print(const compiled_program& p, void* const* arguments);

 private:
  struct state;
  state& reached();
  state* state_;
};

}  // namespace xla::detail

#if XLA_RUNTIME_HERE
#include "xla/run/call/compiled.hpp"
#endif
