// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <tuple>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/run/eager.hpp"
#include "xla/run/lazy.hpp"
#include "xla/run/segment_recorder.hpp"
#include "xla/tensor.hpp"

namespace xla::detail {

/// What a tensor's functions do at run time, in the mode of the moment.
template <class In = void>
ref<impl> run_op(node n, impl* const* inputs) {
  if (n.op->impure) {
    const rng_state s = generator::instance().take(random_counters(n.dims_shape(), n.type));
    n.attr = static_cast<std::int64_t>(s.seed);
    n.size = static_cast<extent>(s.offset);
  }
  ref<impl> t = make_impl(n, inputs);
  later<In, segment_recorder>::note(*t);
  if (!is_eager_mode()) {
    for (int i = 0; i < t->arity; ++i)
      if (was_let_go(*t->in[i])) make_ready(*t->in[i]);
    pending_list::instance().add(t.get());
    return t;
  }
  for (int i = 0; i < t->arity; ++i) {
    make_ready(*t->in[i]);
    wait_for(*t->in[i]->data);
  }
  execute_now(*t);
  drop_inputs(*t);
  return t;
}
XLA_INSTANCE(ref<impl> run_op<void>(node, impl* const*));

template <class In = void>
ref<impl> run_upload(dtype type, const shape& dims, const void* data) {
  static counter& created = get_counter("CreateXlaTensor");
  created.add();
  node n;
  n.op = &input_info;
  n.type = type;
  n.set_shape(dims);
  ref<impl> t = make_impl(n, nullptr);
  t->data = ref<buffer>(buffer::make(bytes_of(*t)));
  if (data && count(dims) > 0) std::memcpy(t->data->data, data, bytes_of(*t));
  return t;
}
XLA_INSTANCE(ref<impl> run_upload<void>(dtype, const shape&, const void*));

template <class In = void>
ref<impl> run_constant(const node& n) {
  ref<impl> t = make_impl(n, nullptr);
  t->data = ref<buffer>(buffer::make(8));
  store_number(t->data->data, n.type, n.value, n.attr);
  return t;
}
XLA_INSTANCE(ref<impl> run_constant<void>(const node&));

/// The same value as a tensor of its own, with no way back for gradients.
template <class In = void>
ref<impl> run_detach(impl* t) {
  node n;
  n.op = &detach_info;
  n.type = t->type;
  n.arity = 1;
  n.set_shape(t->dims);
  return run_op(n, &t);
}
XLA_INSTANCE(ref<impl> run_detach<void>(impl*));

/// Binds a cell to a new value. Gradients are collected there and flow no further.
template <class In = void>
void run_write(cell& c, impl* value) {
  ref<impl> t = run_detach(value);
  t->meta = c.meta;
  t->needs_grad = c.meta && c.meta->requires_grad;
  if (!t->data)
    if (impl* old = c.value()) t->previous = old->data ? ref<impl>::share(old) : old->previous;
  c.current = std::move(t);
}
XLA_INSTANCE(void run_write<void>(cell&, impl*));

/// Runs an op that replaces elements of t in t's own memory, in eager mode and where nobody else
/// can see it; false where somebody may, or where gradients will want the old elements.
template <class... Parts>
bool run_update(impl* t, node n, Parts*... parts) {
  if (!is_eager_mode() || !t || !((parts && parts != t) && ...) || !t->unique() || !t->data ||
      !t->data->unique())
    return false;
  if (!t->meta && (t->needs_grad || ((parts->needs_grad || ...) && grad_enabled()))) return false;
  ((make_ready(*parts), wait_for(*parts->data)), ...);
  wait_for(*t->data);
  n.arity = 1 + sizeof...(Parts);
  impl* inputs[] = {t, parts...};
  execute_now(*make_impl(n, inputs), t->data);
  return true;
}

/// Collects gradients from a tensor with one element; see transform/backward.hpp for the rules.
template <class Loss>
void run_backward(impl* root);

/// Gradients for chosen inputs instead, into results; see xla::grad.
template <class Loss>
void run_gradients(impl* root, const later<Loss, std::vector<impl*>>& inputs,
                   const later<Loss, std::vector<handle*>>& results, bool create_graph);

template <class T>
struct machine {
  template <class... H>
  static void apply(const node& n, handle& result, const H&... inputs) {
    impl* in[] = {inputs.value()..., nullptr};
    result.adopt(run_op(n, in).take());
  }
  static void constant(const node& n, handle& result) { result.adopt(run_constant(n).take()); }
  static void upload(handle& result, dtype type, const shape& dims, const void* data) {
    result.adopt(run_upload(type, dims, data).take());
  }
  static const void* read(const handle& h) {
    impl* t = h.value();
    if (!t) throw error("xla: an empty tensor was read");
    make_ready(*t);
    wait_for(*t->data);
    return t->data->data;
  }
  /// Something ran outside the graph: fallback::<function>.
  static void count_fallback(std::string_view function) {
    get_counter("fallback::" + std::string(function)).add();
  }
  static void require_grad(handle& h, bool on) {
    impl* t = h.value();
    if (!t) throw error("requires_grad_: an empty tensor");
    if (t->arity > 0 && t->needs_grad)
      throw error(
          "requires_grad_: only a tensor that is not computed from others can collect "
          "gradients; call detach() first");
    if (!t->meta) t->meta = ref<grad_meta>(new grad_meta);
    t->meta->requires_grad = on;
    t->needs_grad = on;
  }
  static void grad(const handle& h, handle& result) {
    impl* t = h.value();
    if (t && t->meta && t->meta->grad) result.adopt(ref<impl>(t->meta->grad).take());
  }
  static void set_grad(const handle& h, const handle& gradient) {
    impl* t = h.value();
    if (!t || !t->meta) throw error("set_grad: the tensor collects no gradients; requires_grad_()");
    t->meta->grad = ref<impl>::share(gradient.value());
  }
  static void zero_grad(const handle& h) {
    if (impl* t = h.value(); t && t->meta) t->meta->grad.reset();
  }
  static void detach(const handle& h, handle& result) {
    impl* t = h.value();
    if (!t) return;
    if (!t->needs_grad && !t->meta) result.adopt(ref<impl>::share(t).take());
    else result.adopt(run_detach(t).take());
  }
  static void backward(const handle& h) { run_backward<T>(h.value()); }
  template <class Options, class Results, class... X>
  static void gradients(const handle& loss, const Options& options, Results& results,
                        const X&... inputs) {
    std::apply(
        [&](auto&... r) {
          run_gradients<T>(loss.value(), {inputs.value()...}, {&r...}, options.create_graph);
        },
        results);
  }
  /// A place of its own that holds the value.
  static void place_cell(handle& h, ref<impl> value, bool trainable) {
    ref<cell> c(new cell);
    if (trainable) c->meta = ref<grad_meta>(new grad_meta);
    c->current = std::move(value);
    c->current->meta = c->meta;
    c->current->needs_grad = trainable;
    h.refer(c.take());
  }
  static void create_cell(handle& h, const shape& dims, bool trainable) {
    for (int i = 0; i < dims.rank; ++i)
      if (dims[i] < 0) throw shape_error("xla: a parameter or buffer needs its sizes");
    ref<impl> zeros = run_upload(dtype_of<T>, dims, nullptr);
    std::memset(zeros->data->data, 0, bytes_of(*zeros));
    place_cell(h, std::move(zeros), trainable);
  }
  /// A place of its own with the same value.
  static void copy_cell(handle& h, const handle& from) {
    cell& other = *from.place();
    ref<cell> c(new cell);
    if (other.meta) {
      c->meta = ref<grad_meta>(new grad_meta);
      c->meta->requires_grad = other.meta->requires_grad;
    }
    run_write(*c, other.value());
    h.refer(c.take());
  }
  template <class... H>
  static bool update(const handle& h, const node& n, const H&... parts) {
    return run_update(h.value(), n, parts.value()...);
  }
  /// Rebinds a handle to a new value, as the in-place forms do.
  static void rebind(handle& h, const handle& value) {
    if (h.place()) return run_write(*h.place(), value.value());
    impl* old = h.value();
    ref<impl> next = ref<impl>::share(value.value());
    if (old && old->meta) {
      next = run_detach(next.get());
      next->meta = old->meta;
      next->needs_grad = old->meta->requires_grad;
    }
    h.adopt(next.take());
  }
};

}  // namespace xla::detail
