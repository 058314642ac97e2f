// SPDX-License-Identifier: Apache-2.0
#pragma once

// Graphs and programs as text, for XLA_DEBUG, graph() of compiled functions, and profiles. It runs
// at run time only; StableHLO's text is ext/stablehlo/.

#include <cstdio>
#include <memory>
#include <string>

#include "xla/op/collectives.hpp"
#include "xla/transform/micro_op.hpp"
#include "xla/transform/pass.hpp"
#include "xla/transform/program.hpp"

namespace xla::detail {

template <class = void>
inline std::string print_extent(extent e) {
  return is_known(e) ? std::to_string(e) : "s" + std::to_string(symbol_index(e));
}

template <class = void>
inline std::string print_dims(const shape& s) {
  std::string out = "(";
  for (int i = 0; i < s.rank; ++i) out += (i ? ", " : "") + print_extent(s[i]);
  return out + (s.rank == 1 ? ",)" : ")");
}

template <class = void>
[[gnu::cold]] inline std::string print_number(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", v);
  return buffer;
}

/// A node's sizes, and their layout unless it is row-major: "(s0, 128){0,1}".
template <class = void>
inline std::string print_laid_out(const node& n, layout order) {
  if (order.is_row_major()) return print_dims(n.dims_shape());
  shape s = n.dims_shape();
  for (int i = 0; i < s.rank; ++i) s[order.axis(i)] = n.dims[i];
  return print_dims(s) + std::string(print_layout(order, s.rank).view());
}

/// One value of a field.
template <class = void>
inline std::string print_field(const attribute_field& f, std::uint64_t bits) {
  switch (f.kind) {
    case field_kind::flag: return bits ? "true" : "false";
    case field_kind::integer:
      return std::to_string(f.bits == 64 ? static_cast<std::int64_t>(bits)
                                         : static_cast<std::int32_t>(bits));
    case field_kind::number: return std::to_string(f.least + static_cast<std::int64_t>(bits));
    case field_kind::real: return print_number(std::bit_cast<double>(bits));
    case field_kind::optional: return std::to_string(field_type<optional_number>::decode(bits));
    case field_kind::axis: return std::to_string(bits);
    case field_kind::axes: {
      std::string all;
      for (int i = 0; i < max_rank; ++i)
        if (axis_set::of_bits(bits).has(i)) all += (all.empty() ? "" : ", ") + std::to_string(i);
      return "{" + all + "}";
    }
    case field_kind::order: {
      const auto order = axis_order::of_bits(bits);
      std::string all;
      for (int i = 0; i < order.rank(); ++i) all += (i ? ", " : "") + std::to_string(order[i]);
      return "(" + all + ")";
    }
    case field_kind::choice: return std::string(f.name_of(bits));
    case field_kind::products: return bits ? "bfloat16" : "float32";
    case field_kind::size: break;
  }
  return print_extent(static_cast<extent>(bits));
}

/// Attributes by name: " over {0, 2}", " axis 1 step 2", " transpose_b"; an array in brackets.
template <class = void>
std::string print_attributes(std::span<const attribute_field> fields, const packed_attributes& p) {
  std::string out;
  int at = 0;
  for (const attribute_field& f : fields) {
    auto next = [&] {
      if (f.kind == field_kind::size) return static_cast<std::uint64_t>(p.size);
      const int first = field_begin(at, f.bits);
      at = first + f.bits;
      return field_bits(p, first, f.bits);
    };
    const std::uint64_t first = next();
    std::string value = print_field(f, first);
    for (int i = 1; i < f.count; ++i) value += ", " + print_field(f, next());
    if (f.count > 0) value = "(" + value + ")";
    const bool alone = f.count == 0;
    const bool said = f.kind != field_kind::optional && f.kind != field_kind::products;
    if (alone && !said && first == 0) continue;
    if (alone && f.kind == field_kind::flag) out += first ? " " + std::string(f.name) : "";
    else out += " " + std::string(f.kind == field_kind::axes ? "over" : f.name) + " " + value;
  }
  return out;
}

/// One line for a node that reads these: "%12 = matmul(%3, %7) transpose_b : float32 (s0, 128)".
template <class = void>
inline std::string print_node(int index, const node& n, const int* in, layout order = {}) {
  std::string out = "%" + std::to_string(index) + " = " + std::string(n.op->name);
  if (n.op->kind != op_kind::leaf && n.op->kind != op_kind::constant) {
    out += "(";
    for (int k = 0; k < n.arity; ++k) out += (k ? ", %" : "%") + std::to_string(in[k]);
    out += ")";
  }
  out += is<op::constant>(n) ? " " + print_number(n.attributes<op::constant>().value)
                             : print_attributes(n.op->fields, n.attr);
  return out + " : " + std::string(name_of(n.type)) + " " + print_laid_out(n, order) + "\n";
}

/// A graph between two passes, one line for each needed node, or for all. After fuse each line has
/// the stage of its step, and its region.
template <class = void>
inline std::string print(const pass_state& s, bool all = false) {
  const std::unique_ptr<bool[]> needed(new bool[s.room()]);
  s.mark_needed(needed.get());
  std::string out;
  for (int i = 0; i < s.g.count; ++i) {
    if (!all && !needed[static_cast<std::size_t>(i)]) continue;
    if (s.stage) {
      out += "stage " + std::to_string(s.stage_at(i));
      if (const int r = s.region_of[i]; r >= 0) out += " region " + std::to_string(r);
      out += ": ";
    }
    const node& n = s.g.nodes[i];
    for (int l = n.loop; l != 0; l = s.g.loops[l - 1].parent) out += "  ";
    out += print_node(i, n, s.g.inputs(n), s.orders ? s.orders[i] : layout{});
  }
  return out;
}

/// The steps of a program, one line each; a region shows the ops that its kernel computes. Those of
/// a loop's body are below it, indented and prefixed with its number.
template <class = void>
inline std::string print_steps(const program& p, const step* steps, int count,
                               const std::string& before = "step ") {
  std::string out;
  for (int i = 0; i < count; ++i) {
    const step& s = steps[i];
    const std::string name = before + std::to_string(i);
    (out += name) += ": ";
    if (s.kind == step_kind::library) {
      out += print_node(s.value, p.values[s.value], p.inputs_of(s.value));
      if (s.body > 0) out += print_steps(p, p.bodies + s.first_body, s.body, "  " + name + ".");
      continue;
    }
    out += s.kind == step_kind::row ? "row" : "map";
    out += " kernel " + std::to_string(s.kernel) + " over " + print_dims(p.spaces[s.space]) + ":";
    for (int w = 0; p.word_ops && w < s.words; ++w)
      if (const op_info* op = p.word_ops[s.first_word + w]) out += " " + std::string(op->name);
    out += " reads";
    for (int k = 0; k < s.inputs; ++k) out += " %" + std::to_string(p.inputs[s.first_input + k]);
    out += " writes";
    for (int k = 0; k < s.outputs; ++k) out += " %" + std::to_string(p.outputs[s.first_output + k]);
    out += "\n";
  }
  return out;
}

/// A program: values that no step computes, such as those from outside and stacks that loops read
/// or write part by part, then its steps.
template <class = void>
inline std::string print(const program& p) {
  std::string out;
  const std::unique_ptr<bool[]> made(new bool[static_cast<std::size_t>(p.count.values)]());
  for (int i = 0; i < p.count.steps + p.count.bodies; ++i) {
    const step& s = p.steps[i];  // a library step's first output is its own line
    for (int k = 0; k < (s.kind == step_kind::library ? 1 : s.outputs); ++k)
      made[static_cast<std::size_t>(p.outputs[s.first_output + k])] = true;
  }
  for (int v = 0; v < p.count.values; ++v)
    if (!made[static_cast<std::size_t>(v)]) out += print_node(v, p.values[v], p.inputs_of(v));
  out += print_steps(p, p.steps, p.count.steps);
  for (int i = 0; i < p.count.writes; ++i)
    out += std::string("slot ") + std::to_string(p.writes[i].slot) +
           (p.writes[i].gradient ? " gradient" : "") + " = %" + std::to_string(p.writes[i].value) +
           "\n";
  for (int i = 0; i < p.count.results; ++i) out += "return %" + std::to_string(p.results[i]) + "\n";
  return out;
}

}  // namespace xla::detail
