// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions that tensors call at run time, declared so that a program which only includes them
// compiles none. run/trace/machine.hpp defines them, by mode: eager or traced.

#include <cstdint>
#include <string_view>

#include "xla/base/caller.hpp"
#include "xla/base/dependent.hpp"
#include "xla/tensor/handle.hpp"

namespace xla::detail {

struct foreign_memory;

/// What tensors need of the run time, in the current mode; run/trace/machine.hpp defines it.
/// A template over nothing, so that naming it makes nothing: templates say machine_of<T>.
template <class In>
struct basic_machine {
  /// The op on inputs: spec has its attributes, and its shape where the op's rule asks for it.
  static void apply(caller loc, const node& spec, const op_info& op, const handle* const* inputs,
                    int count, handle& result);
  /// The same of a list of them, one after the other.
  static void apply_list(caller loc, const node& spec, const op_info& op, const handle* inputs,
                         int count, handle& result);
  /// The same with a shape that is known.
  static void run(const node& n, const handle* const* inputs, int count, handle& result);
  /// The same of an op with several results, for each of which n has a node.
  static void run_several(const node* n, const handle* const* inputs, int count,
                          handle* const* results, int result_count);
  /// A number; of an integer its value is exact.
  static void constant(handle& result, dtype type, double value, std::int64_t exact);
  static void upload(handle& result, dtype type, const shape& dims, const void* data);
  /// A tensor on memory of another library; takes it over unless it throws.
  static void borrow(handle& result, dtype type, const shape& dims, const foreign_memory& memory);
  /// The elements; waits for them.
  static const void* read(const handle& h);
  /// Something ran outside the graph: fallback::<function>.
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
  /// A place of its own that holds the value.
  static void create_cell(handle& h, const handle& value, bool trainable);
  static void create_cell(handle& h, dtype type, const shape& dims, bool trainable);
  /// The same on another tensor's device, of its shape or without axes.
  static void create_like(handle& h, const handle& other, dtype type, bool shaped, bool trainable);
  /// A place of its own with the same value as another.
  static void copy_cell(handle& h, const handle& from);
  /// Gives a place the value that another has, without its gradient; what refers to it goes on
  /// doing so, as an optimizer does.
  static void assign_cell(handle& h, const handle& from);
  /// A place whose value is a function of others: writing it cuts no gradients.
  static void functional_cell(handle& h, const handle& from, const handle& value);
  /// Runs an op that replaces elements in h's own memory, in eager mode and where nobody else can
  /// see it; false where somebody may, or where gradients will want the old elements.
  static bool update(const handle& h, const node& n, const handle* const* parts, int count);
  /// From here on, in eager mode, ops are not executed before what is written into h is read, where
  /// h is a large parameter or buffer. They may read what h is now: but then no value that waits
  /// for another one. The result tells how it was before, for the second form.
  static bool set_out(const handle& h, bool reads);
  static void set_out(bool as_before);
  /// The same tensor on a device, by number.
  static void to_device(const handle& h, int device, handle& result);
  /// Takes a place, with its value and gradient, to a device.
  static void move_to_device(const handle& h, int device);
  /// From here on this thread works on a device, or on a tensor's; the result is the one before.
  static int work_on(int device);
  static int work_on(const handle& like);
  /// A tensor belongs to its device, also if it was made of numbers alone.
  static void settle(handle& h);
  /// Of products that this thread makes.
  static precision product_precision();
  /// How many replicas the world of this thread's device has, and which of them that is.
  static int world_size();
  static int global_ordinal();
  /// Rebinds a handle to a new value, as the in-place forms do.
  static void rebind(handle& h, const handle& value);
};

template <class T>
using machine_of = dependent<T, basic_machine<void>>;

/// At run time: within a scope this thread works on a device, or on a tensor's.
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
