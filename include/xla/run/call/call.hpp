// SPDX-License-Identifier: Apache-2.0
#pragma once

// Binds the arguments of one call to the slots of a program, and afterwards stores its writes and
// returns its results. compiled.hpp drives it; an executable runs the program in between.

#include <string>

#include "xla/base/dependent.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/list.hpp"
#include "xla/run/backend/backend.hpp"
#include "xla/run/call/arguments.hpp"
#include "xla/run/call/taped_call.hpp"
#include "xla/run/execute/executable.hpp"
#include "xla/run/trace/machine.hpp"

namespace xla::detail {

/// Memory for an output, allocated by the call or taken from an old value, and the tensor that will
/// own it.
struct fresh_buffer {
  ref<buffer> data;
  ref<impl> tensor;
};

/// The bindings of one call: every slot's value, in the order in which the capture made the slots.
/// The tables are reused by later calls.
template <class In>
struct basic_bound_call {
  basic_bound_call() = default;
  basic_bound_call(const basic_bound_call&) = delete;
  // Not inlined: the one function that releases a call's references.
  [[gnu::cold, gnu::noinline]] ~basic_bound_call() {}

  list<slot_binding> slots;
  list<double> facts;
  list<fresh_buffer> fresh;  ///< zeros for gradients, then writes, then results
  int first_result = 0;
  list<slot_value> values;  ///< the executable's arguments: slots,
  list<buffer*> outputs;    ///< memory of writes, then of results,
  list<rng_state> random;   ///< and generators
  /// Per slot: whether this call omits its gradient, because the parameter is frozen, the tensor
  /// does not require one, the gradient to be read is absent, or nothing will read the new one.
  /// Empty if there is no such slot.
  list<char> absent;
  /// Per slot: the owner of its value in the last call that passed check_repeats().
  list<const void*> distinct;
  list<int> by_owner;                     ///< the table of find_repeats()
  bool differentiable = false;            ///< a tensor among the arguments requires a gradient
  bool away = false;                      ///< an argument is on another device than this thread's
  dependent<In, ref<taped_call>> record;  ///< of a call whose results may need gradients

  [[gnu::noinline]] slot_binding& add_slot() { return slots.emplace_back(); }
  bool lacks_gradient(int slot) const {
    return !absent.empty() && (absent[slot] & no_gradient) != 0;
  }
  [[gnu::cold, gnu::noinline]] void note(int slot, lacks what) {
    absent.resize(slots.size());
    absent[slot] = static_cast<char>(absent[slot] | what);
  }
  ref<impl>& result(int i) { return fresh[first_result + i].tensor; }
  [[gnu::noinline]] void clear() {
    slots.clear();
    values.clear();
    outputs.clear();
    absent.clear();
    differentiable = away = false;
    facts.clear();
    fresh.clear();
    record.reset();
  }
};
using bound_call = basic_bound_call<void>;

/// Whether a call changes a slot's value or gradient. absent: the slot is a tensor that gets no
/// gradient.
constexpr bool changes(const program_slot& s, bool absent = false) {
  return s.clears_gradient || s.requires_grad >= 0 || s.writes_value ||
         (s.writes_gradient && !absent);
}

template <class In>
[[gnu::cold]] list<shape> shapes_of(const dependent<In, bound_call>& call) {
  list<shape> all;
  for (const slot_binding& s : call.slots) all.push_back(s.value ? s.value->dims_shape() : shape{});
  return all;
}

/// Visits the arguments and fills the slots; pending values are computed first.
template <class In>
class basic_call_binder final : public leaf_visitor {
 public:
  explicit basic_call_binder(dependent<In, bound_call>& call) : call_(call) {}

  void tensor(handle& value, const tree_path& path) override {
    add(value, path);
    call_.differentiable |= call_.slots.back().value->needs_grad;
  }
  void cell(handle& target, const tree_path& path) override { add(target, path); }
  void scalar(Scalar& number, const tree_path&) override {
    call_.add_slot().number = number.value();
  }
  void fact(double value, const tree_path&) override { call_.facts.push_back(value); }

