// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "support/engines.hpp"
#include "support/reference.hpp"
#include "support/ways.hpp"
#include "xla/compile.hpp"
#include "xla/module.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/passes.hpp"
#include "xla/run/trace/sync.hpp"
#include "xla/transform/passes.hpp"

namespace test {

/// A parameter that starts with x's value.
template <class T, int R>
xla::Parameter<T, R> parameter(const xla::Tensor<T, R>& x) {
  auto p = xla::Parameter<T, R>::like(x);
  p.copy_(x);
  return p;
}

/// The values of some tensors at one moment, as bytes.
class snapshot {
 public:
  explicit snapshot(bool gradients = true) : gradients_(gradients) {}
  /// Every tensor in x: also in tuples and described structs. Of parameters the gradients as well.
  /// An x that has none, as a loss function, adds nothing.
  template <class X>
  void add(const X& x) {
    if constexpr (xla::detail::tree_leaf<X> || xla::detail::is_tuple<X> ||
                  xla::detail::is_array<X> || xla::detail::described<X>)
      xla::detail::visit_tree(x, [this](auto& leaf, const auto&) { this->add_leaf(leaf); }, {});
    else static_assert(std::is_empty_v<X>, "this test would compare nothing of it");
  }
  /// The first difference in words; empty when all bits are the same. NaN equals NaN. Two without a
  /// tensor are different: they show nothing.
  std::string difference(const snapshot& o) const {
    if (all_.empty()) return "no tensors to compare";
    if (all_.size() != o.all_.size()) return "another number of tensors";
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (auto d = difference(all_[i], o.all_[i]); !d.empty())
        return "tensor " + std::to_string(i) + ": " + d;
    return {};
  }
  void append(const snapshot& o) { all_.insert(all_.end(), o.all_.begin(), o.all_.end()); }
  std::size_t size() const { return all_.size(); }

 private:
  struct value {
    xla::dtype type;
    sizes_t sizes;
    std::vector<char> bytes;
  };

  template <class L>
  void add_leaf(const L& leaf) {
    if constexpr (xla::detail::is_state<L>) {
      add_tensor(leaf);
      if (const auto g = leaf.grad(); gradients_ && g.defined()) add_tensor(g);
    } else if constexpr (xla::detail::is_tensor<L>) {
      if (leaf.defined()) add_tensor(leaf);
    }
  }
  template <class T, int R>
  void add_tensor(const xla::Tensor<T, R>& t) {
    const char* p = reinterpret_cast<const char*>(t.data());
    const auto n = static_cast<std::size_t>(std::int64_t(t.numel())) * sizeof(T);
    all_.push_back({xla::dtype_of<T>, t.sizes(), {p, p + n}});
  }
  template <class T>
  static std::string first_different(const value& a, const value& b) {
    for (std::size_t i = 0; i * sizeof(T) < a.bytes.size(); ++i) {
      T x, y;
      std::memcpy(&x, a.bytes.data() + i * sizeof(T), sizeof(T));
      std::memcpy(&y, b.bytes.data() + i * sizeof(T), sizeof(T));
      if (same_number(x, y)) continue;
      std::ostringstream s;
      s.precision(17);
      s << "element " << i << ": " << +x << " and " << +y;
      return s.str();
    }
    return {};
  }
  static std::string difference(const value& a, const value& b) {
    if (a.type != b.type) return "another element type";
    if (a.sizes != b.sizes) return "another shape";
    if (a.type == xla::dtype::float32) return first_different<float>(a, b);
    if (a.type == xla::dtype::float64) return first_different<double>(a, b);
    return first_different<unsigned char>(a, b);
  }

  std::vector<value> all_;
  bool gradients_;
};

enum class mode { eager, traced, compiled };

/// The results of a call of g on copies of x, and what it left in them.
template <class G, class... X>
snapshot call_on_copies(G&& g, const X&... x) {
  std::tuple<X...> copies(x...);
  xla::manual_seed(7);
  snapshot s;
  s.add(std::apply([&](auto&... c) { return g(c...); }, copies));
  std::apply([&](auto&... c) { (s.add(c), ...); }, copies);
  return s;
}

/// The same of f in a mode; compiled with the passes Wanted, and then once more by the interpreter.
template <mode M, xla::Passes Wanted = xla::Passes{}, class F, class... X>
snapshot run_mode(F f, const X&... x) {
  const xla::eager_mode_guard as_told(M == mode::eager);
  if constexpr (M == mode::compiled) {
    auto g = xla::compile<Wanted>(f);
    const snapshot s = call_on_copies(g, x...);
    INFO("called again, in memory that has been used");
    CHECK(call_on_copies(g, x...).difference(s) == "");
    const on_engine op_by_op("interpreter");
    INFO("called again, on the interpreter");
    CHECK(call_on_copies(g, x...).difference(s) == "");
    return s;
  } else {
    return call_on_copies(
        [&](auto&... c) {
          auto result = f(c...);
          if constexpr (M == mode::traced) xla::sync();
          return result;
        },
        x...);
  }
}

/// Passes that traced graphs do without, "-share", while it lives.
struct traced_without {
  explicit traced_without(const std::string& list) { xla::set_passes(list); }
  ~traced_without() { xla::set_passes(""); }
  traced_without(const traced_without&) = delete;
};

/// f, a function without captures that returns a tensor or a tuple of tensors, gives the same bits
/// in every mode and leaves the same in its arguments (parameters: also their gradients).
template <xla::Passes Wanted = xla::Passes{}, class F, class... X>
void check_modes(F f, const X&... x) {
  const snapshot eager = run_mode<mode::eager>(f, x...);
  const std::string traced = run_mode<mode::traced>(f, x...).difference(eager);
  {
    INFO("traced against eager");
    CHECK(traced == "");
  }
  ops_used ops;
  const std::string compiled = (run_mode<mode::compiled, Wanted>(f, x...)).difference(eager);
  {
    INFO("compiled against eager");
    CHECK(compiled == "");
  }
  if (traced.empty() && compiled.empty()) ops.note();
}

}  // namespace test
