// SPDX-License-Identifier: Apache-2.0
#pragma once

// Creation functions with a device argument: randn<float>({4, 2}, device). In a compiled body the
// device of an argument, x.device(), allows the random ones. All throw `xla::error` for a device
// that does not exist.

#include "xla/op/derived/range.hpp"
#include "xla/op/derived/triangle.hpp"
#include "xla/op/integers.hpp"

namespace xla {
namespace detail {

/// Calls make() on a device, to which its result belongs.
template <class T, class Make>
constexpr auto made_on(const Device& device, const call_site& site, const Make& make) {
  device.check<T>(site);
  const working_on<T> there(device.index);
  auto made = make();
  if (!__builtin_is_constant_evaluated()) machine_of<T>::settle(made);
  return made;
}

}  // namespace detail

template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> full(const Size (&sizes)[N], detail::number_of<T> value,
                                              const Device& device, caller loc = here()) {
  return detail::made_on<T>(device, {"full", loc}, [&] { return full<T>(sizes, value, loc); });
}
template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> zeros(const Size (&sizes)[N], const Device& device,
                                               caller loc = here()) {
  return detail::made_on<T>(device, {"zeros", loc}, [&] { return zeros<T>(sizes, loc); });
}
template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> ones(const Size (&sizes)[N], const Device& device,
                                              caller loc = here()) {
  return detail::made_on<T>(device, {"ones", loc}, [&] { return ones<T>(sizes, loc); });
}
template <element T = std::int64_t>
constexpr Tensor<T, 1> arange(Size n, const Device& device, caller loc = here()) {
  return detail::made_on<T>(device, {"arange", loc}, [&] { return arange<T>(n, loc); });
}
template <element T = float>
constexpr Tensor<T, 2> eye(Size n, const Device& device, caller loc = here()) {
  return detail::made_on<T>(device, {"eye", loc}, [&] { return eye<T>(n); });
}
template <element T = float>
constexpr Tensor<T, 1> linspace(std::type_identity_t<T> start, std::type_identity_t<T> end,
                                Size count, const Device& device, caller loc = here()) {
  return detail::made_on<T>(device, {"linspace", loc},
                            [&] { return linspace<T>(start, end, count); });
}
template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> rand(const Size (&sizes)[N], const Device& device,
                                              caller loc = here()) {
  return detail::made_on<T>(device, {"rand", loc}, [&] {
    return detail::random<op::uniform, T, static_cast<int>(N)>(
        detail::to_shape(sizes, {"rand", loc}, 0), detail::table_of(sizes, device));
  });
}
template <element T = float, std::size_t N>
constexpr Tensor<T, static_cast<int>(N)> randn(const Size (&sizes)[N], const Device& device,
                                               caller loc = here()) {
  return detail::made_on<T>(device, {"randn", loc}, [&] {
    return detail::random<op::normal, T, static_cast<int>(N)>(
        detail::to_shape(sizes, {"randn", loc}, 0), detail::table_of(sizes, device));
  });
}
template <std::size_t N>
constexpr Tensor<std::int64_t, static_cast<int>(N)> randint(std::int64_t low, std::int64_t high,
                                                            const Size (&sizes)[N],
                                                            const Device& device,
                                                            caller loc = here()) {
  return detail::made_on<std::int64_t>(device, {"randint", loc}, [&] {
    return detail::random_integers<std::int64_t, static_cast<int>(N)>(
        low, high, detail::to_shape(sizes, {"randint", loc}, 0), detail::table_of(sizes, device),
        loc);
  });
}
template <element T, std::size_t N>
Tensor<T, static_cast<int>(N)> from_blob(const T* data, const Size (&sizes)[N],
                                         const Device& device, caller loc = here()) {
  return detail::made_on<T>(device, {"from_blob", loc},
                            [&] { return from_blob(data, sizes, loc); });
}

}  // namespace xla
