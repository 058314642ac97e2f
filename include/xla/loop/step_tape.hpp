// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients through a loop whose steps run one by one at run time. The gradient rules of one step
// run together, from the last step to the first, as in the reversed loop of a compiled function
// (transform/loop_backward.hpp). A function with a gradient rule of its own follows each step. To
// fix the order it takes the previous step's function as an input; the first one also takes the
// outside tensors that steps read. One more function precedes all steps, and joins the gradients of
// xs.

#include <cstdint>
#include <tuple>
#include <unordered_map>

#include "xla/base/list.hpp"
#include "xla/loop/trees.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/custom_gradient.hpp"
#include "xla/run/state/context.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/transform/loop_backward.hpp"

namespace xla::detail {

/// The attributes of such a function. All numbers count tensors.
struct step_function {
  int before = 0;  ///< inputs that only fix the order
  int carries = 0;
  int others = 0;  ///< xs, or all y of a step
  int steps = 0;   ///< of the loop, for the function before it
  XLA_ATTRIBUTES(before, carries, others, steps)
};

/// The gradient rule after a step, for the values that it passes on. Unused carries get zeros, as
/// in a recorded loop.
template <class In>
void pass_step(gradient_scope& s) {
  const auto f = unpack<step_function>(s.attr);
  for (int k = 0; k < f.carries + f.others; ++k) {
    const handle& in = s.in[f.before + k];
    if (!s.wants[f.before + k]) continue;
    handle& to = s.result[f.before + k];
    if (k < s.grad_count && s.grads[k].defined()) to = s.grads[k];
    else if (k < f.carries) to = minus_zeros<In>(in.element_type(), in.dims(), nullptr);
  }
}
/// The gradient rule of the last carries. Initial values get zeros, to which a step may add.
template <class In>
void pass_last(gradient_scope& s) {
  const auto f = unpack<step_function>(s.attr);
  for (int k = 0; k < f.carries && k < s.grad_count; ++k) {
    if (!s.grads[k].defined()) continue;
    if (s.wants[k]) s.result[k] = s.grads[k];
    const handle& init = s.in[f.carries + k];
    if (s.wants[f.carries + k])
      s.result[f.carries + k] = minus_zeros<In>(init.element_type(), init.dims(), nullptr);
  }
}
/// The gradient rule before the first step: of initial values, and of xs from the gradients of
/// their slices.
template <class In, class T>
handle stack_gradients(const list<handle>& slices) {
  list<any_tensor<T>> parts;
  for (const handle& h : slices) {
    shape s;
    s.push(1);
    for (int i = 0; i < h.dims().rank; ++i) s.push(h.dims()[i]);
    parts.push_back(with_shape<op::reshape, dynamic_rank>(as_any<T>(h), s));
  }
  return concat_all(parts.data(), parts.size(), 0, unknown_caller);
}
template <class In>
void pass_first(gradient_scope& s) {
  const auto f = unpack<step_function>(s.attr);
  const auto of = [&](int k) { return k < s.grad_count ? s.grads[k] : handle(); };
  for (int k = 0; k < f.carries; ++k)
    if (s.wants[k]) s.result[k] = of(k);
  for (int x = 0; x < f.others; ++x) {
    const handle& in = s.in[f.carries + x];
    if (!s.wants[f.carries + x]) continue;
    shape rest;
    for (int i = 1; i < in.dims().rank; ++i) rest.push(in.dims()[i]);
    list<handle> slices;
    bool any = false;
    for (int t = 0; t < f.steps; ++t) {
      slices.push_back(of(f.carries + x * f.steps + t));
      any |= slices.back().defined();
    }
    for (handle& h : slices)
      if (!h.defined()) h = minus_zeros<In>(in.element_type(), rest, nullptr);
    if (!any) continue;
    const dtype type = in.element_type();
    handle& to = s.result[f.carries + x];
    if (type == dtype::bfloat16) to = stack_gradients<In, dependent<In, bfloat16>>(slices);
    else if (type == dtype::float32) to = stack_gradients<In, dependent<In, float>>(slices);
    else to = stack_gradients<In, dependent<In, double>>(slices);
  }
}

template <class In>
inline constexpr op_info function_behind_step =
    function_with(&pass_step<In>, fields_of<step_function>);
template <class In>
inline constexpr op_info function_behind_steps =
    function_with(&pass_last<In>, fields_of<step_function>);
template <class In>
inline constexpr op_info function_before_steps =
    function_with(&pass_first<In>, fields_of<step_function>);

/// Makes these functions while a loop's steps run.
template <class In>
class step_tape {
 public:
  /// While it exists, a backward() in a step stops at the step's arguments.
  class running {
   public:
    explicit running(const step_tape& of) : of_(of) { loop_.before = of.first_.value(); }
    void next() { loop_.latest = of_.function_.value(); }

