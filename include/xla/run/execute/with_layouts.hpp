// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keeps the memory order of an op's inputs in eager mode, as far as the pass layouts would.
// transform/layouts.hpp does it for compiled and traced graphs.

#include <memory>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/op/layout_rule.hpp"
#include "xla/run/execute/eager.hpp"
#include "xla/run/state/metric_store.hpp"
#include "xla/tensor/working_memory.hpp"

namespace xla::detail {

template <class In = void>
void* ordered_to_host(const impl& t);
template <class In = void>
buffer* share_ordered(const impl& t, const impl& as);

/// A buffer of the library's own memory whose elements are in another order.
template <class In>
inline constexpr memory_space ordered_memory{
    .release = [](void* owner) { static_cast<buffer*>(owner)->release(); },
    .to_host = &ordered_to_host<In>,
    .share = &share_ordered<In>,
    .run = &run_with_layouts<In>,
};

/// The same memory under an order.
template <class In = void>
ref<buffer> in_other_order(ref<buffer> memory, const shape& dims, layout order) {
  if (same_layout(dims, order, {})) return memory;
  void* const data = memory->memory;
  const std::size_t bytes = memory->bytes;
  return ref<buffer>(buffer::borrow({&ordered_memory<In>, memory.take(), data, order}, bytes));
}

/// Copies elements from one order to another.
template <class In = void>
void copy_in_order(dtype type, const shape& dims, layout from, layout to, const void* in,
                   void* out) {
  get_counter<In>("layout::copy").add();
  op_record n;
  n.type = type;
  copy_into<In>(n, dims.rank, from, to);
  const shape source = in_memory(dims, from), target = in_memory(dims, to);
  kernel_call call;
  call.out = out;
  call.in = &in;
  call.out_shape = &target;
  call.in_shapes = &source;
  call.attr = n.attr;
  n.op->run(call);
}

template <class In>
void* ordered_to_host(const impl& t) {
  buffer& b = *t.data;
  const shape dims = t.dims_shape();
  void* copy =
      heap_allocate(bytes_of<In>(t), buffer_cache::alignment, {"a tensor that is read", &dims});
  try {
    copy_in_order<In>(t.type, dims, b.order, {}, b.memory, copy);
  } catch (...) {
    heap_free(copy, buffer_cache::alignment);
    throw;
  }
  void* first = nullptr;
  if (b.host_copy.compare_exchange_strong(first, copy)) return copy;
  heap_free(copy, buffer_cache::alignment);  // another thread was first
  return first;
}

template <class In>
buffer* share_ordered(const impl& t, const impl& as) {
  buffer* const b = t.data.get();
  const shape from = t.dims_shape(), to = as.dims_shape();
  layout read = b->order, result = read;
  if (!(from == to)) reshape_layouts(from, to, read, result);
  if (from == to) {
    b->retain();
    return b;
  }
  if (read == b->order || same_layout(from, read, b->order))
    return in_other_order<In>(ref<buffer>::share(static_cast<buffer*>(b->owner)), to, result)
        .take();
  ref<buffer> copy(buffer::make(bytes_of<In>(as), {as.op->name, &to}));
  copy_in_order<In>(t.type, from, b->order, read, b->memory, copy->memory);
  return in_other_order<In>(std::move(copy), to, result).take();
}

/// The inputs of an op, as it reads them.
template <class In>
class basic_ordered_inputs {
 public:
  explicit basic_ordered_inputs(const impl& t) {
    for (int k = 0; k < t.arity; ++k) {
      const impl& input = *t.in[k];
      const memory_space* const space = input.data->space;
      tensors_.push_back(&input);
      laid_out_.push_back({&input, space && space->run ? input.data->order : layout{}});
    }
    orders_.resize(count() + 1);
  }
  int count() const { return laid_out_.size(); }
  /// Whether the result is the first input's memory.
  bool choose(op_record& n) {
    return layout_rule(n, laid_out_.data(), count(), orders_.data())
        .choose(dependent<In, natural_order>());
  }
  layout result() const { return orders_[count()]; }
  const impl& first() const { return *tensors_[0]; }

  /// Finds the elements, and copies them if their order differs.
  void bring(const op_record& n) {
    copies_ = std::make_unique<working_memory[]>(static_cast<std::size_t>(count()));
    for (int k = 0; k < count(); ++k) {
      const impl& t = *tensors_[k];
      const layout to = orders_[k];
      layout from = laid_out_[k].order;
      shape dims;
      if (n.op->accepts == axes_rule::broadcast && t.rank > 0 && !to.is_row_major() &&
          t.rank < n.rank) {
        for (int i = t.rank; i < n.rank; ++i) dims.push(1);
        from = {};
      }
      for (int i = 0; i < t.rank; ++i) dims.push(t.dims[i]);
      elements.push_back(find(k, t, dims, from, t.rank == 0 ? layout{} : to));
      shapes.push_back(in_memory(dims, t.rank == 0 ? layout{} : to));
    }
  }
  /// The buffer that may cache the packed form of an op's input.
  buffer* cache_owner(int prepared) const {
    if (prepared < 0) return nullptr;
    buffer* const b = tensors_[prepared]->data.get();
    return b->space || b->memory != elements[prepared] ? nullptr : b;
  }
  list<const void*> elements;
  list<shape> shapes;  ///< in memory order

 private:
  const void* find(int k, const impl& t, const shape& dims, layout from, layout to) {
    if (to.is_row_major() || from.is_row_major()) {
      const void* const host_copy = elements_of(t);
      if (same_layout(dims, to, {})) return host_copy;
      return copied(k, t, dims, {}, to, host_copy);
    }
    if (same_layout(dims, from, to)) return t.data->memory;
    return copied(k, t, dims, from, to, t.data->memory);
  }
  const void* copied(int k, const impl& t, const shape& dims, layout from, layout to,
                     const void* elements) {
    void* const copy = copies_[static_cast<std::size_t>(k)].take(bytes_of<In>(t));
    copy_in_order<In>(t.type, dims, from, to, elements, copy);
    return copy;
  }

  list<const impl*> tensors_;
  list<laid_out> laid_out_;
  list<layout> orders_;
  std::unique_ptr<working_memory[]> copies_;
};

template <class In>
void run_with_layouts(impl& t) {
  op_record n = t;
  const shape dims = t.dims_shape();
  basic_ordered_inputs<In> inputs(t);
  if (inputs.choose(n)) {
    buffer* const memory = static_cast<buffer*>(inputs.first().data->owner);
    t.data = in_other_order<In>(ref<buffer>::share(memory), dims, inputs.result());
    return;
  }
  dependent<In, metric_store>& counts = global_metrics<In>();
  if (dependent<In, op_cache>::instance().count(t)) counts.eager_compile_time.add(0);
  const timed sample(counts.eager_execute_time);
  ref<buffer> out(buffer::make(bytes_of<In>(t), {t.op->name, &dims}));
  inputs.bring(n);
  const shape made = in_memory(dims, inputs.result());
  void* const outs[max_results] = {out->memory};
  kernel_call call;
  call.out = out->memory;
  call.outs = outs;
  call.in = inputs.elements.data();
  call.out_shape = &made;
  call.in_shapes = inputs.shapes.data();
  call.attr = n.attr;
  call.at = t.at;
  call.cache_owner = inputs.cache_owner(n.op->prepares);
  n.op->run(call);
  note_in_scope(t, sample);
  t.data = in_other_order<In>(std::move(out), dims, inputs.result());
}
XLA_INSTANCE(void run_with_layouts<void>(impl&));

}  // namespace xla::detail
