// SPDX-License-Identifier: Apache-2.0
#pragma once

// compare_runs(): runs a function in two modes or on two backends, and names the first op whose
// values differ. It is not in xla.hpp; programs include it for debugging.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/tensor/visit.hpp"

namespace xla {

/// How a run of compare_runs() executes ops: at once, fused in eager mode, or traced.
enum class RunMode : std::int8_t { eager, fused, traced };

/// One run of compare_runs(): its mode, and its backend by set_backend()'s name.
struct RunAs {
  RunMode mode = RunMode::eager;
  std::string backend = "native";
};

/// When two elements a and b count as equal: |a - b| <= atol + rtol |b|, or both are NaN.
struct CompareOptions {
  double rtol = 0;
  double atol = 0;
};

/// An op whose elements differ between two runs.
struct RunDifference {
  std::string op;                   ///< "matmul"; "result 0" of the function if no op differs
  std::string source;               ///< "model.cpp:42", if the op's call is known; else empty
  std::string shape;                ///< "float32 (64, 10)"
  std::vector<std::string> inputs;  ///< of its inputs, as far as they still exist
  int number = 0;                   ///< its number among the compared ops of the first run
  std::int64_t elements = 0;        ///< of its result
  std::int64_t different = 0;       ///< their number
  double largest = 0;               ///< the largest |a - b|; NaN if one is NaN or infinite
};

/// The result of compare_runs().
struct RunComparison {
  int ops = 0;        ///< that both runs executed, up to the first difference
  int unmatched = 0;  ///< ops that only one run executed
  std::optional<RunDifference> first;

  /// One sentence, with the difference if there is one.
  std::string to_string() const;
  friend std::ostream& operator<<(std::ostream& out, const RunComparison& c) {
    return out << c.to_string();
  }
};

[[gnu::cold]] inline std::string RunComparison::to_string() const {
  using detail::join;
  const auto numbered = [](std::int64_t n, const char* one, const char* more) {
    return std::to_string(n) + (n == 1 ? one : more);
  };
  std::string out;
  if (!first) {
    out = numbered(ops, " op has", " ops have") + " the same values";
  } else {
    const RunDifference& d = *first;
    out = d.op.starts_with("result ") ? d.op : join({"op ", std::to_string(d.number), ", ", d.op});
    for (std::size_t i = 0; i < d.inputs.size(); ++i)
      out += (i == 0 ? " of " : i + 1 == d.inputs.size() ? " and " : ", ") + d.inputs[i];
    if (!d.source.empty()) out += join({" (", d.source, ")"});
    char largest[40];
    std::snprintf(largest, sizeof largest, "%.3g", d.largest);
    out += join({", is the first that differs: ", std::to_string(d.different), " of ",
                 numbered(d.elements, " element of ", " elements of "), d.shape, ", by ", largest,
                 " at most"});
  }
  if (unmatched > 0)
    out += join({"; ", numbered(unmatched, " op", " ops"), " ran in one run only"});
  return out;
}

namespace detail {

/// A function to run, and where to store its result's tensors.
struct compared_function {
  const void* f;
  void (*call)(const void* f, list<ref<impl>>& results);
};

template <class = void>
RunComparison compare_runs(const RunAs& a, const compared_function& f, const RunAs& b,
                           const compared_function& g, const CompareOptions& options);

template <class F>
constexpr compared_function compared(const F& f) {
  return {&f, [](const void* of, list<ref<impl>>& results) {
            F copy = *static_cast<const F*>(of);
            if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
              copy();
            } else {
              auto result = copy();
              visit_tree(result,
                         [&](auto& leaf, const tree_path&) {
                           using L = std::remove_cvref_t<decltype(leaf)>;
                           if constexpr (is_tensor<L> || is_state<L>)
                             if (leaf.defined()) results.push_back(ref<impl>::share(leaf.value()));
                         },
                         {});
            }
          }};
}

}  // namespace detail

/// Runs f in a's mode and g in b's mode from the same random numbers, and compares the values that
/// both compute op by op: the first op whose elements differ is where an error begins. Ops are
/// paired by name, shape and order. Ops inside compiled functions and of loops' bodies are not
/// seen, but their results are. Each run calls a copy of the function, so that state captured by
/// value begins the same: f makes or copies the models and optimizers that it changes. All values
/// are kept until the end. Throws the exceptions of f, g and set_backend().
///
///     std::cout << xla::compare_runs({xla::RunMode::eager}, {xla::RunMode::traced, "openxla"},
///                                    [=] { return loss_of(model, x); }, {.rtol = 1e-5});
///
/// It corresponds to torch_xla.debug.model_comparator, for ops instead of modules.
template <std::invocable F, std::invocable G>
RunComparison compare_runs(const RunAs& a, const F& f, const RunAs& b, const G& g,
                           const CompareOptions& options = {}) {
  return detail::compare_runs<>(a, detail::compared(f), b, detail::compared(g), options);
}
template <std::invocable F>
RunComparison compare_runs(const RunAs& a, const RunAs& b, const F& f,
                           const CompareOptions& options = {}) {
  return detail::compare_runs<>(a, detail::compared(f), b, detail::compared(f), options);
}

}  // namespace xla

#if XLA_RUNTIME_HERE
#include "xla/run/trace/noted_run.hpp"
#endif
