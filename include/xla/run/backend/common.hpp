// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared by backends other than the native one: refusing unsupported programs, with a counter and a
// sentence. The interpreter and XLA by PJRT derive from it.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/text.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/state/metric_store.hpp"

namespace xla::detail {

/// The base of backends: which programs they get, their error sentences and their counters.
class common_backend : public backend {
 public:
  std::unique_ptr<executable> compile(const program* ops, list<shape> slots,
                                      const list<char>& absent, bool winograd) const override {
    if (!ops)
      throw runtime_error(join({"xla::compile: the backend ", name(),
                                " needs the function's graph, which its source was compiled "
                                "without; link the backend's CMake target there as well"}));
    if (const op_info* op = lacks(*ops)) refuse(*op);
    return make(size_program(*ops, std::move(slots), absent, winograd));
  }
  void note_run() const override {
    counter* runs = runs_.load(std::memory_order_relaxed);
    if (!runs) runs_.store(runs = &get_counter(join({"Backend::", name()})));
    runs->add();
  }
  void note_fallback(const op_info& lacked) const override {
    get_counter(join({"fallback::", name(), "::", lacked.name})).add();
  }

 protected:
  constexpr common_backend() = default;
  ~common_backend() = default;

 private:
  [[noreturn, gnu::cold]] void refuse(const op_info& op) const {
    const std::string_view reason = why(op);
    throw runtime_error(
        join({"xla::compile: the backend ", name(), " has no ", op.name,
              ", which the function uses", reason.empty() ? "" : ": ", reason,
              reason.empty() ? "; it runs" : ". It runs", " with set_backend(\"native\")"}));
  }

  mutable std::atomic<counter*> runs_{nullptr};
};

/// The memory of an executable's inputs and outputs.
template <class In = void>
MemoryAnalysis memory_outside(const dependent<In, sized_program>& p) {
  MemoryAnalysis m;
  const program& ops = p.source;
  for (int v = 0; v < ops.count.values; ++v)
    if (is<op::input>(ops.values[v])) m.arguments += p.bytes(v);
  for (int i = 0; i < ops.count.writes + ops.count.results; ++i)
    m.outputs += p.bytes(output_of(ops, i));
  return m;
}

}  // namespace xla::detail
