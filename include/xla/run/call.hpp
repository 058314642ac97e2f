// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "xla/base/instance.hpp"
#include "xla/base/later.hpp"
#include "xla/module.hpp"
#include "xla/run/executable.hpp"
#include "xla/run/machine.hpp"
#include "xla/transform/capture.hpp"

namespace xla::detail {

/// A slot of a program at one call.
struct bound_slot {
  ref<impl> value;
  cell* place = nullptr;
  handle* target = nullptr;  ///< a tensor argument that a write goes back to
  double number = 0;
};

/// What a call brings: every slot's value, in the order in which the capture made the slots. The
/// tables keep their memory between calls.
template <class In>
struct basic_bound_call {
  later<In, std::vector<bound_slot>> slots;
  later<In, std::vector<double>>
      facts;  ///< plain numbers among the members, which the type must fix
  later<In, std::vector<ref<buffer>>> fresh;
  later<In, std::vector<ref<impl>>> results;
  later<In, std::vector<rng_state>> random;

  void clear() {
    slots.clear();
    facts.clear();
    fresh.clear();
    results.clear();
  }
};
using bound_call = basic_bound_call<void>;

/// Binds arguments to slots; values are brought up to date first.
template <class In>
struct basic_call_binder {
  later<In, bound_call>& call;

  void add(handle& h, cell* place) {
    bound_slot s;
    impl* t = h.value();
    if (!t) throw error("xla: an argument is an empty tensor");
    make_ready(*t);
    wait_for(*t->data);
    s.value = ref<impl>::share(t);
    s.place = place;
    s.target = place ? nullptr : &h;
    call.slots.push_back(std::move(s));
  }
  template <class X>
  void operator()(X& x, const tree_path&) {
    using U = std::remove_cv_t<X>;
    if constexpr (is_state<U>) {
      auto& h = const_cast<U&>(x);
      add(h, h.place());
    } else if constexpr (is_tensor<U>) {
      add(const_cast<U&>(x), nullptr);
      if (std::is_const_v<X>) call.slots.back().target = nullptr;
    } else if constexpr (std::is_same_v<U, Scalar>) {
      bound_slot s;
      s.number = x.value();
      call.slots.push_back(std::move(s));
    } else {
      if constexpr (std::is_same_v<U, TrainingFlag>) call.facts.push_back(U::fact(x));
      else call.facts.push_back(static_cast<double>(x));
    }
  }
  template <class X>
  void argument(X& x, std::int64_t index) {
    tree_path path{nullptr, nullptr, index};
    if constexpr (optimizer_like<X>) {
      visit_tree(x.options, *this, path);
      const_cast<bare<X>&>(x).visit_state([&](auto& s, auto) { add(s, s.place()); });
    } else {
      visit_tree(x, *this, path);
    }
  }
};
using call_binder = basic_call_binder<void>;

/// The way to the leaf number `index` among those that Counts picks, for a sentence.
template <template <class> class Counts, class... A>
std::string leaf_path(std::tuple<A&...> arguments, int index) {
  std::string found = "an argument";
  int n = 0;
  auto leaf = [&](auto& x, const tree_path& path) {
    if constexpr (Counts<bare<decltype(x)>>::value)
      if (n++ == index) found = path.str();
  };
  std::int64_t argument = 0;
  auto one = [&](auto& x) {
    const tree_path path{nullptr, nullptr, argument++};
    if constexpr (optimizer_like<decltype(x)>) {
      visit_tree(x.options, leaf, path);
      const_cast<bare<decltype(x)>&>(x).visit_state([&](auto& state, auto) {
        if (Counts<bare<decltype(state)>>::value && n++ == index)
          found = path.str() + " (optimizer state)";
      });
    } else {
      visit_tree(x, leaf, path);
    }
  };
  std::apply([&](auto&... x) { (one(x), ...); }, arguments);
  return found;
}
template <class X>
struct is_slot : std::bool_constant<is_tensor<X> || is_state<X> || std::is_same_v<X, Scalar>> {};
template <class X>
struct is_fact : std::bool_constant<!is_slot<X>::value> {};

template <class... A>
std::string slot_path(std::tuple<A&...> arguments, int index) {
  return leaf_path<is_slot>(arguments, index);
}
template <class... A>
std::string fact_path(std::tuple<A&...> arguments, int index) {
  return leaf_path<is_fact>(arguments, index);
}

/// Checks that an optimizer argument was made for the model argument that it stands with.
template <class... A>
struct pairing {
  template <std::size_t I, class Tuple>
  static void check(Tuple& arguments) {
    using X = std::tuple_element_t<I, std::tuple<bare<A>...>>;
    if constexpr (optimizer_like<X>) {
      using Traits = model_traits<typename X::model_type>;
      int n = place_of_optimizer<I, A...>();
      typename Traits::root* root = nullptr;
      std::apply([&](auto&... v) { (find(v, n, root), ...); }, arguments);
      if (&Traits::of(*root) != &std::get<I>(arguments).model())
        throw error("xla::compile: argument " + std::to_string(I) +
                    " is an optimizer of another model than the one it is passed with; "
                    "pass models and their optimizers in the same order");
    }
  }

 private:
  template <class X, class Root>
  static void find(X& x, int& n, Root*& found) {
    if constexpr (!optimizer_like<X>) find_place(const_cast<bare<X>&>(x), n, found);
  }
};

/// One execution of an executable on bound slots: memory for what is new, the steps, then the
/// changes that the caller sees.
template <class In>
class basic_execution {
 public:
  basic_execution(later<In, executable>& e, later<In, bound_call>& c)
      : e_(e), p_(e.get_plan()), call_(c), frame_(e.take_frame()) {}
  ~basic_execution() { e_.give_frame(std::move(frame_)); }
  basic_execution(const basic_execution&) = delete;

