// SPDX-License-Identifier: Apache-2.0
#pragma once

// Gradients through the call of a compiled function from outside: backward() runs the body's graph
// again, op by op, on tensors. The compiler differentiates a backward() inside the function.

#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/run/call/compiled_program.hpp"
#include "xla/run/plan/loop_steps.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/run/trace/machine.hpp"
#include "xla/transform/forward.hpp"

namespace xla::detail {

/// A slot of a program in one call.
struct slot_binding {
  ref<impl> value;
  cell* bound_cell = nullptr;
  handle* target = nullptr;  ///< a tensor argument, to which a write is stored
  double number = 0;
  ref<grad_meta> own_meta;  ///< the gradient record of the tensor that an argument becomes

  /// The record that collects its gradients; or nullptr.
  [[gnu::noinline]] grad_meta* meta() const {
    if (bound_cell && bound_cell->meta) return bound_cell->meta.get();
    return own_meta || !value ? own_meta.get() : value->meta.get();
  }
  bool requires_grad() const { return meta() && meta()->requires_grad; }
  /// The same after the call, when a parameter may be gone.
  const ref<grad_meta>& gradient_meta() const {
    return value && value->meta ? value->meta : own_meta;
  }
  /// The object that a slot stands for; nullptr for a number. A tensor that collects gradients is
  /// identified with its gradient record.
  const void* owner(bool collects) const {
    if (bound_cell)
      return bound_cell->meta ? static_cast<const void*>(bound_cell->meta.get()) : bound_cell;
    if (collects && value && value->meta && value->needs_grad) return value->meta.get();
    return target;
  }
};

/// A call of a compiled function whose results may need gradients: when backward() reaches one, the
/// body's graph is run again op by op, recorded like an eager or traced body.
template <class In>
class basic_taped_call final : public call_record {
 public:
  basic_taped_call(const compiled_program& p, bool winograd) : p_(p), winograd_(winograd) {}

  static void* operator new(std::size_t bytes) {
    return small_blocks<sizeof(basic_taped_call)>::take(bytes);
  }
  static void operator delete(void* p) noexcept { small_blocks<sizeof(basic_taped_call)>::give(p); }

  /// The call's arguments; the lists are empty afterwards.
  void keep(list<slot_binding>& slots, list<rng_state>& random) noexcept {
    slots_.swap(slots);
    random_.swap(random);
  }
  ref<impl> again(int result) override {
    if (results_.empty()) run();
    return results_[result];
  }
  impl* take_input() noexcept override {
    while (!slots_.empty()) {
      impl* const t = slots_.back().value.take();
      slots_.pop_back();
      if (t) return t;
    }
    return nullptr;
  }

 private:
  [[gnu::cold]] void run() {
    const dependent<In, device_switch> there(device_of(device_));
    list<shape> shapes;
    for (const slot_binding& s : slots_)
      shapes.push_back(s.value ? s.value->dims_shape() : shape{});
    symbols_ = evaluate_symbols(p_.source, shapes);
    const int results = p_.source.count.results, all = p_.forward_count - results;
    list<ref<impl>> values(all);
    int drawn = 0;
    list<int> loops;
    if constexpr (keeps_forward) loops = outermost_loops(all);
    for (int i = 0; i < all; ++i)
      if (keeps_forward && !loops.empty() && loops[i] >= 0) run_loop(i = loops[i], values);
      else if (!values[i]) values[i] = value(i, values, drawn);
    for (int i = 0; i < results; ++i) results_.push_back(values[p_.forward_result(i).in[0]]);
    slots_.clear();
  }

