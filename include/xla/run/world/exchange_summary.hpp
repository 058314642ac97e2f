// SPDX-License-Identifier: Apache-2.0
#pragma once

// The description of an exchange that a replica sends to the others when it starts, so that a
// mismatch is an error on all of them instead of a deadlock. Worlds of threads and of MPI compare
// it; the elements travel separately.

#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/text.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// An exchange without its elements, in bytes that can be sent: equal on all replicas, unless they
/// are at different points of the program or run different programs.
struct exchange_summary {
  exchange::kind what = exchange::kind::barrier;
  reduce_type how = reduce_type::sum;
  dtype type = dtype::float32;
  std::int32_t root = 0;
  std::int32_t parameter = -1;   ///< the parameter whose gradient the only piece is; -1: none
  std::int32_t of_program = -1;  ///< the replica that runs it; -1: none
  std::int64_t elements = 0;
  std::uint64_t layout = 0;  ///< a hash of the pieces' sizes and parameters, and of the pairs
  fingerprint program;
};

template <class = void>
exchange_summary summary_of(const exchange& e, int ordinal) {
  exchange_summary s;
  s.what = e.what;
  s.how = e.how;
  s.type = e.type;
  s.root = e.root;
  if (e.piece_count == 1) s.parameter = e.pieces[0].parameter;
  for (int i = 0; i < e.piece_count; ++i) {
    s.elements += e.pieces[i].count;
    s.layout = mix(mix(s.layout, static_cast<std::uint64_t>(e.pieces[i].count)),
                   static_cast<std::uint64_t>(e.pieces[i].parameter));
  }
  for (int i = 0; i < e.pair_count; ++i)
    s.layout = mix(mix(s.layout, static_cast<std::uint64_t>(e.pairs[i].from)),
                   static_cast<std::uint64_t>(e.pairs[i].to));
  if (e.program) {
    s.of_program = ordinal;
    s.program = *e.program;
  }
  return s;
}

/// Whether two replicas run the same program, if both run one.
constexpr bool same_program(const exchange_summary& a, const exchange_summary& b) {
  return a.of_program < 0 || b.of_program < 0 || a.program == b.program;
}
/// Whether two replicas make the same exchange.
constexpr bool same(const exchange_summary& a, const exchange_summary& b) {
  return a.what == b.what && a.how == b.how && a.type == b.type && a.root == b.root &&
         a.parameter == b.parameter && a.elements == b.elements && a.layout == b.layout &&
         same_program(a, b);
}
/// The common description of several replicas when another one does the same: programs are compared
/// with the first one present.
constexpr void add_program(exchange_summary& all, const exchange_summary& s) {
  if (all.of_program >= 0) return;
  all.of_program = s.of_program;
  all.program = s.program;
}

/// "all_reduce (mean) of 12 float32, the gradient of parameter 3"
template <class = void>
[[gnu::cold]] std::string describe(const exchange_summary& s) {
  if (s.what == exchange::kind::barrier || s.what == exchange::kind::program)
    return name_of(s.what);
  return join(
      {name_of(s.what), combines(s.what) ? join({" (", name_of(s.how), ")"}) : "", " of ",
       std::to_string(s.elements), " ", name_of(s.type),
       s.parameter < 0 ? "" : ", the gradient of parameter " + std::to_string(s.parameter)});
}

template <class = void>
[[gnu::cold]] std::string how_programs_differ(const fingerprint& a, const exchange_summary& other) {
  const std::string name = "replica " + std::to_string(other.of_program);
  const fingerprint& b = other.program;
  if (a.options != b.options)
    return join({"has other passes or options than ", name,
                 ", or is compiled for another instruction set"});
  if (a.structure != b.structure) return join({"runs another program than ", name});
  if (a.sizes != b.sizes) return join({"has other sizes or element types than ", name});
  return join({"has another seed of random numbers than ", name});
}

/// How a replica's exchange differs from another's, by ordinal: "runs another program than replica
/// 0; all replicas have to do the same".
template <class = void>
[[gnu::cold]] std::string how_it_differs(const exchange_summary& s, const exchange_summary& other,
                                         int ordinal) {
  constexpr std::string_view end = "; all replicas have to do the same";
  if (!same_program(s, other)) return join({how_programs_differ(s.program, other), end});
  const std::string mine = describe(s), its = describe(other), name = std::to_string(ordinal);
  if (mine == its)
    return join(
        {"has another root, other parts or other pairs in ", mine, " than replica ", name, end});
  const bool mixed = s.parameter != other.parameter && s.parameter >= 0 && other.parameter >= 0;
  return join({"is at ", mine, ", and replica ", name, " at ", its, end,
               mixed ? ": a parameter that the loss of one of them does not depend on has no "
                       "gradient there; add 0 * sum(p) of it to the loss"
                     : ""});
}

/// "replica 1 of 4"
template <class = void>
[[gnu::cold]] std::string replica_name(int ordinal, int world_size) {
  return join({"replica ", std::to_string(ordinal), " of ", std::to_string(world_size)});
}

/// The error that ends a world: "replica 1 of 4: <its error message>"; also used for a world within
/// this one that has ended so.
template <class = void>
[[gnu::cold]] std::exception_ptr error_of_replica(int ordinal, int world_size,
                                                  std::exception_ptr cause) noexcept try {
  std::string why = "something that is not a std::exception";
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {}
  return std::make_exception_ptr(
      replica_error(join({replica_name(ordinal, world_size), ": ", why}), ordinal, cause));
} catch (...) {
  return cause;  // there is no memory for a sentence
}

}  // namespace xla::detail
