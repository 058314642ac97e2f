// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks the arguments of a call of a compiled function against the requirements of its body, and
// describes a mismatch in one sentence. compiled.hpp calls it before anything runs.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "xla/base/compiler.hpp"
#include "xla/base/dependent.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/run/call/call.hpp"
#include "xla/run/plan/sized.hpp"
#include "xla/transform/print.hpp"

namespace xla::detail {

/// The op that requires a known size for an axis of a slot: ": matmul (model.cpp:42)".
template <class In = void>
[[gnu::cold]] text needed_by(const program& p, int slot, int axis) {
  text out;
  extent e = equality::hole;
  for (int i = 0; i < p.count.symbols; ++i)
    if (const symbol& s = p.symbols[i]; s.kind == 'v' && s.a == slot && s.b == axis)
      for (extent to = symbol_extent(i); to != -1 && !is_known(to);
           to = p.symbols[symbol_index(to)].same_as)
        e = to;
  for (int i = 0; i < p.count.equalities && out.empty(); ++i)
    if (const equality& q = p.equalities[i];
        !q.at_least && ((q.a == e && is_known(q.b)) || (q.b == e && is_known(q.a))))
      out << ": " << q.where.function << q.where.at;
  return out;
}

/// Adds advice for an axis of size 1 that should have another size, given as text.
template <class In = void>
[[gnu::cold]] void suggest_expand(text& out, const program& p, int slot, int axis, const text& size,
                                  const std::string& path) {
  out << "; a size that is 1 only at run time broadcasts by expand_as(x, y) or expand(x, {";
  for (int k = 0; k < p.values[p.slots[slot].leaf].dims_shape().rank; ++k)
    out << (k > 0 ? ", " : "") << (k == axis ? size : text("-1"));
  out << "}), x being " << path;
}
/// The same if the body assumed two sizes to be equal, and one is 1.
template <class In = void>
[[gnu::cold]] void suggest_expand(text& out, const program& p, extent one, extent other,
                                  const call_arguments& arguments) {
  const auto axis_of = [&](extent e) {
    const symbol* s = is_known(e) ? nullptr : &p.symbols[symbol_index(e)];
    return s && s->kind == 'v' ? s : nullptr;
  };
  const symbol* const s = axis_of(one);
  const symbol* const to = axis_of(other);
  if (!s || p.slots[s->a].leaf < 0) {
    out << "; a size that is 1 only at run time broadcasts by expand_as(x, y)";
    return;
  }
  text size;
  if (to) size << "y.size(" << to->b << ')';
  else if (is_known(other)) size << other;
  else size << "size";
  const int slot = static_cast<int>(s->a), axis = static_cast<int>(s->b);
  suggest_expand<In>(out, p, slot, axis, size, arguments.slot_path<In>(slot));
}

template <class In = void>
[[noreturn, gnu::cold]] void refuse_size(const program& p, int slot, int axis,
                                         const std::string& path, const shape& actual) {
  const bool tensor = p.slots[slot].kind == slot_kind::tensor;
  const shape needed = p.values[p.slots[slot].leaf].dims_shape();
  text t = "xla::compile: ";
  t << path << " is " << actual
    << (tensor ? ", but the function needs " : ", but its type's default constructor makes ")
    << needed
    << (tensor ? " there, where the models' types fix sizes"
               : "; sizes that vary belong into the type, as template parameters");
  if (tensor && actual[axis] == 1)
    suggest_expand<In>(t, p, slot, axis, text() << needed[axis], path);
  if (tensor) t << needed_by(p, slot, axis);
  size_scope{nullptr, call_site()}.fail_with(t);
  XLA_UNREACHABLE();
}

/// Compares the sizes that a type fixes with those of an argument; a difference is reported in one
/// sentence.
template <class In = void>
[[gnu::cold]] void check_fixed_sizes(const program& p, const dependent<In, bound_call>& call,
                                     const call_arguments& arguments) {
  for (int i = 0; i < p.count.slots; ++i) {
    const int leaf = p.slots[i].leaf;
    if (leaf < 0 || !call.slots[i].value) continue;
    const shape fixed = p.values[leaf].dims_shape();
    const shape actual = call.slots[i].value->dims_shape();
    for (int k = 0; k < fixed.rank; ++k)
      if (is_known(fixed[k]) && fixed[k] != actual[k])
        refuse_size<In>(p, i, k, arguments.slot_path(i), actual);
  }
}

template <class In = void>
[[noreturn, gnu::cold]] void refuse_argument(const call_arguments& arguments, int slot,
                                             const char* why) {
  throw runtime_error(join({"xla::compile: ", arguments.slot_path(slot), why}));
}

template <class In = void>
[[noreturn, gnu::cold]] void refuse_frozen(const call_arguments& arguments, int slot,
                                           const char* why) {
  throw runtime_error(
      join({"xla::compile: ", arguments.slot_path(slot), " does not require a gradient, ", why}));
}

/// Refuses a tensor that requires a gradient but would not get the gradient of an eager call.
template <class In = void>
[[gnu::cold]] void check_inputs(const program& p, const dependent<In, bound_call>& call,
                                const call_arguments& arguments) {
  for (int i = 0; i < p.count.slots; ++i) {
    const slot_binding& b = call.slots[i];
    if (p.slots[i].kind != slot_kind::tensor || !b.value->needs_grad) continue;
    if (!b.meta())
      refuse_argument<In>(
          arguments, i,
          " is computed from tensors that require a gradient, to which backward() in a compiled "
          "function does not go on; pass x.detach(), or leave backward() out of the body and call "
          "it on what the function returns");
    if (p.slots[i].entangled)
      refuse_argument<In>(arguments, i,
                          " requires a gradient, and the function changes it in place by a value "
                          "with other gradients, or calls backward() in a loop, which ends at "
                          "arguments; write x = x + y for x += y, or pass x.detach()");
  }
}

/// Whether a call replaces a tensor's value or gradient record that has no other owner.
[[gnu::cold, gnu::noinline]] inline bool is_unseen_gradient(const program_slot& s,
                                                            const slot_binding& b) {
  const int handles = 2;  // references of the caller, and of this call
  return s.writes_value && s.writes_gradient && b.value->meta && b.value->meta->refs == 1 &&
         b.value->refs == handles;
}

/// Fills in bound_call::absent.
template <class In = void>
[[gnu::cold]] void note_absent(const program& p, dependent<In, bound_call>& call,
                               const call_arguments& arguments) {
  for (int i = 0; i < p.count.slots; ++i) {
    const program_slot& s = p.slots[i];
    if (s.use == gradient_use::none) continue;
    const bool tensor = s.kind == slot_kind::tensor;
    if (tensor && is_unseen_gradient(s, call.slots[i])) call.note(i, unseen_gradient);
    const grad_meta* m = call.slots[i].meta();
    const bool there = m && m->grad, read = s.use == gradient_use::read;
    if (read ? there || (s.mixed && !tensor) : m ? m->requires_grad : !tensor) continue;
    if (read && tensor)
      refuse_argument<In>(arguments, i,
                          " has no gradient, which the function reads; call backward() of what was "
                          "computed from it, which requires_grad_(), first");
    if (!read && there && s.grad_leaf >= 0 && !tensor)
      refuse_frozen<In>(arguments, i,
                        "but has one from before, which the function would add to; call "
                        "zero_grad() first");
    call.note(i, no_gradient);
  }
}

/// Checks that the step's use of gradients is defined without those of frozen parameters.
template <class In = void>
[[gnu::cold]] void check_absent(const program& p, const dependent<In, bound_call>& call,
                                const call_arguments& arguments) {
  if (call.absent.empty()) return;
  int collected = 0, absent = 0;
  bool others = false;
  for (int i = 0; i < p.count.slots; ++i) {
    const program_slot& s = p.slots[i];
    if (s.use != gradient_use::collected) continue;
    ++collected;
    others |= s.not_alone;
    if (!call.lacks_gradient(i)) continue;
    ++absent;
    if (s.mixed && s.kind == slot_kind::tensor)
      refuse_frozen<In>(arguments, i,
                        "which the function reads or replaces; call requires_grad_() on it, before "
                        "or in the body");
    if (s.mixed || s.leaf < 0)
      refuse_frozen<In>(
          arguments, i,
          "but the function uses it for more than the update of this parameter; if it is combined "
          "with others, as in a norm, write optim::gradient_part(p, x)");
  }
  if (absent > 0 && absent == collected && !others)
    throw runtime_error("backward: nothing that this value was computed from requires a gradient");
}

template <class In = void>
[[noreturn, gnu::cold]] void refuse_repeat(const call_arguments& arguments, int slot, int again) {
  throw runtime_error(join(
      {"xla::compile: ", arguments.slot_path(again), " is the same as ", arguments.slot_path(slot),
       ", and the function changes it: a compiled function takes what it changes "
       "once; pass it once and use that twice in the body, or pass a copy"}));
}

template <class In>
const void* owner_of(const program& p, const dependent<In, bound_call>& call, int slot) {
  return call.slots[slot].owner(p.slots[slot].use != gradient_use::none);
}
/// Whether a call changes something that two slots share: one tensor or parameter; or, for copies
/// of a tensor, the gradient.
template <class In>
bool changes_both(const program& p, const dependent<In, bound_call>& call, int a, int b) {
  const bool copies = call.slots[a].target != call.slots[b].target && !call.slots[a].bound_cell;
  const auto any = [&](int slot) {
    const program_slot& s = p.slots[slot];
    const bool absent = s.kind == slot_kind::tensor && call.lacks_gradient(slot);
    return copies ? s.writes_gradient && !absent : changes(s, absent);
  };
  return any(a) || any(b);
}

template <class In = void>
[[gnu::cold]] void find_repeats(const program& p, dependent<In, bound_call>& call,
                                const call_arguments& arguments) {
  const int n = call.slots.size();
  int mask = 15;
  while (mask < 2 * n) mask = 2 * mask + 1;
  list<int>& table = call.by_owner;  // 1 + slot, by the owner's address
  table.assign(mask + 1, 0);
  call.distinct.assign(n, nullptr);
  for (int i = 0; i < n; ++i) {
    const void* const owner = call.distinct[i] = owner_of<In>(p, call, i);
    if (!owner) continue;
    int at = static_cast<int>(reinterpret_cast<std::uintptr_t>(owner) >> 4) & mask;
    for (; table[at] > 0; at = (at + 1) & mask) {
      const int k = table[at] - 1;
      if (owner_of<In>(p, call, k) != owner || !changes_both<In>(p, call, k, i)) continue;
      call.distinct.clear();
      refuse_repeat<In>(arguments, k, i);
    }
    table[at] = i + 1;
  }
}

/// Refuses an argument that is passed twice and changed, because a program assumes that slots are
/// distinct. The result is cached: the check is skipped while calls have the same owners.
template <class In = void>
void check_repeats(const program& p, dependent<In, bound_call>& call,
                   const call_arguments& arguments) {
  const int n = call.slots.size();
  bool known = call.distinct.size() == n;
  for (int i = 0; known && i < n; ++i) known = owner_of<In>(p, call, i) == call.distinct[i];
  if (!known) find_repeats<In>(p, call, arguments);
}

template <class In = void>
[[noreturn, gnu::cold]] void refuse_fact(const std::string& path, double actual, double expected) {
  if (std::isinf(expected) && std::isinf(actual))
    throw runtime_error(
        join({"xla::compile: ", path, " says ", expected > 0 ? "evaluation" : "training",
              ", but the function was compiled for ",
              expected > 0 ? "training; call train() on the model first, or eval() on it in the "
                             "function's body, which compiles that for evaluation"
                           : "evaluation; call eval() on the model first"}));
  throw runtime_error(
      join({"xla::compile: ", path, " is ", print_number(actual),
            ", but its type's default constructor makes ", print_number(expected),
            ", and the step was compiled for that; make it a template parameter of the "
            "type, or an xla::Scalar if it is a hyper-parameter"}));
}

/// "axis 1 of argument 0 + 2 is 5": a size, and the argument that it comes from.
template <class In>
[[gnu::cold, gnu::noinline]] void describe_size(text& out, const program& p, extent e,
                                                std::int64_t value,
                                                const call_arguments& arguments) {
  const auto symbol_of = [&](extent of) {
    return is_known(of) ? nullptr : &p.symbols[symbol_index(of)];
  };
  const symbol* s = symbol_of(e);
  std::int64_t more = 0;  // a number added to it
  if (s && (s->kind == '+' || s->kind == '-') && is_known(s->b)) {
    more = s->kind == '+' ? s->b : -s->b;
    s = symbol_of(s->a);
  }
  bool shared = false;  // it contains the number of replicas as a factor
  for (int i = 0; s && s->kind == '*' && i < s->factors; ++i)
    shared |= p.symbols[s->factor[i]].kind == 'w';
  if (shared) {
    out << "what the replicas can divide into equal parts";
  } else if (s && s->kind == 'w') {
    out << "the number of replicas";
  } else if (s && s->kind == 'v') {
    out << "axis " << s->b << " of " << arguments.slot_path<In>(static_cast<int>(s->a));
    if (more != 0) out << (more > 0 ? " + " : " - ") << std::abs(more);
  } else {
    out << "a size";
  }
  out << " is " << value;
}

/// Checks sizes that the body took to be equal, at least as large, or not 0.
template <class In>
[[gnu::cold]] void check_sizes(const program& p, const dependent<In, bound_call>& call,
                               const call_arguments& arguments) {
  if (p.count.equalities == 0) return;
  const auto symbols = evaluate_symbols<In>(p, shapes_of<In>(call));
  for (int i = 0; i < p.count.equalities; ++i) {
    const equality& e = p.equalities[i];
    const std::int64_t a = value_at<In>(symbols, e.a);
    text t;
    if (e.b == equality::hole) {
      if (a != 0) continue;
      t << e.where.function;
    } else {
      const std::int64_t b = value_at<In>(symbols, e.b);
      if (e.at_least ? a >= b : a == b) continue;
      describe_size<In>(t << e.where.function << ": ", p, e.a, a, arguments);
      if (e.at_least) {
        t << " and has to be at least " << b;
      } else {
        describe_size<In>(t << ", ", p, e.b, b, arguments);
        t << "; they have to be equal";
        if (a == 1) suggest_expand<In>(t, p, e.a, e.b, arguments);
        else if (b == 1) suggest_expand<In>(t, p, e.b, e.a, arguments);
      }
    }
    for (int k = i; k < p.count.equalities; ++k) {
      const equality& q = p.equalities[k];
      if (k > i && k - q.of_body > i) continue;
      if (k > i) t << q.where.function;  // the enclosing loop
      t << q.where.at;
    }
    size_scope{nullptr, call_site()}.fail_with(t);
  }
}

/// Plain numbers among the members are facts: the step was captured with their values, so a call
/// must have the same ones. The same holds for training flags that the body has read.
template <class In = void>
void check_facts(const double* facts, const dependent<In, bound_call>& call,
                 const call_arguments& arguments) {
  for (int i = 0; i < call.facts.size(); ++i) {
    if (call.facts[i] == facts[i] || std::isnan(facts[i])) continue;
    refuse_fact<In>(arguments.fact_path(i), call.facts[i], facts[i]);
  }
}

}  // namespace xla::detail
