// SPDX-License-Identifier: Apache-2.0
#pragma once

// Moves tensors between devices, and finds the device of an op. Most programs have one device and
// none of this runs.

#include <cstring>
#include <utility>

#include "xla/graph/builtin.hpp"
#include "xla/kernel/call.hpp"
#include "xla/op/rule.hpp"
#include "xla/run/trace/start_op.hpp"
#include "xla/tensor/machine.hpp"

namespace xla::detail {

/// The same elements on a device. Gradients return to the original device.
struct moved {
  template <class In>
  static void gradient(gradient_scope& s) {
    const int home = s.in[0].value()->device;
    dependent<In, basic_machine<void>>::to_device(s.grad, home, s.result[0]);
  }
  static void run(const kernel_call& call) {
    const std::int64_t bytes = count(*call.out_shape) * call.attributes<op::to_device>().width;
    if (bytes > 0) std::memcpy(call.out, call.in[0], static_cast<std::size_t>(bytes));
  }
  template <class In>
  static constexpr op_info info = [] {
    op_info i = builtin<op::to_device>;
    i.moves = i.differentiable = true;
    i.run = &run;
    i.gradient = &gradient<In>;
    return i;
  }();
};

template <class In = void>
[[gnu::cold, gnu::noinline]] node moving(const impl& from, int device) {
  node n;
  n.op = &moved::info<In>;
  n.type = from.type;
  n.arity = 1;
  n.set<op::to_device>({device, static_cast<int>(size_of(from.type))});
  n.set_shape(from.dims_shape());
  return n;
}
/// Whether transfers to a device happen at once: to a plugin's, so that the graphs of its replicas
/// are alike.
template <class In = void>
bool moves_at_once() {
  return !records_ops() || backend_runs_ops<In>();
}
/// The same tensor on a device; itself if it is there already.
template <class In = void>
[[gnu::cold, gnu::noinline]] ref<impl> run_to_device(impl* from, int device) {
  if (from->device == device && !from->anywhere) return ref<impl>::share(from);
  const eager_mode_guard mode(moves_at_once<In>());
  ref<impl> t = new_op<In>(moving<In>(*from, device), &from);
  start_op<In>(*t);
  return t;
}

template <class In>
[[noreturn, gnu::cold]] void refuse_two_devices(std::string_view function, std::string_view a,
                                                int device_of_a, std::string_view b,
                                                int device_of_b) {
  text t(function);
  t << ": " << a << " is on xla:" << device_of_a << " and " << b << " on xla:" << device_of_b
    << "; bring all to one device: x.to(device)";
  throw runtime_error(std::string(t.view()));
}

/// Finds the device of an op whose inputs are not all on this thread's.
template <class In>
[[gnu::cold]] void find_device(impl& t) {
  if (t.op->moves) {
    t.device = static_cast<std::uint8_t>(t.attributes<op::to_device>().device);
    t.anywhere = false;
    return;
  }
  const impl* first = nullptr;
  for (int i = 0; i < t.arity; ++i) {
    const impl& in = *t.in[i];
    if (in.anywhere) continue;
    if (first && first->device != in.device) {
      const text a = text("a tensor of shape ") << first->dims_shape();
      const text b = text("one of shape ") << in.dims_shape();
      refuse_two_devices<In>(t.op->name, a.view(), first->device, b.view(), in.device);
    }
    first = &in;
  }
  if (first) t.device = first->device;
}

template <class In>
[[gnu::cold]] void start_there(impl& t, const ref<impl>* others, int other_count) {
  const dependent<In, device_switch> there(device_of(t.device));
  start_op<In>(t, others, other_count);
}

template <class In = void>
void run_write(cell& c, impl* value);

template <class In>
[[gnu::cold]] void write_there(cell& c, impl* value, int device) {
  const dependent<In, device_switch> there(device_of(device));
  ref<impl> copy;
  if (value->device != device) value = (copy = run_to_device<In>(value, device)).get();
  run_write<In>(c, value);
}

template <class In>
struct basic_crossing {
  static constexpr device_crossing all{&find_device<In>, &start_there<In>, &write_there<In>,
                                       &refuse_two_devices<In>};
};

template <class In>
[[gnu::cold]] void basic_machine<In>::to_device(const handle& h, int device, handle& result) {
  impl* const t = h.value();
  const handle* const in = &h;
  const bool several = the_process.crossing.load();
  if (!t || (t->device == device && !(t->anywhere && several))) {
    result = h;
  } else {
    const eager_mode_guard mode(moves_at_once<In>());
    run(moving<In>(*t, device), &in, 1, result);
  }
}

template <class In>
[[gnu::cold]] void basic_machine<In>::move_to_device(const handle& h, int device) {
  if (!h.get_cell()) return;
  cell& c = *h.get_cell();
  const grad_scope off(false);
  const auto move = [&](ref<impl>& t) {
    t = run_to_device<In>(t.get(), device);
    make_ready<In>(*t);
    wait_for<In>(*t->data);
  };
  ref<impl> value = ref<impl>::share(c.value()), gradient;
  if (c.meta) gradient = c.meta->grad;
  if (value->device == device) return;
  move(value);
  if (gradient) move(gradient);
  value->meta = c.meta;
  value->needs_grad = c.meta && c.meta->requires_grad;
  c.current = std::move(value);
  if (c.meta) c.meta->grad = std::move(gradient);
}

template <class In>
[[gnu::cold]] int basic_machine<In>::work_on(int device) {
  const int before = this_thread.number;
  if (device != before) detail::work_on<In>(device_of(device));
  return before;
}

template <class In>
[[gnu::cold]] int basic_machine<In>::work_on(const handle& like) {
  return work_on(like.device_number());
}

template <class In>
[[gnu::cold]] void basic_machine<In>::settle(handle& h) {
  h.value()->anywhere = false;
}

}  // namespace xla::detail
