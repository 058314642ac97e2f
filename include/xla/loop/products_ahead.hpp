// SPDX-License-Identifier: Apache-2.0
#pragma once

// Computes products of slices of xs before their steps, in eager mode. When two steps in a row
// multiply their slices by the same matrix, the second one does so for many further steps as well,
// in one product, and these copy their rows. The rows have the bits of a step's own product: see
// op::matmul's of_steps. transform/batch_products.hpp does this for loops in graphs.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/loop/eager_slices.hpp"
#include "xla/op/matmul.hpp"
#include "xla/run/trace/machine.hpp"

namespace xla::detail {

template <class In>
class basic_products_ahead;

/// The memory of the slices: that of xs, which a basic_products_ahead keeps.
template <class In>
inline constexpr memory_space memory_of_slices{
    .release = [](void* owner) { static_cast<basic_products_ahead<In>*>(owner)->release(); },
    .run = &basic_products_ahead<In>::run,
};

/// The slices of one tensor of xs, and their products. It stops computing ahead when a step leaves
/// out a product that is there, for example because the body has written the matrix.
template <class In>
class basic_products_ahead final : public eager_slices {
 public:
  /// The rows of a product of several steps; with more a row hardly takes less time.
  static constexpr std::int64_t rows_at_once = 128, most_rows = rows_at_once / 8;

  basic_products_ahead(const impl& xs, bool reverse)
      : xs_(ref<buffer>::share(xs.data.get())),
        elements_(static_cast<std::byte*>(elements_of(xs))),
        bytes_(bytes_of<In>(xs) / static_cast<std::size_t>(xs.dims[0])),
        steps_(xs.dims[0]),
        reverse_(reverse) {
    slice_.op = &builtin<op::input>;
    slice_.type = xs.type;
    slice_.set_shape({2, {xs.dims[1], xs.dims[2]}});
  }

  void slice(std::int64_t step, handle& result) override {
    ref<impl> t = make_impl<In>(slice_, nullptr);
    t->anywhere = false;
    t->data = ref<buffer>(buffer::borrow({&memory_of_slices<In>, this, row(step)}, bytes_));
    this->retain();
    result.adopt(t.take());
  }

  /// Executes an op that reads a slice.
  static void run(impl& t) {
    const shape dims = t.dims_shape();
    ref<buffer> out(buffer::make(bytes_of<In>(t), {t.op->name, &dims}));
    if (!copy_product(t, out->memory)) return execute_now<In>(t, std::move(out));
    t.data = std::move(out);
  }

 private:
  /// A product of steps, which are numbered in the order in which they run.
  struct product {
    std::uint64_t matrix;  ///< its number among all tensors
    packed_attributes attr;
    std::int64_t last;                ///< the latest step that has it
    std::int64_t begin = 0, end = 0;  ///< the steps for which it is computed
    ref<buffer> rows{};               ///< their rows, in the order of xs, until the last one's copy
    ref<impl> kept{};                 ///< the matrix, so that nothing writes it in place
  };

  static bool copy_product(const impl& t, void* out) {
    if (!is<op::matmul>(t) || !t.attributes<op::matmul>().of_steps) return false;
    const buffer &x = *t.in[0]->data, &matrix = *t.in[1]->data;
    if (x.space != &memory_of_slices<In> || matrix.space) return false;
    return static_cast<basic_products_ahead*>(x.owner)->copy(t, out);
  }

  std::byte* row(std::int64_t step) const {
    return elements_ + step * static_cast<std::int64_t>(bytes_);
  }
  /// The step of a slice, or the slice of a step.
  std::int64_t turned(std::int64_t i) const { return reverse_ ? steps_ - 1 - i : i; }

