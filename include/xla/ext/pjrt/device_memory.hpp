// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors whose elements are on a plugin's devices: they stay there between calls and are copied to
// the host when it reads them. The memory of a call is call_memory.hpp.

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/base/list.hpp"
#include "xla/base/system/mutex.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/ext/pjrt/mesh_part.hpp"
#include "xla/shape/sharding.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::ext::pjrt {

/// The devices that hold an array: one, or all of a mesh over which it is sharded.
struct array_placement {
  int device = 0;  ///< the first
  xla::detail::sharding sharded_as = {};
  friend constexpr bool operator==(const array_placement&, const array_placement&) = default;
};

/// A tensor's elements on devices. It is the `owner` in buffers of memory_of().
struct device_array {
  const client& on;
  const array_type type;  ///< of the whole array
  const array_placement placement;
  xla::detail::list<abi::buffer*> parts;  ///< of each device in turn

  device_array(const client& c, const array_type& t, const array_placement& p)
      : on(c), type(t), placement(p) {
    parts.reserve(p.sharded_as.devices());
  }
  /// From elements on the host in row-major order.
  device_array(const client& c, const array_type& t, const array_placement& p, const void* data)
      : device_array(c, t, p) {
    for (int d = 0; d < p.sharded_as.devices(); ++d) parts.push_back(send(data, d));
  }
  device_array(const device_array&) = delete;
  ~device_array() {
    for (abi::buffer* const b : parts) on.drop(b);
  }
  /// Waits for the elements, and copies them to the host in row-major order.
  void read(void* to) const;

  /// The elements of a buffer; a buffer whose computation has failed has none.
  static device_array& of(const xla::detail::buffer& b) {
    if (!b.owner) refuse();
    return *static_cast<device_array*>(b.owner);
  }
  [[noreturn, gnu::cold]] static void refuse() {
    throw runtime_error(
        "pjrt: a value was read or used whose program has failed; compute it again");
  }

 private:
  mesh_part part_of(int device) const {
    return {placement.sharded_as, type.sizes, device, facts_of(type.type).bytes};
  }
  abi::buffer* send(const void* data, int device) const;
};

inline abi::buffer* device_array::send(const void* data, int device) const {
  const mesh_part part = part_of(device);
  const array_type of_part{type.type, part.dims()};
  if (of_part == type) return on.put(data, type, host_memory::copied, placement.device + device);
  const auto copy = std::make_unique<char[]>(of_part.bytes());
  part.take_out(data, copy.get());
  return on.put(copy.get(), of_part, host_memory::copied, placement.device + device);
}

inline void device_array::read(void* to) const {
  for (int d = 0; d < parts.size(); ++d) {
    const mesh_part part = part_of(d);
    const array_type of_part{type.type, part.dims()};
    if (of_part == type) return on.read(parts[d], type, to);  // each device has all of it
    const auto copy = std::make_unique<char[]>(of_part.bytes());
    on.read(parts[d], of_part, copy.get());
    part.put_in(copy.get(), to);
  }
}

namespace detail {

inline void release_array(void* owner) { delete static_cast<device_array*>(owner); }

inline void copy_array_to_host(void* owner, void* to, std::size_t) {
  if (!owner) device_array::refuse();
  static_cast<const device_array*>(owner)->read(to);
}

inline xla::detail::buffer* make_without(const xla::detail::memory_space& there,
                                         std::size_t bytes) {
  return xla::detail::buffer::borrow({&there}, bytes);
}

/// Copies on devices of a tensor that is stored elsewhere. The tensor's buffer caches them until it
/// is written.
class device_copy final : public xla::detail::cached_form {
 public:
  explicit device_copy(std::unique_ptr<device_array> a)
      : cached_form(&kind_of_these), array_(std::move(a)) {}
  /// The copy of a buffer on that client, as an array of that type. Tensors of other shapes may
  /// share the buffer, and a device may order their elements differently.
  static const device_array* find(const xla::detail::buffer& of, const client& on,
                                  const array_type& type, const array_placement& placement) {
    for (auto* k = of.forms.load(std::memory_order_acquire); k; k = k->next)
      if (k->kind == &kind_of_these)
        if (const device_array& a = *static_cast<device_copy*>(k)->array_;
            &a.on == &on && a.type == type && a.placement == placement)
          return &a;
    return nullptr;
  }

 private:
  static constexpr char kind_of_these = 0;
  const std::unique_ptr<device_array> array_;
};

}  // namespace detail

/// The memory space of a client's devices. A buffer in it has a device_array.
inline const xla::detail::memory_space& memory_of(const client& c) {
  struct registry {
    sys::mutex mutex;
    std::map<const client*, xla::detail::memory_space> all;
  };
  static registry& r = *new registry;
  const std::lock_guard hold(r.mutex);
  return r.all
      .try_emplace(&c, xla::detail::memory_space{.release = &detail::release_array,
                                                 .copy_to_host = &detail::copy_array_to_host,
                                                 .make = &detail::make_without})
      .first->second;
}

/// The elements of a buffer in row-major order on the host. They are copied once. The caller has
/// waited for the buffer; elements that were on the host are row-major already.
inline const void* host_copy_of(xla::detail::buffer& b, std::size_t bytes) {
  using xla::detail::buffer_cache;
  if (const void* const host_copy = b.host_copy.load(std::memory_order_acquire)) return host_copy;
  struct block {
    void* data;
    ~block() { xla::detail::heap_free(data, buffer_cache::alignment); }
  } copy{xla::detail::heap_allocate(bytes, buffer_cache::alignment, {})};
  b.space->copy_to_host(b.owner, copy.data, bytes);
  void* first = nullptr;
  return b.host_copy.compare_exchange_strong(first, copy.data) ? std::exchange(copy.data, nullptr)
                                                               : first;
}

}  // namespace xla::ext::pjrt
