// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients through a loop whose steps run one by one at run time. The gradient rules of one step
// run together, from the last step to the first, as in the reversed loop of a compiled function
// (transform/loop_backward.hpp). A function with a gradient rule of its own follows each step. To
// fix the order it takes the previous step's function as an input; the first one also takes the
// outside tensors that steps read. One more function precedes all steps, and joins the gradients of
// xs.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/loop/trees.hpp"
#include "xla/op/concat.hpp"
#include "xla/op/custom_gradient.hpp"
#include "xla/op/matmul.hpp"
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
    if (!s.needs[f.before + k]) continue;
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
    if (s.needs[k]) s.result[k] = s.grads[k];
    const handle& init = s.in[f.carries + k];
    if (s.needs[f.carries + k])
      s.result[f.carries + k] = minus_zeros<In>(init.element_type(), init.dims(), nullptr);
  }
}
/// The gradient rule before the first step: of initial values, and of xs from the gradients of
/// their slices. A gradient of all slices that one product has computed is its last result.
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
/// Slices without a gradient get zeros to which one may be added.
template <class In>
handle stack_slices(list<handle>& slices, const handle& xs) {
  shape rest;
  for (int i = 1; i < xs.dims().rank; ++i) rest.push(xs.dims()[i]);
  for (handle& h : slices)
    if (!h.defined()) h = minus_zeros<In>(xs.element_type(), rest, nullptr);
  return visit_floating_type<In>(xs.element_type(),
                                 [&]<class T>(T) { return stack_gradients<In, T>(slices); });
}
template <class In>
void pass_first(gradient_scope& s) {
  const auto f = unpack<step_function>(s.attr);
  const auto of = [&](int k) { return k < s.grad_count ? s.grads[k] : handle(); };
  for (int k = 0; k < f.carries; ++k)
    if (s.needs[k]) s.result[k] = of(k);
  for (int x = 0; x < f.others; ++x) {
    const handle& in = s.in[f.carries + x];
    if (!s.needs[f.carries + x]) continue;
    list<handle> slices;
    bool any = false;
    for (int t = 0; t < f.steps; ++t) {
      slices.push_back(of(f.carries + x * f.steps + t));
      any |= slices.back().defined();
    }
    handle& to = s.result[f.carries + x] = of(f.carries + f.others * f.steps + x);
    if (!any) continue;
    const handle stacked = stack_slices<In>(slices, in);
    to = to.defined() ? add_gradients<In>(in.element_type(), to, stacked) : stacked;
  }
}