  /// Copies the rows of product t; false if they are not computed.
  bool copy(const impl& t, void* out) {
    const std::lock_guard hold(lock_);
    const auto* const x = static_cast<const std::byte*>(t.in[0]->data->memory);
    const std::int64_t step = turned((x - elements_) / static_cast<std::int64_t>(bytes_));
    product* const p = same_dims(*t.in[0], slice_) ? find(t, step) : nullptr;
    if (!p) return false;
    if (step > p->last && step >= p->end) multiply(*p, t, step);
    p->last = std::max(p->last, step);
    if (!p->rows || step < p->begin || step >= p->end) return false;
    const std::int64_t at = reverse_ ? p->end - 1 - step : step - p->begin;
    const std::size_t bytes = bytes_of<In>(t);
    std::memcpy(out,
                static_cast<std::byte*>(p->rows->memory) + at * static_cast<std::int64_t>(bytes),
                bytes);
    if (step + 1 == p->end) {
      p->rows.reset();
      p->kept.reset();
    }
    return true;
  }

  product* find(const impl& t, std::int64_t step) {
    if (step > step_) begin(step);
    const std::uint64_t matrix = t.in[1]->order;
    for (product& p : products_)
      if (p.matrix == matrix && p.attr == t.attr) return &p;
    if (step == step_ && !stopped_) products_.push_back({matrix, t.attr, step});
    return nullptr;
  }
  // Keeps the products that the step before had.
  void begin(std::int64_t step) {
    step_ = step;
    products_.remove_if([&](const product& p) {
      if (p.last + 1 == step) return false;
      stopped_ |= static_cast<bool>(p.rows);
      return true;
    });
    if (stopped_) products_.clear();
  }

  /// Computes p for this step and further ones.
  void multiply(product& p, const impl& t, std::int64_t step) {
    if (dependent<In, op_cache>::instance().count(t))
      global_metrics<In>().eager_compile_time.add(0);
    const timed sample(global_metrics<In>().eager_execute_time);
    shape in[] = {t.in[0]->dims_shape(), t.in[1]->dims_shape()}, all = t.dims_shape();
    const std::int64_t count = std::min(steps_ - step, rows_at_once / all[0]);
    in[0][0] = all[0] = count * all[0];
    ref<buffer> rows(
        buffer::make(bytes_of<In>(t) * static_cast<std::size_t>(count), {t.op->name, &all}));
    const void* const elements[] = {row(turned(reverse_ ? step + count - 1 : step)),
                                    elements_of(*t.in[1])};
    kernel_call call;
    call.out = rows->memory;
    call.in = elements;
    call.out_shape = &all;
    call.in_shapes = in;
    call.attr = t.attr;
    call.at = t.at;
    t.op->run(call);
    note_in_scope(t, sample);
    p.rows = std::move(rows);
    p.kept = ref<impl>::share(t.in[1].get());
    p.begin = step;
    p.end = step + count;
  }

  ref<buffer> xs_;
  std::byte* elements_;
  std::size_t bytes_;  // of a slice
  std::int64_t steps_;
  bool reverse_, stopped_ = false;
  node slice_;
  sys::mutex lock_;
  std::int64_t step_ = -1;  // the latest one with a product
  list<product> products_;
};

/// Only in eager mode, in which each op runs at once, and inside of nothing that runs ops again.
template <class In>
ref<eager_slices> open_eager_slices(const handle& xs, bool reverse) {
  impl& t = *xs.value();
  if (records_ops() || this_thread.segment || this_thread.in_pass || this_thread.sets_out ||
      t.device != this_thread.number || (has_traced_mode && backend_runs_ops<In>()))
    return {};
  const std::int64_t rows = t.rank == 3 ? t.dims[1] : 0;
  if (rows == 0 || rows > basic_products_ahead<In>::most_rows || t.dims[0] < 3 || t.dims[2] == 0)
    return {};
  read_elements<In>(t);
  if (t.data->space) return {};
  return ref<eager_slices>(new basic_products_ahead<In>(t, reverse));
}
XLA_LIBRARY_INSTANCE(ref<eager_slices> open_eager_slices<void>(const handle&, bool));

}  // namespace xla::detail