 private:
  void add(handle& h, const tree_path& path) {
    impl* t = h.value();
    if (!t) throw runtime_error(path.str() + " is an empty tensor: give it a value first");
    if (h.get_cell() && h.get_cell()->functional)
      throw runtime_error(path.str() +
                          " is a functional_copy(): make that in the body, or pass a copy of it");
    make_ready(*t);
    wait_for(*t->data);
    call_.away |= t->device != this_thread.number && !t->anywhere;
    slot_binding& s = call_.add_slot();
    s.value = ref<impl>::share(t);
    s.bound_cell = h.get_cell();
    s.target = &h;
  }
  dependent<In, bound_call>& call_;
};
using call_binder = basic_call_binder<void>;

/// Finds the path to a slot, or a fact, by its number, for an error sentence.
template <class In>
class basic_path_finder final : public leaf_visitor {
 public:
  basic_path_finder(int index, bool among_facts) : left_(index), facts_(among_facts) {}
  std::string found = "an argument";

  [[gnu::cold]] void tensor(handle&, const tree_path& path) override { pass(false, path); }
  [[gnu::cold]] void cell(handle&, const tree_path& path) override { pass(false, path); }
  [[gnu::cold]] void scalar(Scalar&, const tree_path& path) override { pass(false, path); }
  [[gnu::cold]] void fact(double, const tree_path& path) override { pass(true, path); }

 private:
  [[gnu::cold, gnu::noinline]] void pass(bool is_fact, const tree_path& path) {
    if (is_fact == facts_ && left_-- == 0) found = path.str();
  }
  int left_;
  bool facts_;
};
using path_finder = basic_path_finder<void>;

/// The arguments of one call, and the function that visits their leaves.
struct call_arguments {
  void* const* addresses;
  void (*visit)(void* const* arguments, leaf_visitor& to);

  template <class In = void>
  [[gnu::cold]] std::string slot_path(int index) const {
    return path<In>({index, false});
  }
  template <class In = void>
  std::string fact_path(int index) const {
    return path<In>({index, true});
  }

 private:
  template <class In>
  [[gnu::noinline]] std::string path(dependent<In, path_finder> finder) const {
    visit(addresses, finder);
    return std::move(finder.found);
  }
};

/// Binds the arguments, and adds slots for the leaves that argument tensors become.
template <class In>
void bind_slots(const program& p, dependent<In, bound_call>& call,
                const call_arguments& arguments) {
  call.slots.reserve(p.count.slots);
  dependent<In, call_binder> binder(call);
  arguments.visit(arguments.addresses, binder);
  while (call.slots.size() < p.count.slots) call.add_slot();
}

/// One execution on bound slots: allocates outputs, runs the steps, then updates the caller's
/// tensors.
template <class In>
class basic_execution {
 public:
  basic_execution(const compiled_program& of, dependent<In, executable>& e,
                  dependent<In, bound_call>& c)
      : of_(of), e_(e), p_(e.about()), call_(c) {}
  basic_execution(const basic_execution&) = delete;

  void run() {
    start_leaves();
    find_cells();
    if (of_.forward_count > 0) find_wanted();
    slots_to_host();
    make_writes();
    make_results();
    drawing numbers(static_cast<std::uint64_t>(p_.random_counters));
    number(numbers.from());
    if (const backend* by = e_.made_by()) by->note_run();
    e_.run({call_.values.data(), call_.outputs.data(), call_.random.data()});
    commit();
    numbers.used();
    if (call_.record) call_.record->keep(call_.slots, call_.random);
  }

 private:
  const program& source() const { return p_.source; }
  std::size_t bytes(int v) const { return static_cast<std::size_t>(p_.bytes(v)); }

