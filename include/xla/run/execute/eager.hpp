// SPDX-License-Identifier: Apache-2.0
#pragma once

// Executes one op on tensors at once: the whole of eager mode below the tensors. Recording and
// gradients are run/trace/machine.hpp.

#include <memory>
#include <string>
#include <unordered_map>

#include "xla/base/dependent.hpp"
#include "xla/base/error.hpp"
#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/base/text.hpp"
#include "xla/graph/graph.hpp"
#include "xla/kernel/call.hpp"
#include "xla/run/state/generator.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/run/state/mode.hpp"
#include "xla/run/state/scope_watch.hpp"
#include "xla/run/world/world.hpp"
#include "xla/tensor/memory.hpp"

namespace xla::detail {

template <class In = void>
[[gnu::noinline]] inline std::size_t bytes_of(const impl& t) {
  return static_cast<std::size_t>(count(t.dims_shape()) * size_of(t.type));
}

/// The ops that were executed at given shapes. The first time counts as compilation, as in
/// PyTorch/XLA.
template <class In>
class basic_op_cache {
 public:
  static basic_op_cache& instance() { return made_once(this_thread.device->ops); }
  static constexpr fork_order order = fork_order::stores;
  void before_fork() noexcept { lock_.lock(); }
  void after_fork(bool) noexcept { lock_.unlock(); }
  /// Counts an execution, as xla::<op>; true the first time.
  bool count(const impl& t) {
    std::uint64_t h = t.op->id;
    if (!t.op->impure && !t.op->fields.empty()) h = mix(mix(h, t.attr.low), t.attr.high);
    h = mixed(h, t);
    for (int i = 0; i < t.arity; ++i) h = mixed(h, *t.in[i]);
    counter* executions = find(h);
    const bool first = !executions;
    if (first) add(h, *(executions = &get_counter(counter_name(t))));
    executions->add();
    return first;
  }
  void clear() {
    const std::lock_guard hold(lock_);
    seen_.clear();
  }

 private:
  static constexpr std::size_t most = 1 << 16;

  [[gnu::cold]] static std::string counter_name(const impl& t) {
    const bool half = precision_of(*t.op, t.attr) == precision::bfloat16;
    return join({"xla::", t.op->name, half ? "::bfloat16" : ""});
  }

  static std::uint64_t mixed(std::uint64_t h, const op_record& of) {
    h = mix(h, static_cast<std::uint64_t>(of.type) << 8 | static_cast<std::uint64_t>(of.rank));
    for (int i = 0; i < of.rank; ++i) h = mix(h, static_cast<std::uint64_t>(of.dims[i]));
    return h;
  }
  counter* find(std::uint64_t h) {
    const std::lock_guard hold(lock_);
    const auto at = seen_.find(h);
    return at == seen_.end() ? nullptr : at->second;
  }
  [[gnu::cold]] void add(std::uint64_t h, counter& executions) {
    const std::lock_guard hold(lock_);
    if (seen_.size() == most)
      seen_.clear();  // a program with ever new shapes continues without an entry
    seen_.emplace(h, &executions);
  }
  spin_lock lock_;
  dependent<In, std::unordered_map<std::uint64_t, counter*>> seen_;
};
using op_cache = basic_op_cache<void>;

/// A new tensor for an op of the given inputs: not yet executed.
template <class In = void>
ref<impl> make_impl(const op_record& n, impl* const* inputs) {
  ref<impl> t(new impl);
  static_cast<op_record&>(*t) = n;
  t->order = the_process.tensors.fetch_add(1, std::memory_order_relaxed);
  t->device = this_thread.number;
  if (n.arity > few_inputs) t->open_inputs();
  bool needs = false, here = true, anywhere = !n.op->impure;
  for (int i = 0; i < n.arity; ++i) {
    if (!inputs[i])
      throw runtime_error(
          std::string(n.op->name) +
          ": an undefined tensor was used: it was never assigned, or it is a gradient that "
          "backward() has not made, such as that of a tensor written after its loss was computed");
    t->in[i] = ref<impl>::share(inputs[i]);
    needs |= inputs[i]->needs_grad;
    here &= inputs[i]->anywhere || inputs[i]->device == t->device;
    anywhere &= inputs[i]->anywhere;
  }
  t->anywhere = anywhere;
  if (!here || n.op->moves) the_process.crossing.load()->find(*t);
  t->needs_grad = needs && n.op->differentiable && grad_enabled();
  return t;
}
XLA_INSTANCE(ref<impl> make_impl<void>(const op_record&, impl* const*));

/// The inputs are no longer needed when a tensor has its elements and either no gradient can flow
/// or gradients end there.
template <class In = void>
void drop_inputs(impl& t) {
  if ((t.needs_grad && !t.consumed && !t.meta) || (t.part && t.part->open)) return;
  t.release_inputs();
}
XLA_INSTANCE(void drop_inputs<void>(impl&));

/// Executes an op that prefers a layout, or whose inputs have orders of their own.
inline auto with_layouts(const impl& t) {
  auto run = t.op->with_layouts;
  if (t.op->kind == op_kind::output) return run;
  for (int i = 0; i < t.arity && !run; ++i)
    if (const memory_space* const space = t.in[i]->data->space) run = space->run;
  return run;
}

/// Executes one op whose inputs have their elements, together with its other results if it has
/// several and they have memory. One of these alone leaves the others out.
template <class In = void>
void execute_now(impl& t, ref<buffer> out = {}, const ref<impl>* others = nullptr,
                 int other_count = 0) {
  if (t.op->kind == op_kind::alias || (t.op->alone_is_input && world_now() == 1)) {
    const impl& from = *t.in[0];
    const memory_space* const space = from.data->space;
    t.data = space ? ref<buffer>(space->share(from, t)) : from.data;
    return;
  }
  if (const auto run = with_layouts(t); run && !out && t.op->results == 1) return run(t);
  dependent<In, metric_store>& counts = global_metrics<In>();
  if (dependent<In, op_cache>::instance().count(t)) counts.eager_compile_time.add(0);
  const timed sample(counts.eager_execute_time);
  const shape dims = t.dims_shape();
  if (!out) out = ref<buffer>(buffer::make(bytes_of(t), {t.op->name, &dims}));
  const impl& of = is<op::output>(t) ? *t.in[0] : t;
  short_array<const void*, few_inputs> for_in(of.arity);
  short_array<shape, few_inputs> for_shapes(of.arity);
  const void** const in = for_in.get();
  shape* const shapes = for_shapes.get();
  for (int i = 0; i < of.arity; ++i) {
    in[i] = elements_of(*of.in[i]);
    shapes[i] = of.in[i]->dims_shape();
  }
  void* outs[max_results] = {};
  outs[&of == &t ? 0 : t.attributes<op::output>().number] = out->memory;
  for (int k = 0; k < other_count; ++k)
    outs[others[k]->attributes<op::output>().number] = others[k]->data->memory;
  kernel_call call;
  call.out = out->memory;
  call.outs = outs;
  call.in = in;
  call.out_shape = &dims;
  call.in_shapes = shapes;
  call.attr = of.attr;
  call.at = of.at;
  if (t.op->impure) {
    const auto [seed, offset] = unpack<op::drawing::drawn>(t.attr);
    call.seed = seed;
    call.offset = offset;
  }
  of.op->run(call);
  note_in_scope(t, sample);
  t.data = std::move(out);
}
XLA_INSTANCE(void execute_now<void>(impl&, ref<buffer>, const ref<impl>*, int));

}  // namespace xla::detail
