// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a whole program of known sizes as StableHLO text. ext/stablehlo.hpp prints it, and the
// PJRT backend compiles it.

#include <cstdint>
#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/list.hpp"
#include "xla/base/text.hpp"
#include "xla/ext/stablehlo/loops.hpp"
#include "xla/ext/stablehlo/sharding.hpp"
#include "xla/ext/stablehlo/table.hpp"
#include "xla/run/plan/sized.hpp"

namespace xla::detail {

/// An argument of the StableHLO function of a program.
struct stablehlo_argument {
  enum class role : std::uint8_t {
    value,     ///< a slot's value at entry
    gradient,  ///< the gradient of a slot
    number,    ///< a slot's number
    draw,      ///< the state of the generator for a random op: seed and offset as two ui64
    room,      ///< memory for an output; its content is not read
  };
  role is = role::value;
  int number = 0;  ///< of the slot, the random op or the output
  hlo::tensor_type type;
  int output = -1;  ///< the output that is written to its memory (donation); -1: none
  sharding sharded_as = {};
};

/// A program as StableHLO. Its results are the program's writes and then its results. Its arguments
/// are the slots, the random states, and memory for outputs.
struct stablehlo_program {
  std::string text;
  list<stablehlo_argument> arguments;
  int partitions = 1;     ///< devices over which XLA partitions it
  list<sharding> shardings;  ///< per output: how those devices shard it
};

/// Options of the text.
struct stablehlo_wording {
  bool rooms = false;          ///< outputs that replace no argument get memory as an argument
  bool for_processor = false;  ///< the text is for XLA's CPU backend
};

namespace hlo {

/// Writes one program.
class program_writer {
 public:
  program_writer(const sized_program& p, const stablehlo_wording& how)
      : p_(p), values_(p.source.count.values) {
    lines_.for_processor = how.for_processor;
    find_mesh();
    add_slots();
    for (int r = 0; r < p_.counters.size(); ++r)
      draws_.push_back(add(
          {.is = role::draw, .number = r, .type = {element::i64, {1, {2}}}, .sharded_as = mesh_}));
    give_memory(how.rooms);
    find_wanted();
    for (int v = 0; v < p_.source.count.values; ++v)
      if (wanted_[v] && at(v).loop == 0) write(v);
  }
  stablehlo_program take() {
    std::string text = module_text();
    list<sharding> shardings;
    for (int i = 0; i < outputs(); ++i) shardings.push_back(sharding_of_output(i));
    return {std::move(text), std::move(arguments_), mesh_.devices(), std::move(shardings)};
  }

 private:
  using role = stablehlo_argument::role;

  const node& at(int v) const { return p_.source.values[v]; }
  int outputs() const { return p_.source.count.writes + p_.source.count.results; }
  tensor_type type_of(int v) const { return {element_of(at(v).type), p_.shapes[v]}; }

  value add(const stablehlo_argument& a) {
    arguments_.push_back(a);
    return {-1, arguments_.size() - 1, -1, a.type};
  }
  // Sharding annotations for one device have no effect.
  void find_mesh() {
    for (int i = 0; i < p_.source.count.slots; ++i) {
      const sharding& s = p_.source.slots[i].sharded_as;
      if (s.devices() == 1) continue;
      if (mesh_.devices() > 1 && mesh_ != s.replicated())
        throw runtime_error(
            "xla::mark_sharding: the arguments of a compiled function are marked by one mesh, and "
            "here are two");
      mesh_ = s.replicated();
    }
  }
  // The sharding of a slot. An optimizer's state may have other sizes than its parameter.
  sharding sharding_of(int slot, const shape& dims) const {
    const sharding& s = p_.source.slots[slot].sharded_as;
    return s.devices() > 1 && s.fits(dims) ? s : mesh_;
  }
  void add_slots() {
    for (int i = 0; i < p_.source.count.slots; ++i) {
      const program_slot& s = p_.source.slots[i];
      if (s.kind == slot_kind::scalar) add_number_of(i);
      if (s.leaf >= 0) add_leaf(s.leaf, role::value, i);
      if (s.grad_leaf >= 0) add_leaf(s.grad_leaf, role::gradient, i);
    }
  }
  void add_number_of(int slot) {
    for (int v = 0; v < p_.source.count.values; ++v)
      if (detail::is<op::scalar>(at(v)) && at(v).attributes<op::scalar>().slot == slot)
        add_leaf(v, role::number, slot);
  }
  void add_leaf(int v, role is, int slot) {
    const sharding s = is == role::number ? mesh_ : sharding_of(slot, p_.shapes[v]);
    values_[v] = list_of({add({.is = is, .number = slot, .type = type_of(v), .sharded_as = s})});
  }