  // The tensor that an argument becomes when the body writes it: a leaf with a gradient of its own.
  [[gnu::cold, gnu::noinline]] void start_leaves() {
    for (int i = source().count.slots - 1; i >= 0 && source().slots[i].left_in >= 0; --i) {
      const program_slot& s = source().slots[i];
      slot_binding& b = call_.slots[i];
      const slot_binding& from = call_.slots[s.left_in];
      const grad_meta* const old = s.origin < 0 ? nullptr : call_.slots[s.origin].meta();
      b.target = from.target;
      if (old || s.requires_grad >= 0)
        b.own_meta = new_meta<In>(s.requires_grad < 0 ? old->requires_grad : s.requires_grad > 0,
                                  old && s.from_entry ? old->grad.get() : nullptr);
      if (s.writes_value) continue;
      b.value = new_tensor(from.value->type, from.value->dims_shape());
      b.value->data = from.value->data;
    }
  }
  void slots_to_host() {
    for (int i = 0; i < source().count.slots; ++i) {
      const program_slot& s = source().slots[i];
      const slot_binding& b = call_.slots[i];
      slot_value& to = call_.values.emplace_back();
      to.number = b.number;
      if (s.leaf >= 0) to.value = bring(*b.value);
      if (s.grad_leaf < 0) continue;
      impl* const g = b.meta() ? b.meta()->grad.get() : nullptr;
      if (g) {
        make_ready(*g);
        wait_for(*g->data);
        to.gradient = bring(*g);
      } else {
        to.gradient = add(make(s.grad_leaf));
        std::memset(to.gradient->memory, 0, bytes(s.grad_leaf));
      }
    }
  }
  buffer* bring(const impl& t) const {
    if (!e_.takes(*t.data)) elements_of(t);
    return t.data.get();
  }
  void number(const rng_state& s) {
    call_.random.clear();
    for (std::int64_t c : p_.counters)
      call_.random.push_back({s.seed, s.offset + static_cast<std::uint64_t>(c)});
  }
  ref<buffer> make(int v) const {
    return ref<buffer>(buffer::make(bytes(v), {source().values[v].op->name, &p_.shapes[v]}));
  }
  [[gnu::noinline]] ref<buffer> make_output(int v) const {
    const memory_space* const there = e_.space();
    return there ? ref<buffer>(there->make(*there, bytes(v))) : make(v);
  }
  buffer* add(ref<buffer> b) {
    fresh_buffer& f = call_.fresh.emplace_back();
    f.data = std::move(b);
    return f.data.get();
  }

  // Reuses the memory of an old value that has no other owner.
  void make_writes() {
    first_write_ = call_.fresh.size();
    for (int i = 0; i < source().count.writes; ++i) {
      const write& w = source().writes[i];
      slot_binding& b = call_.slots[w.slot];
      ref<buffer> to;
      if (p_.in_place[i] && !call_.record) {
        impl* old = w.gradient ? b.meta()->grad.get() : b.value.get();
        const int handles = w.gradient ? 1 : 2;  // references of the cell, and of this call
        if (old && old->refs.load(std::memory_order_acquire) == handles && old->data &&
            old->data->unique(e_.space()) && old->data->bytes >= bytes(w.value) &&
            (b.bound_cell || w.gradient))
          to = old->data;
      }
      if (to) to->forget_forms();
      else to = make_output(w.value);
      const buffer* const data = call_.outputs.emplace_back(add(std::move(to)));
      if (is_new(w, data)) make_tensor(w.value);
    }
  }
  void make_results() {
    call_.first_result = call_.fresh.size();
    for (int i = 0; i < source().count.results; ++i) {
      const int v = source().results[i];
      call_.outputs.push_back(add(make_output(v)));
      make_tensor(v);
    }
  }