/// Two ops of the tape: a product in a step with a matrix from outside of the loop, and the
/// function that stands between the matrix and all such products. The function's gradient is one
/// product over all steps, as in loop_backward. Each step's product passes it two values, its own
/// gradient and its other operand; the function collects them until the last step has run. If the
/// other operand is a slice of xs that nothing else reads, its gradient is one product as well, as
/// transform/batch_products.hpp makes it: the step's product passes its gradient a second time.
struct product_in_loop : op_info {
  const op_info* product = nullptr;
  int operand = 0;         ///< which one comes from outside
  bool of_slices = false;  ///< the function's second input is xs
};
inline void pass_product(gradient_scope& s) {
  const auto& op = static_cast<const product_in_loop&>(*s.out.value()->op);
  s.needs[op.operand] = false;
  if (op.of_slices) s.needs[0] = false;
  apply_gradient(*op.product, s);
  s.result[2] = s.grad;
  s.result[3] = s.in[1 - op.operand];
  if (op.of_slices) s.result[4] = s.grad;
}
template <class In>
handle join_of_steps(const list<handle>& all, int axis) {
  return visit_floating_type<In>(all[0].element_type(), [&]<class T>(T) -> handle {
    list<any_tensor<T>> parts;
    for (const handle& h : all) parts.push_back(as_any<T>(h));
    return concat_all(parts.data(), parts.size(), axis, unknown_caller);
  });
}
/// The gradient of xs from those of each step's product, where they are not the same as all that
/// the function has: step by step.
template <class In>
handle multiply_some(const gradient_scope& s, const op_info& product, int steps) {
  list<handle> slices;
  for (int t = 0; t < steps; ++t) {
    gradient_scope of(2);
    of.in[1] = s.in[0];
    of.needs[0] = 2 * steps + t < s.grad_count && s.grads[2 * steps + t].defined();
    of.attr = s.attr;
    if (of.needs[0]) {
      of.grad = s.grads[2 * steps + t];
      of.in[0] = s.grads[2 * t + 1];
      apply_gradient(product, of);
    }
    slices.push_back(of.result[0]);
  }
  return stack_slices<In>(slices, s.in[1]);
}
template <class In>
void multiply_deferred(gradient_scope& s) {
  const auto& op = static_cast<const product_in_loop&>(*s.out.value()->op);
  const int steps = op.of_slices ? static_cast<int>(s.in[1].dims()[0]) : s.grad_count / 2;
  list<handle> gradients, others;
  int slices = 0;
  for (int t = 0; t < steps && 2 * t + 1 < s.grad_count; ++t) {
    if (!s.grads[2 * t].defined()) continue;
    gradients.push_back(s.grads[2 * t]);
    others.push_back(s.grads[2 * t + 1]);
    slices += 2 * steps + t < s.grad_count && s.grads[2 * steps + t].defined();
  }
  gradient_scope of(2);
  of.in[op.operand] = s.in[0];
  of.in[1 - op.operand] = join_of_steps<In>(others, summed_axis(s.attr, op.operand));
  of.grad = join_of_steps<In>(gradients, 1 - op.operand);
  of.needs[op.operand] = true;
  of.needs[1 - op.operand] = slices == steps && op.of_slices;
  of.attr = s.attr;
  apply_gradient(*op.product, of);
  s.result[0] = of.result[op.operand];
  if (!op.of_slices) return;
  if (slices < steps) s.result[1] = multiply_some<In>(s, *op.product, steps);
  else
    s.result[1] = visit_floating_type<In>(s.in[1].element_type(), [&]<class T>(T) -> handle {
      return with_shape<op::reshape, dynamic_rank>(as_any<T>(of.result[0]), s.in[1].dims());
    });
}
/// The two ops for a product: the one that replaces it in a step, and the function.
template <class In>
std::pair<const product_in_loop*, const product_in_loop*> ops_of_product(const op_info& product,
                                                                         int operand,
                                                                         bool of_slices) {
  using ops = dependent<In, std::pair<product_in_loop, product_in_loop>>;
  static sys::mutex one_at_a_time;
  // Never destroyed: tensors with static storage refer to it.
  static auto& all = *new std::map<std::tuple<const op_info*, int, bool>, ops>;
  const std::lock_guard hold(one_at_a_time);
  const auto [at, made] = all.try_emplace({&product, operand, of_slices});
  auto& [in_step, function] = at->second;
  if (made) {
    in_step = {product, &product, operand, of_slices};
    in_step.gradient = &pass_product;
    function = {function_with(&multiply_deferred<In>, product.fields), &product, operand,
                of_slices};
  }
  return {&in_step, &function};
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
  /// defers: as loop_products, see keeps_steps().
  explicit step_tape(bool defers) : defers_(defers) {}
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
    began_ = step_began_ = the_process.tensors.load(std::memory_order_relaxed);
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
  void end_step(Carry& next, Y& y, std::int64_t step) {
    if (!on_) return;
    step_function f;
    f.carries = put(next);
    f.others = put(y);
    list<handle> yielded;
    yielded.swap(in_);
    if (wants_ && !after_first_) put_outside(yielded);
    if (function_.defined()) in_.push_back(function_);
    if (wants_ && defers_ && !this_thread.checkpoints) defer_products(yielded, step);
    after_first_ |= wants_;
    f.before = in_.size();
    for (const handle& h : yielded) in_.push_back(h);
    make(function_behind_step<In>, f);
    replace(next, 0);
    replace(y, f.carries);
    step_began_ = the_process.tensors.load(std::memory_order_relaxed);
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
  /// A product whose gradient is computed over all steps.
  struct deferred_product {
    ref<impl> matrix;  // from outside
    const op_info* op;
    packed_attributes attr;
    int operand;
    int slices;  // the xs of the other operand, if its gradient is computed likewise; else -1
    handle function;
    std::int64_t step;  // the last one that has it
  };

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
  bool outside(const impl& t) const { return t.meta || t.order < began_; }
  // The products that a step computed, in depth-first order from its first result.
  list<impl*> products_of_step(const list<handle>& yielded) const {
    struct entry {
      impl* t;
      bool done;
    };
    dependent<In, std::unordered_map<impl*, bool>> seen;
    list<entry> stack;
    list<impl*> products;
    for (int i = yielded.size() - 1; i >= 0; --i) stack.push_back({yielded[i].value(), false});
    while (!stack.empty()) {
      const auto [t, done] = stack.back();
      stack.pop_back();
      if (done) {
        products.push_back(t);
        continue;
      }
      if (!t->needs_grad || t->meta || t->order < step_began_ || !seen.emplace(t, true).second)
        continue;
      const bool product = is<op::matmul>(*t) && t->arity == 2 && t->rank == 2;
      if (product) stack.push_back({t, true});
      for (int i = operands_around(*t) - 1; i >= 0; --i) stack.push_back({t->in[i].get(), false});
    }
    return products;
  }
  // How many operands of t belong to this step; those that an inner loop's steps add do not.
  static int operands_around(const impl& t) {
    constexpr std::span<const attribute_field> of_steps = fields_of<step_function>;
    const int waits =
        t.op->fields.data() == of_steps.data() ? unpack<step_function>(t.attr).before : 0;
    return waits > 0 ? waits : t.arity;
  }
  void defer_products(const list<handle>& yielded, std::int64_t step) {
    for (impl* const t : products_of_step(yielded))
      for (int k : {0, 1}) {
        const impl &matrix = *t->in[k], &other = *t->in[1 - k];
        if (!matrix.needs_grad || !outside(matrix) || outside(other) || matrix.rank != 2 ||
            other.rank != 2)
          continue;
        deferred_product* const p = find_product(*t, k, step);
        if (!p) continue;
        p->step = step;
        if (t->is_pending()) compute(*t);
        defer(*t, *p);
        break;
      }
  }
  /// The entry that the first step added for this product; in the first step, a new one.
  deferred_product* find_product(const impl& t, int operand, std::int64_t step) {
    for (deferred_product& p : products_)
      if (p.step != step && p.matrix.get() == t.in[operand].get() && p.op == t.op &&
          p.attr == t.attr && p.operand == operand)
        return &p;
    if (after_first_) return nullptr;
    handle matrix;
    matrix.adopt(ref<impl>::share(t.in[operand].get()).take());
    const int slices = slices_of(t, operand);
    const handle all = slices < 0 ? handle() : all_slices(slices);
    const handle* const in[] = {&matrix, &all};
    const handle function = function_of<In>(*ops_of_product<In>(*t.op, operand, slices >= 0).second,
                                            t.attr, in, slices < 0 ? 1 : 2);
    in_.push_back(function);
    products_.push_back({t.in[operand], t.op, t.attr, operand, slices, function, step});
    return &products_.back();
  }
  // The number of the xs of which the other operand is a slice that nothing else reads; -1: none,
  // or a step's product may have other bits than one of all steps.
  int slices_of(const impl& t, int operand) const {
    const impl& x = *t.in[0];
    const bool slice = is<op::result>(x) && x.in[1].get() == first_.value() && x.unique();
    if (operand == 0 || !slice || !t.attributes<op::matmul>().of_steps) return -1;
    const int number = x.attributes<op::result>().number - carries_;
    return number < 0 ? -1 : number / steps_;
  }
  // What stands for these xs in a function: their gradient reaches that before the first step.
  handle all_slices(int number) const {
    const impl& first = *first_.value();
    handle xs;
    xs.adopt(ref<impl>::share(first.in[carries_ + number].get()).take());
    const int others = unpack<step_function>(first.attr).others;
    return visit_floating_type<In>(xs.element_type(), [&]<class T>(T) -> handle {
      return result_of_function<any_tensor<T>>(xs, first_, carries_ + others * steps_ + number);
    });
  }
  // Runs an op that waits, in a body that could not be recorded: defer() replaces it.
  static void compute(impl& t) {
    handle h;
    h.adopt(ref<impl>::share(&t).take());
    dependent<In, basic_machine<void>>::read(h);
  }
  static ref<impl> result_of(const handle& function, int k) {
    const handle h = visit_floating_type<In>(function.element_type(), [&]<class T>(T) -> handle {
      return result_of_function<any_tensor<T>>(function, function, k);
    });
    return ref<impl>::share(h.value());
  }
  void defer(impl& t, const deferred_product& p) const {
    const bool slices = p.slices >= 0 && slices_of(t, p.operand) == p.slices;
    const int step = static_cast<int>(p.step), count = slices ? 5 : 4;
    ref<impl> in[] = {
        t.in[0], t.in[1], result_of(p.function, 2 * step), result_of(p.function, 2 * step + 1), {}};
    if (slices) in[4] = result_of(p.function, 2 * steps_ + step);
    t.release_inputs();
    t.arity = count;
    t.open_inputs();
    for (int k = 0; k < count; ++k) t.in[k] = std::move(in[k]);
    t.op = ops_of_product<In>(*p.op, p.operand, slices).first;
  }
  // Makes one function, after the previous one; none if nothing requires a gradient.
  void make(const op_info& info, const step_function& f) {
    list<const handle*> all;
    for (const handle& h : in_) all.push_back(&h);
    if (wants_) function_ = function_of<In>(info, pack(f), all.data(), all.size());
    in_.clear();
    wants_ = false;
  }
  // The step's arguments do not count as outside tensors, even those without gradients.
  template <class X>
  void replace(X& x, int number) const {
    each_tensor(x, [&, k = number](auto& t) mutable {
      using T = std::remove_cvref_t<decltype(t)>;
      if (t.requires_grad()) t = result_of_function<T>(t.detach(), function_, k);
      else if (defers_ && outside(*t.value())) t = t.detach();
      ++k;
    });
  }

  bool defers_, on_ = false, wants_ = false, after_first_ = false;
  std::uint64_t began_ = 0;  // tensors with lower numbers are from before the loop
  std::uint64_t step_began_ = 0;
  int carries_ = 0, steps_ = 0;
  handle first_, function_;
  list<handle> in_;
  list<deferred_product> products_;
};

/// Replaces step_tape in constant evaluation, where steps are recorded as ordinary nodes.
struct no_tape {
  struct running {
    constexpr explicit running(const no_tape&) {}
    constexpr void next() const {}
  };
  constexpr void end_step(auto&, auto&, std::int64_t) const {}
  constexpr void end(auto&, const auto&) const {}
};

}  // namespace xla::detail
