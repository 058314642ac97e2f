// SPDX-License-Identifier: Apache-2.0
#pragma once

// Initial values of parameters, written in place: fill_uniform_() and fill_normal_(). nn/init.hpp
// has PyTorch's names.

#include <type_traits>

#include "xla/base/instance.hpp"
#include "xla/op/arithmetic.hpp"
#include "xla/op/cast.hpp"
#include "xla/op/index.hpp"
#include "xla/op/random.hpp"

namespace xla {

namespace detail {

/// During its lifetime, values written to a large parameter are deferred until they are read; they
/// may depend on its current value or not.
template <class T>
class set_out_scope {
 public:
  set_out_scope(const handle& p, bool reads) : before_(machine_of<T>::set_out(p, reads)) {}
  set_out_scope(const set_out_scope&) = delete;
  set_out_scope& operator=(const set_out_scope&) = delete;
  ~set_out_scope() { machine_of<T>::set_out(before_); }

 private:
  bool before_;
};

/// p = random numbers * factor + term, for any rank. It uses ops without gradients; otherwise a
/// program that makes a layer would instantiate the gradients of all ops that these lead to.
template <class Random, class T>
[[gnu::cold]] void fill_random(handle& p, T factor, T term) {
  const set_out_scope<T> unread(p, false);
  node n;
  n.op = &info_of<Random, T, T, op_parts::values>;
  n.type = dtype_of<T>;
  n.set_shape(p.dims());
  handle random, scaled, value;
  machine_of<T>::run(n, nullptr, 0, random);
  const handle by = constant(factor), to = constant(term);
  const handle* const product[] = {&random, &by};
  machine_of<T>::apply(unknown_caller, plain, info_of<op::mul, T, T, op_parts::values>, product, 2,
                       scaled);
  const handle* const sum[] = {&scaled, &to};
  machine_of<T>::apply(unknown_caller, plain, info_of<op::add, T, T, op_parts::values>, sum, 2,
                       value);
  machine_of<T>::rebind(p, value);
}
XLA_LIBRARY_INSTANCE(void fill_random<op::uniform>(handle&, float, float));
XLA_LIBRARY_INSTANCE(void fill_random<op::uniform>(handle&, double, double));
XLA_LIBRARY_INSTANCE(void fill_random<op::normal>(handle&, float, float));
XLA_LIBRARY_INSTANCE(void fill_random<op::normal>(handle&, double, double));

/// The same for any element type; in bfloat16 they are float's, rounded.
template <class Random, class T, int R>
void fill_any_type(Tensor<T, R>& p, T factor, T term) {
  if constexpr (std::is_floating_point_v<T>) {
    fill_random<Random>(p, factor, term);
  } else {
    Tensor<float, R> wide = cast<float>(p.detach());
    fill_random<Random>(wide, static_cast<float>(factor), static_cast<float>(term));
    p.copy_(cast<T>(wide));
  }
}

}  // namespace detail

/// Replaces x's elements by numbers drawn uniformly from [low, high), at run time.
template <class T, int R>
void fill_uniform_(Tensor<T, R>& x, std::type_identity_t<T> low = T(0),
                   std::type_identity_t<T> high = T(1)) {
  detail::fill_any_type<op::uniform>(x, static_cast<T>(high - low), low);
}

/// The same, normal with the given mean and standard deviation.
template <class T, int R>
void fill_normal_(Tensor<T, R>& x, std::type_identity_t<T> mean = T(0),
                  std::type_identity_t<T> std = T(1)) {
  detail::fill_any_type<op::normal>(x, std, mean);
}

/// Writes a number to all of a slice of the first axis, at run time: a row of a table.
template <class T, int R>
void fill_row_(Tensor<T, R>& x, Size row, std::type_identity_t<T> value) {
  const detail::set_out_scope<T> unread(x, true);
  x[row] = value;
}

}  // namespace xla