  // Whether a write makes a new tensor: not if the old tensor's memory has the new value.
  bool is_new(const write& w, const buffer* data) const {
    const slot_binding& b = call_.slots[w.slot];
    if (!w.gradient) return b.bound_cell ? b.value->data.get() != data : b.target != nullptr;
    const impl* const old = b.meta()->grad.get();
    return !old || old->data.get() != data || source().slots[w.slot].clears_gradient;
  }
  /// Makes a tensor for the memory that was added last.
  [[gnu::noinline]] void make_tensor(int v) {
    call_.fresh.back().tensor = new_tensor(source().values[v].type, p_.shapes[v]);
  }
  [[gnu::noinline]] static ref<impl> new_tensor(dtype type, const shape& dims) {
    ref<impl> t(new impl);
    t->op = &builtin<op::input>;
    t->device = this_thread.number;
    t->type = type;
    t->set_shape(dims);
    return t;
  }

  // Nothing here can fail, because everything was allocated before the first step.
  void commit() noexcept {
    for (int i = 0; i < source().count.slots; ++i) {
      const program_slot& s = source().slots[i];
      slot_binding& b = call_.slots[i];
      if (s.left_in >= 0 && b.value) leave({.slot = i}, std::move(b.value));
      grad_meta* const m = b.meta();
      if (!m || s.left_in >= 0) continue;
      if (s.clears_gradient) m->grad.reset();
      if (s.requires_grad >= 0)
        m->requires_grad = b.bound_cell->current->needs_grad = s.requires_grad > 0;
    }
    for (int i = first_write_; i < call_.fresh.size(); ++i) {
      fresh_buffer& f = call_.fresh[i];
      if (!f.tensor) continue;
      f.tensor->data = std::move(f.data);
      if (i < call_.first_result) leave(source().writes[i - first_write_], std::move(f.tensor));
      else hand_out(i - call_.first_result, *f.tensor);
    }
  }
  [[gnu::cold, gnu::noinline]] void leave(const write& w, ref<impl> t) noexcept {
    slot_binding& b = call_.slots[w.slot];
    if (w.gradient) {
      b.meta()->grad = std::move(t);
      return;
    }
    t->meta = b.bound_cell ? b.bound_cell->meta : b.own_meta;
    t->needs_grad = t->meta && t->meta->requires_grad;
    if (b.bound_cell) b.bound_cell->current = std::move(t);
    else b.target->adopt(t.take());
  }
  void find_cells() noexcept {
    for (int i = 0; i < call_.slots.size() && !cells_; ++i) {
      const slot_binding& b = call_.slots[i];
      cells_ = b.bound_cell ? b.requires_grad() : source().slots[i].requires_grad > 0;
    }
  }
  // Finds whether the results may need gradients, given the arguments.
  [[gnu::cold]] void find_wanted() {
    bool any = false;
    for (int i = 0; i < source().count.results; ++i) any |= wanted(i);
    if (any)
      call_.record =
          dependent<In, ref<taped_call>>(new dependent<In, taped_call>(of_, p_.winograd));
  }
  bool wanted(int result) const noexcept {
    if (!grad_enabled()) return false;
    const node& r = of_.forward_count == 0 ? source().values[source().results[result]]
                                           : of_.forward_result(result);
    return (r.needs_grad && cells_) || (r.input_grad && call_.differentiable);
  }
  void hand_out(int i, impl& result) const noexcept {
    if (!wanted(i)) return;
    result.op = &builtin<op::compiled_result>;
    result.set<op::compiled_result>({i});
    result.needs_grad = true;
    result.made_by = ref<call_record>::share(call_.record.get());
  }

  const compiled_program& of_;
  dependent<In, executable>& e_;
  const dependent<In, sized_program>& p_;
  dependent<In, bound_call>& call_;
  int first_write_ = 0;
  bool cells_ = false;  // a parameter requires a gradient, or a tensor on which the body sets that
};
using execution = basic_execution<void>;

/// One call of an executable.
template <class In = void>
void execute(const compiled_program& of, dependent<In, executable>& e,
             dependent<In, bound_call>& call) {
  dependent<In, execution>(of, e, call).run();
}
XLA_INSTANCE(void execute<void>(const compiled_program&, executable&, bound_call&));

}  // namespace xla::detail
