// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "xla/kernel/map.hpp"
#include "xla/kernel/row.hpp"
#include "xla/transform/capture.hpp"

namespace xla::detail {

template <const auto& Storage, int Index>
struct key_at {
  static constexpr distinct_key where = Storage.keys[Index];
  static constexpr auto value = [] {
    kernel::region_key<where.count> k{};
    for (int i = 0; i < where.count; ++i) k.words[i] = Storage.words[where.first + i];
    return k;
  }();
};

template <std::uint32_t Id>
inline constexpr const char* op_name = op_by_id<Id>::op::name;
template <>
inline constexpr const char* op_name<0> = "";

template <kernel::region_key Key>
const char* name_in_region(int word) {
  static constexpr auto names = []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array{op_name < Key[static_cast<int>(I)].input ? 0
                                                               : Key[static_cast<int>(I)].id > ...};
  }(std::make_index_sequence<static_cast<std::size_t>(Key.size)>{});
  return names[static_cast<std::size_t>(word)];
}

template <kernel::region_key Key, bool Row>
constexpr region_kernel make_region_kernel() {
  if constexpr (Row)
    return {nullptr, &kernel::row_kernel<Key>::run, &kernel::row_kernel<Key>::scratch_bytes,
            &name_in_region<Key>};
  else return {&kernel::map_kernel<Key>::run, nullptr, nullptr, &name_in_region<Key>};
}

/// A step function at given argument types, evaluated by the C++ compiler: its program as static
/// data, and one kernel for each distinct region.
template <class F, class... A>
struct static_program {
  template <int Capacity>
  static constexpr captured<Capacity> attempt = capture<Capacity, F, A...>();

  static constexpr int first = first_capacity<A...>();
  static constexpr int needed = attempt<first>.needed;
  static constexpr int capacity = needed > first ? needed : first;
  static constexpr text why = attempt<capacity>.refused.why;

  static constexpr auto storage = [] {
    constexpr const auto& from = attempt<capacity>;
    program_storage<from.count> s;
    auto copy = [](auto* to, const auto* source, int n) {
      for (int i = 0; i < n; ++i) to[i] = source[i];
    };
    constexpr program::sizes n = from.count;
    copy(s.values, from.values, n.values);
    copy(s.steps, from.steps, n.steps);
    copy(s.inputs, from.inputs, n.inputs);
    copy(s.outputs, from.outputs, n.outputs);
    copy(s.words, from.words, n.words);
    copy(s.keys, from.keys, n.keys);
    copy(s.writes, from.writes, n.writes);
    copy(s.results, from.results, n.results);
    copy(s.slots, from.slots, n.slots);
    copy(s.symbols, from.symbols, n.symbols);
    copy(s.equalities, from.equalities, n.equalities);
    copy(s.spaces, from.spaces, n.spaces);
    return s;
  }();

  static constexpr int fact_count = attempt<capacity>.fact_count;
  static constexpr auto facts = [] {
    std::array<double, static_cast<std::size_t>(fact_count) + 1> f{};
    for (int i = 0; i < fact_count; ++i)
      f[static_cast<std::size_t>(i)] = attempt<capacity>.facts[i];
    return f;
  }();

  template <std::size_t... I>
  static constexpr auto make_kernels(std::index_sequence<I...>) {
    return std::array<region_kernel, sizeof...(I) + 1>{
        make_region_kernel<key_at<storage, static_cast<int>(I)>::value, storage.keys[I].row>()...};
  }
  static constexpr auto kernels =
      make_kernels(std::make_index_sequence<static_cast<std::size_t>(storage.size.keys)>{});
};

}  // namespace xla::detail