  // An output is written to the memory of the slot that it replaces, or to an argument for it.
  void give_memory(bool rooms) {
    for (int i = 0; i < outputs(); ++i) {
      const tensor_type type = type_of(output_of(p_.source, i));
      stablehlo_argument* const old = i < p_.source.count.writes ? replaced(i, type) : nullptr;
      if (old) old->output = i;
      else if (rooms) add({.is = role::room, .number = i, .type = type, .output = i});
    }
  }
  stablehlo_argument* replaced(int i, const tensor_type& type) {
    const detail::write& w = p_.source.writes[i];
    const role is = w.gradient ? role::gradient : role::value;
    for (stablehlo_argument& a : arguments_)
      if (a.is == is && a.number == w.slot && a.type == type && a.output < 0) return &a;
    return nullptr;
  }

  void find_wanted() {
    wanted_.assign(p_.source.count.values, false);
    for (int i = 0; i < outputs(); ++i) wanted_[output_of(p_.source, i)] = true;
    for (int v = p_.source.count.values - 1; v >= 0; --v)
      if (wanted_[v])
        for (int k = 0; k < at(v).arity; ++k) wanted_[p_.source.inputs_of(v)[k]] = true;
  }

  void write(int v) {
    const node& n = at(v);
    if (!values_[v].empty()) return;
    if (detail::is<op::output>(n)) {
      const value& one = values_[n.in[0]][n.attributes<op::output>().number];
      values_[v] = list_of({one});
      return;
    }
    if (detail::is<op::loop>(n)) {
      lines_.begin(v);
      while_writer loop(lines_, p_, v, wanted_, values_, draws_);
      loop.write([this](int inner) { write(inner); });
      return;
    }
    const lowering_entry& lowering = find_lowering(*n.op);
    if (!lowering.write)
      throw runtime_error(join({"xla::stablehlo: ", n.op->name, ": ", lowering.refused}));
    list<value> inputs;
    for (int k = 0; k < n.arity; ++k) inputs.push_back(values_[p_.source.inputs_of(v)[k]][0]);
    lines_.begin(v);
    values_[v] = lowering.write(lines_, lowering_call(p_, v, std::move(inputs), draws_.data()));
  }

  std::string module_text() const {
    std::string out = "module @xla {\n  func.func public @main(";
    for (int i = 0; i < arguments_.size(); ++i) add_argument(out, i);
    out += ") -> (";
    add_outputs(out, true);
    out += ") {\n";
    out += lines_.text();
    out += "    func.return";
    if (outputs() > 0) {
      for (int i = 0; i < outputs(); ++i) {
        out += i > 0 ? ", " : " ";
        writer::add_name(out, values_[output_of(p_.source, i)][0]);
      }
      out += " : ";
      add_outputs(out);
    }
    return out += "\n  }\n}\n";
  }
  void add_argument(std::string& out, int i) const {
    const stablehlo_argument& a = arguments_[i];
    if (i > 0) out += ", ";
    writer::add_name(out, {-1, i, -1, a.type});
    out += ": ";
    add_type(out, a.type);
    std::string attributes;
    if (mesh_.devices() > 1) attributes = sharding_text(a.sharded_as, a.type.dims.rank);
    if (a.output >= 0) {
      attributes += attributes.empty() ? "tf.aliasing_output = " : ", tf.aliasing_output = ";
      add_number(attributes, a.output);
      attributes += " : i32";
    }
    if (!attributes.empty()) out += " {" + attributes + "}";
  }
  void add_outputs(std::string& out, bool with_shardings = false) const {
    for (int i = 0; i < outputs(); ++i) {
      const tensor_type type = type_of(output_of(p_.source, i));
      if (i > 0) out += ", ";
      add_type(out, type);
      if (with_shardings && mesh_.devices() > 1)
        out += " {" + sharding_text(sharding_of_output(i), type.dims.rank) + "}";
    }
  }
  sharding sharding_of_output(int i) const {
    for (const stablehlo_argument& a : arguments_)
      if (a.output == i) return a.sharded_as;
    if (i >= p_.source.count.writes) return mesh_;
    const detail::write& w = p_.source.writes[i];  // usually of a gradient
    return sharding_of(w.slot, p_.shapes[w.value]);
  }

  const sized_program& p_;
  writer lines_;
  list<stablehlo_argument> arguments_;
  list<value> draws_;
  list<list<value>> values_;  // per value of the program: the StableHLO value of its node
  list<char> wanted_;
  sharding mesh_;  // with no axis sharded
};

}  // namespace hlo

/// The first op of a program that cannot be lowered; nullptr if there is none.
inline const op_info* without_stablehlo(const program& p) {
  for (int v = 0; v < p.count.values; ++v) {
    const hlo::lowering_entry& lowering = hlo::find_lowering(*p.values[v].op);
    if (!lowering.write && !lowering.refused.empty()) return p.values[v].op;
  }
  return nullptr;
}
/// The error sentence about it.
inline std::string_view why_not_stablehlo(const op_info& op) {
  return hlo::find_lowering(op).refused;
}

/// A program of known sizes as text, one op per step. An op that cannot be lowered is a
/// runtime_error with its name.
inline stablehlo_program write_stablehlo(const sized_program& p,
                                         const stablehlo_wording& how = {}) {
  return hlo::program_writer(p, how).take();
}

}  // namespace xla::detail
