// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <memory>
#include <string>

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
inline std::string print_number(double v) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", v);
  return buffer;
}

/// A node's sizes, and their layout where that is not row-major: "(s0, 128){0,1}".
template <class = void>
inline std::string print_laid_out(const node& n, layout order) {
  if (order.is_row_major()) return print_dims(n.dims_shape());
  shape s = n.dims_shape();
  for (int i = 0; i < s.rank; ++i) s[order.axis(i)] = n.dims[i];
  return print_dims(s) + std::string(print_layout(order, s.rank).view());
}

/// One line: "%12 = matmul(%3, %7) attr=2 : float32 (s0, 128)".
template <class = void>
inline std::string print_node(int index, const node& n, layout order = {}) {
  std::string out = "%" + std::to_string(index) + " = " + std::string(n.op->name);
  if (is<op::input>(n)) {
    out += n.attr % 2 ? " gradient of slot " : " slot ";
    out += std::to_string(n.attr / 2);
  } else if (is<op::constant>(n)) {
    out += " " + print_number(n.value);
  } else if (is<op::scalar>(n)) {
    out += " slot " + std::to_string(n.attr);
  } else if (is<op::size>(n)) {
    out += " " + print_extent(n.size);
  } else {
    out += "(";
    for (int k = 0; k < n.arity; ++k) out += (k ? ", %" : "%") + std::to_string(n.in[k]);
    out += ")";
    if (n.attr) out += " attr=" + std::to_string(n.attr);
    if (n.size) out += " size=" + print_extent(n.size);
  }
  return out + " : " + std::string(name_of(n.type)) + " " + print_laid_out(n, order) + "\n";
}

/// A graph between two passes, a line for each node that is needed, or all. Behind fuse each says
/// when its step runs, and which region it belongs to.
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
    out += print_node(i, s.g.nodes[i], s.orders ? s.orders[i] : layout{});
  }
  return out;
}

/// A program: values from outside, then its steps; a region shows the ops that its kernel computes.
template <class = void>
inline std::string print(const program& p) {
  std::string out;
  for (int v = 0; v < p.count.values; ++v)
    if (const op_kind k = p.values[v].op->kind;
        k == op_kind::leaf || k == op_kind::constant || k == op_kind::alias || k == op_kind::output)
      out += print_node(v, p.values[v]);
  for (int i = 0; i < p.count.steps; ++i) {
    const step& s = p.steps[i];
    out += "step " + std::to_string(i) + ": ";
    if (s.kind == step_kind::library) {
      out += print_node(s.value, p.values[s.value]);
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
  for (int i = 0; i < p.count.writes; ++i)
    out += std::string("slot ") + std::to_string(p.writes[i].slot) +
           (p.writes[i].gradient ? " gradient" : "") + " = %" + std::to_string(p.writes[i].value) +
           "\n";
  for (int i = 0; i < p.count.results; ++i) out += "return %" + std::to_string(p.results[i]) + "\n";
  return out;
}

}  // namespace xla::detail
