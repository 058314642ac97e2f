// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/pjrt.hpp"
#include "support/reference.hpp"
#include "xla/compile.hpp"
#include "xla/ext/pjrt/compile.hpp"

namespace test {

/// The elements of a tensor, row by row.
struct host_array {
  xla::dtype type = xla::dtype::float32;
  xla::detail::shape sizes;
  std::vector<char> bytes;
};

/// Those of a tensor, or of all in a tuple.
template <class X>
void add_arrays(std::vector<host_array>& to, const X& x) {
  if constexpr (requires { x.to_vector(); }) {
    const auto* const p = reinterpret_cast<const char*>(x.data());
    const auto n = static_cast<std::size_t>(std::int64_t(x.numel())) * sizeof(*x.data());
    to.push_back({xla::dtype_of<std::remove_cvref_t<decltype(*x.data())>>, x.dims(), {p, p + n}});
  } else std::apply([&](const auto&... each) { (add_arrays(to, each), ...); }, x);
}

/// What a program in StableHLO makes of some arguments on the processor's plugin: for each device
/// the arguments, and the results, whose types are those of `like`.
inline std::vector<std::vector<host_array>> run_text(
    const std::string& text, const std::vector<std::vector<host_array>>& arguments,
    const std::vector<host_array>& like) {
  using namespace xla::ext::pjrt;
  const auto type_of = [](const host_array& a) { return array_type{element_of(a.type), a.sizes}; };
  const client& on = client::of("CPU", {.devices = 4});
  const int devices = static_cast<int>(arguments.size());
  const auto program = on.compile(text, {.replicas = devices});
  std::vector<std::vector<buffer>> in(arguments.size());
  std::vector<std::vector<buffer*>> given(arguments.size());
  for (std::size_t d = 0; d < arguments.size(); ++d) {
    in[d].reserve(arguments[d].size());
    for (const host_array& a : arguments[d]) {
      in[d].emplace_back(on, a.bytes.data(), type_of(a), host_memory::copied, static_cast<int>(d));
      given[d].push_back(&in[d].back());
    }
  }
  std::vector<std::vector<host_array>> results(arguments.size());
  const auto out = program->run_all(given);
  for (std::size_t d = 0; d < out.size(); ++d) {
    REQUIRE(out[d].size() == like.size());
    for (std::size_t i = 0; i < like.size(); ++i) {
      REQUIRE(out[d][i].type() == type_of(like[i]));
      results[d].push_back(like[i]);
      on.read(out[d][i].get(), out[d][i].type(), results[d][i].bytes.data());
    }
  }
  return results;
}

/// Records for conformance_plugin.cmake what XLA has done with an op, in the file that
/// XLA_TEST_PLUGIN_OPS names. "<op>": it ran in a program. "<op> differentiable": it has a gradient
/// there. "<op> gradient": its gradient ran, or was shown to be refused. "<op> never_alone": it has
/// no program of its own.
inline void note_op(std::string_view op, std::string_view what = "") {
  static std::ofstream to = [] {
    const char* const path = std::getenv("XLA_TEST_PLUGIN_OPS");
    return path ? std::ofstream(path) : std::ofstream();
  }();
  if (to.is_open()) to << op << (what.empty() ? "" : " ") << what << std::endl;
}

/// Of the ops that a graph's results and writes need.
inline void note_ops(const xla::detail::graph_view& g) {
  std::vector<char> needed(static_cast<std::size_t>(g.count));
  const auto need = [&](int v) {
    if (v >= 0) needed[static_cast<std::size_t>(v)] = true;
  };
  for (int i = 0; i < g.result_count; ++i) need(g.results[i]);
  for (int i = 0; i < g.write_count; ++i) need(g.writes[i].value);
  bool goes_back = false;
  for (int v = g.count - 1; v >= 0; --v) {
    if (!needed[static_cast<std::size_t>(v)]) continue;
    const xla::detail::node& n = g.nodes[v];
    const int* const in = n.arity > xla::detail::few_inputs ? g.lists + n.in[0] : n.in;
    for (int k = 0; k < n.arity; ++k) need(in[k]);
    goes_back |= g.nodes[v].gradient;
  }
  for (int v = 0; v < g.count; ++v) {
    const xla::detail::node& n = g.nodes[v];
    if (!needed[static_cast<std::size_t>(v)]) continue;
    note_op(n.op->name);
    if (!n.op->differentiable) continue;
    if (!n.gradient) note_op(n.op->name, "differentiable");
    if (goes_back && n.needs_grad) note_op(n.op->name, "gradient");
  }
}
/// Of an op whose gradient is refused: a body that asks for it throws that sentence.
template <class F>
void note_refused_gradient(std::string_view op, F body) {
  CHECK_THROWS_WITH(body(), contains(std::string(op) + " has no gradient"));
  note_op(op, "gradient");
}
/// Of those of f's body, called with such arguments.
template <class F, class... A>
void note_ops_of(const F&, A&...) {
  note_ops(xla::detail::printed_program<F, xla::detail::argument_of<A&>...>::graph.view());
}

template <class T>
std::string far_apart(const std::vector<char>& got, const std::vector<char>& want,
                      double rounding) {
  const std::size_t n = want.size() / sizeof(T);
  std::vector<T> a(n), b(n);
  if (n == 0) return {};
  std::memcpy(a.data(), got.data(), want.size());
  std::memcpy(b.data(), want.data(), want.size());
  double largest = 1;
  for (const T& x : b)
    if (std::isfinite(static_cast<double>(x)))
      largest = std::max(largest, std::abs(static_cast<double>(x)));
  for (std::size_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (a[i] == b[i] || (x != x && y != y) || std::abs(x - y) <= rounding * largest) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(x) + " for " + std::to_string(y);
  }
  return {};
}
/// What differs by more than rounding, this many units in the last place of the largest element;
/// empty: nothing does. NaN equals NaN; whole numbers are equal.
inline std::string far_apart(const host_array& got, const host_array& want, double units) {
  switch (want.type) {
    case xla::dtype::float32: return far_apart<float>(got.bytes, want.bytes, units * 0x1p-24);
    case xla::dtype::float64: return far_apart<double>(got.bytes, want.bytes, units * 0x1p-53);
    case xla::dtype::int64: return far_apart<std::int64_t>(got.bytes, want.bytes, 0);
    default: return got.bytes == want.bytes ? "" : "other bytes";
  }
}

}  // namespace test