  /// Per node the outermost loop whose body begins with it, or -1; empty if there are no loops.
  [[gnu::cold]] list<int> outermost_loops(int all) const {
    list<int> loops;
    for (int i = 0; i < all; ++i) {
      if (!p_.forward[i].op->loops_steps) continue;
      if (loops.empty()) loops.assign(all, -1);
      loops[p_.forward[i].segment] = i;
    }
    return loops;
  }
  [[gnu::cold]] void run_loop(int loop, list<ref<impl>>& values) const {
    const auto replay = static_cast<const loop_info&>(*p_.forward[loop].op).maker->replay;
    if (!replay)
      throw runtime_error(
          "backward: a compiled function returned a value that a loop has made; without traced "
          "mode no gradient goes there: call backward() in its body");
    replay({p_.forward, p_.forward_lists, values.size(), loop, winograd_, symbols_, values});
  }
  [[gnu::cold]] ref<impl> value(int i, list<ref<impl>>& values, int& drawn) const {
    node n = p_.forward[i];
    n.set_shape(value_at(symbols_, n.dims_shape()));
    if (is<op::input>(n)) return slots_[n.attributes<op::input>().slot].value;
    if (is<op::scalar>(n)) return number(n, slots_[n.attributes<op::scalar>().slot].number);
    if (is<op::size>(n))
      return number(n, static_cast<double>(value_at(symbols_, n.attributes<op::size>().of)));
    if (is<op::constant>(n)) return run_constant(n);
    short_array<impl*, few_inputs> all(n.arity);
    impl** const in = all.get();
    bool any_needs = false;
    for (int k = 0; k < n.arity; ++k) {
      const int from = p_.forward_inputs(n)[k];
      in[k] = values[from].get();
      any_needs |= needs_gradient(p_.forward[from]);
    }
    if (is<op::detach>(n)) return cut(n, in[0]);
    if (n.op->impure) {
      const rng_state& s =
          random_[draws_again(n) ? drawn++ : int{n.attributes<op::drawing>().again}];
      n.attr = pack(op::drawing::drawn{s.seed, s.offset});
    } else {
      if (!winograd_) n.attr = without_winograd(*n.op, n.attr);
      n.attr.size = value_at(symbols_, n.attr.size);
    }
    const grad_scope as_recorded(needs_gradient(n) || !any_needs);
    ref<impl> t = new_op(n, in);
    const list<ref<impl>> others = other_results(i, *t, values);
    start_op(*t, others.data(), others.size());
    return t;
  }
  // For an op with several results, which are made together.
  [[gnu::cold]] list<ref<impl>> other_results(int i, impl& first, list<ref<impl>>& values) const {
    list<ref<impl>> all;
    impl* in[] = {&first};
    for (int k = i + 1; first.op->results > 1 && k < values.size(); ++k) {
      node n = p_.forward[k];
      if (!is<op::output>(n) || n.in[0] != i) continue;
      n.set_shape(value_at(symbols_, n.dims_shape()));
      all.push_back(values[k] = new_op(n, in));
    }
    return all;
  }
  static bool needs_gradient(const node& n) { return n.needs_grad || n.input_grad; }
  [[gnu::cold]] static ref<impl> number(node n, double value) {
    n.op = &builtin<op::constant>;
    n.set<op::constant>({value, static_cast<std::int64_t>(value)});
    return run_constant(n);
  }
  // A slot's final value collects gradients for the slot, other values for themselves.
  [[gnu::cold, gnu::noinline]] ref<impl> cut(const node& n, impl* from) const {
    ref<impl> t = new_detached(from);
    const int slot = n.attributes<op::detach>().slot;
    const bool collects = needs_gradient(n);
    if (collects && slot >= 0) t->meta = slots_[slot].gradient_meta();
    else if (collects) t->meta = ref<grad_meta>(new grad_meta);
    t->needs_grad = t->meta && t->meta->requires_grad;
    start_op(*t);
    return t;
  }

  const compiled_program& p_;
  const bool winograd_;
  const std::uint8_t device_ = this_thread.number;
  list<slot_binding> slots_;
  list<rng_state> random_;
  list<std::int64_t> symbols_;
  list<ref<impl>> results_;  // after they have been computed again
};
using taped_call = basic_taped_call<void>;

}  // namespace xla::detail
