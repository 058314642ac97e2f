// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions that tensors call at run time, declared so that a program that only includes them
// compiles none. run/trace/machine.hpp defines them, by mode: eager or traced.

#include <cstdint>
#include <string_view>

#include "xla/base/caller.hpp"
#include "xla/base/dependent.hpp"
#include "xla/tensor/handle.hpp"

namespace xla::detail {

struct foreign_memory;

/// The operations of the run time on tensors, in the current mode; run/trace/machine.hpp defines
/// them. A template without real parameters, so that naming it instantiates nothing: templates
/// write machine_of<T>.
template <class In>
struct basic_machine {
  /// Applies an op to inputs: spec has its attributes, and its shape if the op's rule needs it.
  static void apply(caller loc, const node& spec, const op_info& op, const handle* const* inputs,
                    int count, handle& result);
  /// The same for a list of inputs.
  static void apply_list(caller loc, const node& spec, const op_info& op, const handle* inputs,
                         int count, handle& result);
  /// The same with a known shape.
  static void run(const node& n, const handle* const* inputs, int count, handle& result);
  /// The same for an op with several results; n has a node for each.
  static void run_several(const node* n, const handle* const* inputs, int count,
                          handle* const* results, int result_count);
  /// A number; an integer's value is exact.
  static void constant(handle& result, dtype type, double value, std::int64_t exact);
  static void upload(handle& result, dtype type, const shape& dims, const void* data);
  /// A tensor on memory of another library; takes it over unless it throws.
  static void borrow(handle& result, dtype type, const shape& dims, const foreign_memory& memory);
  /// The elements; waits for them.
  static const void* read(const handle& h);
  /// Counts something that ran outside of the graph: fallback::<function>.
  static void count_fallback(std::string_view function);
  static void require_grad(handle& h, bool on);
  static void grad(const handle& h, handle& result);
  static void set_grad(handle& h, const handle& gradient);
  static void zero_grad(handle& h);
  static void detach(const handle& h, handle& result);
  /// Collects gradients from a tensor with one element.
  static void backward(const handle& loss);
  /// Gradients for chosen inputs instead; see xla::grad.
  static void gradients(const handle& loss, const handle* const* inputs, handle* const* results,
                        int count, bool create_graph);
  /// Gives a handle a cell of its own with the value.
  static void create_cell(handle& h, const handle& value, bool trainable);
  static void create_cell(handle& h, dtype type, const shape& dims, bool trainable);
  /// The same on another tensor's device, with its shape or without axes.
  static void create_like(handle& h, const handle& other, dtype type, bool shaped, bool trainable);
  /// Gives a handle a cell of its own with the same value as another.
  static void copy_cell(handle& h, const handle& from);
  /// Gives a cell another one's value without its gradient; references to the cell, such as an
  /// optimizer's, stay valid.
  static void assign_cell(handle& h, const handle& from);
  /// A cell whose value is a function of others: writing it does not cut gradients.
  static void functional_cell(handle& h, const handle& from, const handle& value);
  /// Runs an op that replaces elements in h's own memory, in eager mode and if nothing else can see
  /// it; false if something can, or if gradients need the old elements.
  static bool update(const handle& h, const node& n, const handle* const* parts, int count);
  /// From now on, in eager mode, ops are not executed before their value, written to h, is read, if
  /// h is a large parameter or buffer. They may read h's current value, but no other deferred
  /// value. The result is the previous state, an argument of the second form.
  static bool set_out(const handle& h, bool reads);
  static void set_out(bool as_before);
  /// The same tensor on a device, by number.
  static void to_device(const handle& h, int device, handle& result);
  /// Moves a cell, with its value and gradient, to a device.
  static void move_to_device(const handle& h, int device);
  /// Makes this thread work on a device, or on a tensor's, from now on; returns the previous one.
  static int work_on(int device);
  static int work_on(const handle& like);
  /// A tensor belongs to its device, even if it was made of numbers alone.
  static void settle(handle& h);
  /// The precision of products that this thread makes.
  static precision product_precision();
  /// The number of replicas in the world of this thread's device, and the ordinal of this one.
  static int world_size();
  static int global_ordinal();
  /// Rebinds a handle to a new value, as the in-place forms do.
  static void rebind(handle& h, const handle& value);
};

template <class T>
using machine_of = dependent<T, basic_machine<void>>;

/// At run time: makes this thread work on a device, or on a tensor's, within a scope.
template <class T>
class working_on {
 public:
  constexpr explicit working_on(int device) {
    if (!__builtin_is_constant_evaluated()) before_ = machine_of<T>::work_on(device);
  }
  constexpr explicit working_on(const handle& x) {
    if (!__builtin_is_constant_evaluated()) before_ = machine_of<T>::work_on(x);
  }
  constexpr ~working_on() {
    if (!__builtin_is_constant_evaluated()) machine_of<T>::work_on(before_);
  }
  working_on(const working_on&) = delete;
  working_on& operator=(const working_on&) = delete;

 private:
  int before_ = 0;
};

}  // namespace xla::detail
