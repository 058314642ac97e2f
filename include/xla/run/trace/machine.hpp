// SPDX-License-Identifier: Apache-2.0
#pragma once

// Defines the operations of tensors at run time: applying an op, reading, writing, gradients, each
// by the mode of the thread. tensor/machine.hpp declares them; modes that record and modes that do
// not part here.

#include <cstring>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/owned_array.hpp"
#include "xla/base/text.hpp"
#include "xla/op/op.hpp"
#include "xla/run/execute/eager.hpp"
#include "xla/run/execute/with_layouts.hpp"
#include "xla/run/state/deferred_init.hpp"
#include "xla/run/state/devices.hpp"
#include "xla/run/state/undo_log.hpp"
#include "xla/run/trace/lazy.hpp"
#include "xla/run/trace/to_device.hpp"
#include "xla/run/world/run_exchange.hpp"

namespace xla::detail {

/// A tensor of random numbers. It reserves its counters when it is recorded or executed.
template <class In = void>
[[gnu::cold]] ref<impl> run_random(node n, impl* const* inputs) {
  settle_draws<In>();
  const std::uint64_t counters = random_counters(n.dims_shape(), n.type);
  drawing numbers(counters);
  const auto [seed, offset] = numbers.from();
  n.attr = pack(op::drawing::drawn{seed, offset});
  ref<impl> t = new_op(n, inputs);
  start_op(*t);
  if (records_ops()) own_recording<In>().drew(*t, seed, offset, counters);
  numbers.used();
  return t;
}

/// Applies an op at run time, in the current mode.
template <class In = void>
ref<impl> run_op(const node& n, impl* const* inputs) {
  if (n.op->impure) return run_random<In>(n, inputs);
  ref<impl> t = new_op(n, inputs);
  start_op(*t);
  return t;
}
XLA_INSTANCE(ref<impl> run_op<void>(const node&, impl* const*));

template <class In = void>
ref<impl> new_leaf(dtype type, const shape& dims) {
  global_metrics<In>().create_tensor.add();
  node n;
  n.op = &builtin<op::input>;
  n.type = type;
  n.set_shape(dims);
  ref<impl> t = make_impl(n, nullptr);
  t->anywhere = false;
  return t;
}

template <class In = void>
ref<impl> run_upload(dtype type, const shape& dims, const void* data) {
  ref<impl> t = new_leaf<In>(type, dims);
  const memory_use use{data ? "from_blob" : "a parameter or buffer", &dims};
  t->data = ref<buffer>(buffer::make(bytes_of(*t), use));
  if (data && count(dims) > 0) std::memcpy(t->data->memory, data, bytes_of(*t));
  return t;
}
XLA_INSTANCE(ref<impl> run_upload<void>(dtype, const shape&, const void*));

template <class In = void>
ref<impl> run_constant(const node& n) {
  ref<impl> t = make_impl(n, nullptr);
  t->data = ref<buffer>(buffer::make(8));
  store_number(t->data->memory, n.type, n.attributes<op::constant>());
  return t;
}
XLA_INSTANCE(ref<impl> run_constant<void>(const node&));

template <class In = void>
ref<impl> new_detached(impl* t) {
  node n;
  n.op = &builtin<op::detach>;
  n.type = t->type;
  n.arity = 1;
  n.set_shape(t->dims_shape());
  return new_op(n, &t);
}

/// A new tensor of the same value, through which no gradient flows.
template <class In = void>
ref<impl> run_detach(impl* t) {
  ref<impl> same = new_detached(t);
  start_op(*same);
  return same;
}
XLA_INSTANCE(ref<impl> run_detach<void>(impl*));

/// The record that collects a tensor's gradient; gradient: the present one, or nullptr.
template <class In = void>
[[gnu::noinline]] ref<grad_meta> new_meta(bool requires_grad, impl* gradient) {
  ref<grad_meta> m(new grad_meta);
  m->grad = ref<impl>::share(gradient);
  m->requires_grad = requires_grad;
  m->of_tensor = true;
  return m;
}

/// A new leaf of the same value, with the given gradient or none. A tensor that is written while
/// others may hold its old value becomes such a leaf.
template <class In = void>
ref<impl> run_own_leaf(impl* value, bool requires_grad, impl* gradient) {
  ref<impl> t = new_detached<In>(value);
  t->anywhere = false;
  t->meta = new_meta<In>(requires_grad, gradient);
  t->needs_grad = requires_grad;
  start_op(*t);
  return t;
}
XLA_INSTANCE(ref<impl> run_own_leaf<void>(impl*, bool, impl*));

/// Whether the gradient of a handle may be written in place: it is a parameter's, or nothing else
/// refers to the value, neither a copy nor a graph.
inline bool owns_gradient(const handle& h) { return h.get_cell() || h.value()->unique(); }

/// Binds a cell to a new value, on the cell's device. Gradients are collected there and do not flow
/// further.
template <class In>
void run_write(cell& c, impl* value) {
  if (c.functional) {
    note_write<In>(&c, nullptr);
    c.current = ref<impl>::share(value);
    return;
  }
  const int device = c.current ? c.current->device : value->device;
  if (device != this_thread.number || device != value->device)
    return the_process.crossing.load()->write(c, value, device);
  ref<impl> t = new_detached(value);
  t->anywhere = false;
  t->meta = c.meta;
  t->needs_grad = c.meta && c.meta->requires_grad;
  if (impl* const old = c.value(); old && records_ops()) {
    const bool first = deferred_init::has(old->pending);
    change(*old,
           [&](impl& o) { t->previous = first || o.data ? ref<impl>::share(&o) : o.previous; });
    own_recording<In>().writes(c);
  }
  start_op(*t);
  note_write<In>(&c, nullptr);
  if (has_traced_mode && this_thread.sets_out) deferred_init::instance().add(t.get());
  c.current = std::move(t);
}
XLA_INSTANCE(void run_write<void>(cell&, impl*));

/// Collects gradients from a tensor with one element; see transform/backward.hpp for the rules.
template <class In = void>
void run_backward(impl* root);

/// Gradients for chosen inputs instead, into results; see xla::grad.
template <class In = void>
void run_gradients(impl* root, const handle* const* inputs, handle* const* results, int count,
                   bool create_graph);

template <class In>
[[gnu::noinline]] void basic_machine<In>::apply(caller loc, const node& spec, const op_info& op,
                                                const handle* const* inputs, int count,
                                                handle& result) {
  node n = spec;
  complete(loc, n, op, inputs, count);
  if (this_thread.notes_lines && !n.at.line()) [[unlikely]]
    n.at = loc;
  run(n, inputs, count, result);
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::run(const node& n, const handle* const* inputs, int count,
                                              handle& result) {
  whole_step<In>([&] {
    short_array<impl*, few_inputs> all(count);
    for (int i = 0; i < count; ++i) all.get()[i] = inputs[i]->value();
    result.adopt(run_op<In>(n, all.get()).take());
  });
}

template <class In>
[[gnu::cold]] void basic_machine<In>::apply_list(caller loc, const node& spec, const op_info& op,
                                                 const handle* inputs, int count, handle& result) {
  whole_step<In>([&] {
    const owned_array<const handle*> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) all.get()[i] = inputs + i;
    apply(loc, spec, op, all.get(), count, result);
  });
}

template <class In>
[[gnu::cold]] void basic_machine<In>::run_several(const node* n, const handle* const* inputs,
                                                  int count, handle* const* results,
                                                  int result_count) {
  whole_step<In>([&] {
    short_array<impl*, few_inputs> all(count);
    impl** const in = all.get();
    for (int i = 0; i < count; ++i) in[i] = inputs[i]->value();
    ref<impl> made[max_results];
    made[0] = new_op(n[0], in);
    impl* const first = made[0].get();
    for (int k = 1; k < result_count; ++k) made[k] = new_op(n[k], &first);
    start_op(*first, made + 1, result_count - 1);
    for (int k = 0; k < result_count; ++k) results[k]->adopt(made[k].take());
  });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::constant(handle& result, dtype type, double value,
                                                   std::int64_t exact) {
  node n;
  n.op = &builtin<op::constant>;
  n.type = type;
  n.set<op::constant>({value, exact});
  whole_step<In>([&] { result.adopt(run_constant<In>(n).take()); });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::upload(handle& result, dtype type, const shape& dims,
                                                 const void* data) {
  whole_step<In>([&] { result.adopt(run_upload<In>(type, dims, data).take()); });
}

template <class In>
void basic_machine<In>::borrow(handle& result, dtype type, const shape& dims,
                               const foreign_memory& memory) {
  ref<impl> t = new_leaf<In>(type, dims);
  t->data = ref<buffer>(buffer::borrow(memory, bytes_of<In>(*t)));
  result.adopt(t.take());
}

template <class In>
const void* basic_machine<In>::read(const handle& h) {
  impl* t = h.value();
  if (!t) throw runtime_error("xla: an empty tensor was read");
  return read_elements<In>(*t);
}

template <class In>
[[gnu::cold, gnu::noinline]] void basic_machine<In>::count_fallback(std::string_view function) {
  get_counter<In>(join({"fallback::", function})).add();
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::require_grad(handle& h, bool on) {
  impl* t = h.value();
  if (!t) throw runtime_error("requires_grad_: an empty tensor");
  if (t->arity > 0 && t->needs_grad && !t->meta)
    throw runtime_error(
        "requires_grad_: only a tensor that is not computed from others can collect "
        "gradients; call detach() first");
  if (!owns_gradient(h))
    return whole_step<In>(
        [&] { h.adopt(run_own_leaf<In>(t, on, t->meta ? t->meta->grad.get() : nullptr).take()); });
  change(*t, [on](impl& own) {
    if (!own.meta) own.meta = new_meta<In>(on, nullptr);
    own.anywhere = false;
    own.meta->requires_grad = on;
    own.needs_grad = on;
  });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::grad(const handle& h, handle& result) {
  impl* t = h.value();
  if (t && t->meta && t->meta->grad) result.adopt(ref<impl>(t->meta->grad).take());
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::set_grad(handle& h, const handle& gradient) {
  impl* t = h.value();
  if (!t || !t->meta)
    throw runtime_error("set_grad: the tensor collects no gradients; requires_grad_()");
  whole_step<In>([&] {
    if (!owns_gradient(h)) {
      h.adopt(run_own_leaf<In>(t, t->meta->requires_grad, nullptr).take());
      t = h.value();
    }
    note_write<In>(nullptr, t->meta.get());
    const dependent<In, device_switch> there(device_of(t->device));
    if (records_ops()) own_recording<In>().replaces(*t->meta);
    t->meta->grad = ref<impl>::share(gradient.value());
    if (t->meta->grad->device != t->device)
      t->meta->grad = run_to_device<In>(gradient.value(), t->device);
  });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::zero_grad(handle& h) {
  impl* t = h.value();
  if (!t || !t->meta) return;
  if (!owns_gradient(h))
    return whole_step<In>(
        [&] { h.adopt(run_own_leaf<In>(t, t->meta->requires_grad, nullptr).take()); });
  if (!t->meta->grad && !this_thread.in_pass)
    return;  // inside a body the write is recorded in any case
  if (records_ops())
    whole_step<In>([t] {
      const dependent<In, device_switch> there(device_of(t->device));
      own_recording<In>().replaces(*t->meta);
    });
  t->meta->grad.reset();
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::detach(const handle& h, handle& result) {
  impl* t = h.value();
  if (!t) return;
  if (!is_fraction(t->type)) result.adopt(ref<impl>::share(t).take());
  else whole_step<In>([&] { result.adopt(run_detach<In>(t).take()); });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::backward(const handle& loss) {
  whole_step<In>([&] { run_backward<In>(loss.value()); });
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::gradients(const handle& loss, const handle* const* inputs,
                                                    handle* const* results, int count,
                                                    bool create_graph) {
  whole_step<In>([&] { run_gradients<In>(loss.value(), inputs, results, count, create_graph); });
}

inline ref<cell> new_cell() {
  ref<cell> c(new cell);
  c->number = 1 + the_process.cells.fetch_add(1, std::memory_order_relaxed);
  return c;
}

/// Makes a handle's value a cell of its own, with identity.
template <class In = void>
[[gnu::cold]] void run_create_cell(handle& h, ref<impl> value, bool trainable) {
  ref<cell> c = new_cell();
  if (trainable) c->meta = ref<grad_meta>(new grad_meta);
  c->current = std::move(value);
  change(*c->current, [&](impl& t) {
    t.meta = c->meta;
    t.needs_grad = trainable;
    t.anywhere = false;
  });
  h.refer(c.take());
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::create_cell(handle& h, const handle& value,
                                                      bool trainable) {
  run_create_cell<In>(h, ref<impl>::share(value.value()), trainable);
}

template <class In>
[[gnu::cold]] void basic_machine<In>::create_cell(handle& h, dtype type, const shape& dims,
                                                  bool trainable) {
  for (int i = 0; i < dims.rank; ++i)
    if (dims[i] < 0)
      throw shape_error("xla: a parameter or buffer needs its sizes, 0 or more each");
  size_scope{nullptr, "xla"}.countable(dims);
  ref<impl> zeros = new_leaf<In>(type, dims);
  if (deferred_init::wanted(static_cast<std::int64_t>(bytes_of<In>(*zeros))))
    deferred_init::instance().add(zeros.get());
  else zeros->data = zero_elements<In>(*zeros);
  run_create_cell<In>(h, std::move(zeros), trainable);
}

template <class In>
[[gnu::cold]] void basic_machine<In>::create_like(handle& h, const handle& other, dtype type,
                                                  bool shaped, bool trainable) {
  const dependent<In, device_switch> there(device_of(other.device_number()));
  create_cell(h, type, shaped ? other.dims() : shape{}, trainable);
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::copy_cell(handle& h, const handle& from) {
  cell& other = *from.get_cell();
  ref<cell> c = new_cell();
  if (other.meta) {
    c->meta = ref<grad_meta>(new grad_meta);
    c->meta->requires_grad = other.meta->requires_grad;
  }
  run_write<In>(*c, other.value());
  h.refer(c.take());
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::assign_cell(handle& h, const handle& from) {
  cell& to = *h.get_cell();
  const cell& other = *from.get_cell();
  to.functional = false;
  whole_step<In>([&] { run_write<In>(to, other.value()); });
  to.assigned_from = other.number;
  if (!to.meta) return;
  zero_grad(h);
  const bool wanted = other.meta->requires_grad;
  if (to.meta->requires_grad != wanted) require_grad(h, wanted);
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::functional_cell(handle& h, const handle& from,
                                                          const handle& value) {
  copy_cell(h, from);
  h.get_cell()->functional = true;
  run_write<In>(*h.get_cell(), value.value());
}

template <class In>
bool basic_machine<In>::update(const handle& h, const node& n, const handle* const* parts,
                               int count) {
  impl* t = h.value();
  if (records_ops() || !t || t->is_pending() || !t->unique() || !t->data || !t->data->unique())
    return false;
  if (has_traced_mode && backend_runs_ops<In>()) return false;
  impl* inputs[3] = {t};
  bool wanted = t->needs_grad;
  for (int i = 0; i < count; ++i) {
    impl* part = inputs[i + 1] = parts[i]->value();
    if (!part || part == t) return false;
    wanted |= part->needs_grad && grad_enabled();
  }
  if (!t->meta && wanted) return false;
  for (int i = 1; i <= count; ++i) {
    make_ready<In>(*inputs[i]);
    wait_for<In>(*inputs[i]->data);
  }
  wait_for<In>(*t->data);
  node all = n;
  all.arity = 1 + count;
  const dependent<In, device_switch> there(device_of(t->device));
  t->data->forget_forms();
  const ref<impl> made = make_impl<In>(all, inputs);
  execute_now<In>(*made, t->data);
  note_call(*made);
  return true;
}

/// Whether `t` may be an input of a deferred initial value. Not if a pending graph computes it:
/// initialisation would then need a lock that fork() takes earlier. Nor if it is a deferred value
/// itself, because each would copy all before it.
[[gnu::cold, gnu::noinline]] inline bool may_be_written_over(const impl& t) {
  const pending_list* const list = t.pending.load(std::memory_order_acquire);
  if (!list) return t.data.get() != nullptr;
  const impl* const written = t.arity > 0 ? t.in[0].get() : nullptr;
  const bool again = written && written->arity > 0 && written->in[0]->pending.load() == list;
  return deferred_init::has(list) && !again;
}

template <class In>
[[gnu::cold]] bool basic_machine<In>::set_out(const handle& h, bool reads) {
  const cell* const own_cell = h.get_cell();
  const impl* const t = own_cell && !own_cell->functional ? own_cell->value() : nullptr;
  const bool large = t && deferred_init::wanted(static_cast<std::int64_t>(bytes_of<In>(*t)));
  const bool waits = large && !records_ops() && (!reads || may_be_written_over(*t));
  return std::exchange(this_thread.sets_out, waits);
}
template <class In>
[[gnu::cold]] void basic_machine<In>::set_out(bool as_before) {
  this_thread.sets_out = as_before;
}

template <class In>
precision basic_machine<In>::product_precision() {
  return this_thread.products;
}
template <class In>
int basic_machine<In>::world_size() {
  return world_now();
}
template <class In>
int basic_machine<In>::global_ordinal() {
  const auto* const r = replica_now();
  return r ? r->ordinal : 0;
}

template <class In>
[[gnu::noinline]] void basic_machine<In>::rebind(handle& h, const handle& value) {
  if (h.get_cell()) return whole_step<In>([&] { run_write<In>(*h.get_cell(), value.value()); });
  impl *const old = h.value(), *const next = value.value();
  const grad_meta* const own = old ? old->meta.get() : nullptr;
  const bool leaf = own && own->of_tensor && (own->requires_grad || !next->needs_grad);
  h.adopt(
      (leaf ? run_own_leaf<In>(next, own->requires_grad, own->grad.get()) : ref<impl>::share(next))
          .take());
}

XLA_INSTANCE(struct basic_machine<void>);

}  // namespace xla::detail
