// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "xla/base/error.hpp"
#include "xla/base/hash.hpp"
#include "xla/base/instance.hpp"
#include "xla/base/join.hpp"
#include "xla/run/world/replica.hpp"

namespace xla::detail {

/// What an exchange is without its elements, in bytes that can be sent: equal on all replicas, or
/// they are not at the same place of the same program.
struct exchange_summary {
  exchange::kind what = exchange::kind::barrier;
  reduce_type how = reduce_type::sum;
  dtype type = dtype::float32;
  bool of_program = false;
  std::int32_t root = 0;
  std::int64_t elements = 0;
  std::uint64_t places = 0;  ///< a hash of the pieces' sizes, and of the pairs
  fingerprint program;
};

template <class = void>
exchange_summary summary_of(const exchange& e) {
  exchange_summary s;
  s.what = e.what;
  s.how = e.how;
  s.type = e.type;
  s.of_program = e.program != nullptr;
  s.root = e.root;
  for (int i = 0; i < e.piece_count; ++i) {
    s.elements += e.pieces[i].count;
    s.places = mix(s.places, static_cast<std::uint64_t>(e.pieces[i].count));
  }
  for (int i = 0; i < e.pair_count; ++i)
    s.places = mix(mix(s.places, static_cast<std::uint64_t>(e.pairs[i].from)),
                   static_cast<std::uint64_t>(e.pairs[i].to));
  if (e.program) s.program = *e.program;
  return s;
}

/// "all_reduce (mean) of 12 float32"
template <class = void>
[[gnu::cold]] std::string describe(const exchange_summary& s) {
  if (s.what == exchange::kind::barrier) return "barrier";
  return join({name_of(s.what), combines(s.what) ? join({" (", name_of(s.how), ")"}) : "", " of ",
               std::to_string(s.elements), " ", name_of(s.type)});
}

/// What a replica does otherwise than another one, which has a name: "runs another program than
/// replica 0".
template <class = void>
[[gnu::cold]] std::string how_it_differs(const exchange_summary& s, const exchange_summary& other,
                                         std::string_view name) {
  if (s.of_program && other.of_program) {
    const fingerprint &a = s.program, &b = other.program;
    if (a.options != b.options)
      return join({"has other passes or options than ", name,
                   ", or is compiled for other vector registers"});
    if (a.structure != b.structure) return join({"runs another program than ", name});
    if (a.sizes != b.sizes) return join({"has other sizes or element types than ", name});
    if (a.seed != b.seed) return join({"has another seed of random numbers than ", name});
  }
  const std::string mine = describe(s), its = describe(other);
  if (mine != its) return join({"is at ", mine, ", and ", name, " at ", its});
  return join({"has another root, other parts or other pairs in ", mine, " than ", name});
}

/// Whether two replicas do the same.
constexpr bool same(const exchange_summary& a, const exchange_summary& b) {
  return a.what == b.what && a.how == b.how && a.type == b.type && a.root == b.root &&
         a.elements == b.elements && a.places == b.places &&
         (!a.of_program || !b.of_program || a.program == b.program);
}

/// "replica 1 of 4"
template <class = void>
[[gnu::cold]] std::string replica_name(int ordinal, int world_size) {
  return join({"replica ", std::to_string(ordinal), " of ", std::to_string(world_size)});
}

/// The error that ends a world: "replica 1 of 4: <what was thrown there>".
template <class = void>
[[gnu::cold]] std::exception_ptr error_of_replica(int ordinal, int world_size,
                                                  std::exception_ptr cause) noexcept try {
  std::string why = "something that is no std::exception";
  try {
    std::rethrow_exception(cause);
  } catch (const replica_error&) {
    return cause;
  } catch (const std::exception& e) {
    why = e.what();
  } catch (...) {}
  return std::make_exception_ptr(
      replica_error(join({replica_name(ordinal, world_size), ": ", why}), ordinal, cause));
} catch (...) {
  return cause;  // there is no memory for a sentence
}

}  // namespace xla::detail