  void run() {
    point_slots();
    point_writes();
    point_results();
    point_lent();
    for (int v : p_.moving) table(v) = table(p_.base[at(v)]);
    draw();
    e_.run(*frame_, call_.random.data());
    copy();
    commit();
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void*& table(int v) { return frame_->table[at(v)]; }
  const program& source() const { return p_.source; }
  std::size_t bytes(int v) const { return static_cast<std::size_t>(p_.places[at(v)].bytes); }

  void point_slots() {
    for (int i = 0; i < source().count.slots; ++i) {
      const program_slot& s = source().slots[i];
      bound_slot& b = call_.slots[at(i)];
      if (s.leaf >= 0) table(s.leaf) = b.value->data->data;
      if (s.grad_leaf < 0) continue;
      impl* g = b.place && b.place->meta ? b.place->meta->grad.get() : nullptr;
      if (g) {
        make_ready(*g);
        wait_for(*g->data);
        table(s.grad_leaf) = g->data->data;
      } else {
        table(s.grad_leaf) = zeros(s.grad_leaf);
      }
    }
    for (int v : p_.scalars) {
      const node& n = source().values[v];
      const double number = call_.slots[at(static_cast<int>(n.attr))].number;
      store_number(table(v), n.type, number, static_cast<std::int64_t>(number));
    }
  }
  void draw() {
    if (p_.counters.empty()) return;
    const rng_state s = generator::instance().take(static_cast<std::uint64_t>(p_.random_counters));
    call_.random.clear();
    for (std::int64_t c : p_.counters)
      call_.random.push_back({s.seed, s.offset + static_cast<std::uint64_t>(c)});
  }
  void* zeros(int v) {
    call_.fresh.emplace_back(buffer::make(bytes(v)));
    std::memset(call_.fresh.back()->data, 0, bytes(v));
    return call_.fresh.back()->data;
  }

  // The old value's memory serves when nobody else holds it.
  void point_writes() {
    first_write_ = call_.fresh.size();
    for (int i = 0; i < source().count.writes; ++i) {
      const write& w = source().writes[i];
      bound_slot& b = call_.slots[at(w.slot)];
      ref<buffer> to;
      if (p_.in_place[at(i)]) {
        impl* old = w.gradient ? b.place->meta->grad.get() : b.value.get();
        const int handles = w.gradient ? 1 : 2;  // the cell's, and this call's
        if (old && old->refs.load(std::memory_order_acquire) == handles && old->data &&
            old->data->unique() && old->data->bytes >= bytes(w.value) && b.place)
          to = old->data;
      }
      if (!to) to = ref<buffer>(buffer::make(bytes(w.value)));
      if (p_.copies[at(i)] < 0) table(p_.base[at(w.value)]) = to->data;
      call_.fresh.push_back(std::move(to));
    }
  }
  void point_results() {
    first_result_ = call_.fresh.size();
    for (int i = 0; i < source().count.results; ++i) {
      const int v = source().results[i];
      call_.fresh.emplace_back(buffer::make(bytes(v)));
      if (p_.copies[at(source().count.writes + i)] < 0)
        table(p_.base[at(v)]) = call_.fresh.back()->data;
    }
  }
  void point_lent() {
    for (int v : p_.lent) {
      const placement& q = p_.places[at(v)];
      table(v) = static_cast<std::byte*>(call_.fresh[first_write_ + at(q.index)]->data) + q.offset;
    }
  }
  void copy() {
    const int writes = source().count.writes;
    for (int i = 0; i < writes + source().count.results; ++i)
      if (const int v = p_.copies[at(i)]; v >= 0)
        std::memcpy(call_.fresh[first_write_ + at(i)]->data, table(v), bytes(v));
  }

  ref<impl> make_value(int v, ref<buffer> data) const {
    ref<impl> t(new impl);
    t->op = &input_info;
    t->type = source().values[v].type;
    t->dims = p_.shapes[at(v)];
    t->data = std::move(data);
    return t;
  }

  // Nothing here can fail but for memory, which was taken before the first step.
  void commit() {
    for (int i = 0; i < source().count.slots; ++i)
      if (source().slots[i].clears_gradient)
        if (cell* c = call_.slots[at(i)].place; c && c->meta) c->meta->grad.reset();
    for (int i = 0; i < source().count.writes; ++i) {
      const write& w = source().writes[i];
      bound_slot& b = call_.slots[at(w.slot)];
      ref<buffer>& data = call_.fresh[first_write_ + at(i)];
      if (w.gradient) {
        if (b.place->meta->grad && b.place->meta->grad->data.get() == data.get()) continue;
        b.place->meta->grad = make_value(w.value, std::move(data));
      } else if (b.place) {
        if (b.value->data.get() == data.get()) continue;
        ref<impl> t = make_value(w.value, std::move(data));
        t->meta = b.place->meta;
        t->needs_grad = t->meta && t->meta->requires_grad;
        b.place->current = std::move(t);
      } else if (b.target) {
        b.target->adopt(make_value(w.value, std::move(data)).take());
      }
    }
    for (int i = 0; i < source().count.results; ++i)
      call_.results.push_back(
          make_value(source().results[i], std::move(call_.fresh[first_result_ + at(i)])));
  }

  later<In, executable>& e_;
  const later<In, plan>& p_;
  later<In, bound_call>& call_;
  later<In, std::unique_ptr<frame>> frame_;
  std::size_t first_write_ = 0, first_result_ = 0;
};
using execution = basic_execution<void>;

/// One call of an executable.
template <class In = void>
void execute(later<In, executable>& e, later<In, bound_call>& call) {
  later<In, execution>(e, call).run();
}
XLA_INSTANCE(void execute<void>(executable&, bound_call&));

}  // namespace xla::detail