   private:
    const step_tape& of_;
    running_loop loop_;
  };
  /// Before the first step: wraps its arguments, made from init.
  template <class Carry, class X>
  void begin(Carry& init, const X& xs, std::int64_t steps) {
    if (!grad_enabled()) return;
    on_ = true;
    step_function f{.steps = static_cast<int>(steps)};
    f.carries = carries_ = put(init);
    f.others = put(xs);
    steps_ = f.steps;
    make(function_before_steps<In>, f);
    first_ = function_;
    began_ = the_process.tensors.load(std::memory_order_relaxed);
    replace(init, 0);
  }
  /// The xs from which slices are taken. They carry no gradient; slice() connects each slice
  /// instead.
  template <class T>
  T without_gradient(const T& xs) const {
    return on_ && xs.requires_grad() ? xs.detach() : xs;
  }
  /// Slice number `step` of the x with that number.
  template <class T, class All>
  T slice(const T& x, const All& all, int number, std::int64_t step) const {
    if (!on_ || !all.requires_grad()) return x;
    return result_of_function<T>(x, first_, carries_ + number * steps_ + static_cast<int>(step));
  }
  /// After a step: the values that it passes on, and y, become results of one function.
  template <class Carry, class Y>
  void end_step(Carry& next, Y& y) {
    if (!on_) return;
    step_function f;
    f.carries = put(next);
    f.others = put(y);
    list<handle> yielded;
    yielded.swap(in_);
    if (wants_ && !behind_first_) put_outside(yielded);
    behind_first_ |= wants_;
    if (function_.defined()) in_.push_back(function_);
    f.before = in_.size();
    for (const handle& h : yielded) in_.push_back(h);
    make(function_behind_step<In>, f);
    replace(next, 0);
    replace(y, f.carries);
  }
  /// After all steps: the results require a gradient if the first step's arguments do, whether or
  /// not a step uses them, because the number of steps must not matter.
  template <class Carry>
  void end(Carry& last, const Carry& init) {
    if (!on_) return;
    list<char> wanted;
    bool any = false;
    each_tensor(init, [&](const auto& t) {
      wanted.push_back(t.requires_grad());
      any |= t.requires_grad();
    });
    if (!any) return;
    const step_function f{.carries = put(last)};
    put(init);
    each_tensor(last, [&, k = 0](const auto& t) mutable { wanted[k++] |= t.requires_grad(); });
    make(function_behind_steps<In>, f);
    each_tensor(last, [&, k = 0](auto& t) mutable {
      using T = std::remove_cvref_t<decltype(t)>;
      if (wanted[k]) t = result_of_function<T>(t.detach(), function_, k);
      ++k;
    });
  }

 private:
  template <class X>
  int put(const X& x) {
    const int before = in_.size();
    each_tensor(x, [this](const auto& t) {
      wants_ |= t.requires_grad();
      in_.push_back(t);
    });
    return in_.size() - before;
  }
  // The outside tensors that a step reads, in the order in which backward() reaches them.
  void put_outside(const list<handle>& yielded) {
    dependent<In, std::unordered_map<impl*, bool>> seen;
    list<impl*> stack;
    for (int i = yielded.size() - 1; i >= 0; --i) stack.push_back(yielded[i].value());
    while (!stack.empty()) {
      impl* const t = stack.back();
      stack.pop_back();
      if (!t->needs_grad || !seen.emplace(t, true).second || t == first_.value()) continue;
      if (t->meta || t->order < began_) {
        in_.emplace_back().adopt(ref<impl>::share(t).take());
        continue;
      }
      for (int i = t->arity - 1; i >= 0; --i) stack.push_back(t->in[i].get());
    }
  }
  // Makes one function, after the previous one; none if nothing requires a gradient.
  void make(const op_info& info, const step_function& f) {
    list<const handle*> all;
    for (const handle& h : in_) all.push_back(&h);
    if (wants_) function_ = function_of<In>(info, pack(f), all.data(), all.size());
    in_.clear();
    wants_ = false;
  }
  template <class X>
  void replace(X& x, int number) const {
    each_tensor(x, [&, k = number](auto& t) mutable {
      using T = std::remove_cvref_t<decltype(t)>;
      if (t.requires_grad()) t = result_of_function<T>(t.detach(), function_, k);
      ++k;
    });
  }

  bool on_ = false, wants_ = false, behind_first_ = false;
  std::uint64_t began_ = 0;  // tensors with lower numbers are from before the loop
  int carries_ = 0, steps_ = 0;
  handle first_, function_;
  list<handle> in_;
};

/// Replaces step_tape in constant evaluation, where steps are recorded as ordinary nodes.
struct no_tape {
  struct running {
    constexpr explicit running(const no_tape&) {}
    constexpr void next() const {}
  };
  constexpr void end_step(auto&, auto&) const {}
  constexpr void end(auto&, const auto&) const {}
};

}  // namespace xla::detail
