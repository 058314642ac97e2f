// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "xla/base/error.hpp"
#include "xla/ext/pjrt/client.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::ext::pjrt {

/// The elements of a tensor on a device: what memory_of() calls an owner.
struct device_array {
  const client& on;
  array_type type;
  abi::buffer* it = nullptr;

  device_array(const client& c, const array_type& t, abi::buffer* b = nullptr)
      : on(c), type(t), it(b) {}
  device_array(const device_array&) = delete;
  ~device_array() { on.drop(it); }

  /// That of a buffer; what was to be made and has failed has none.
  static device_array& of(const xla::detail::buffer& b) {
    if (!b.owner) refuse();
    return *static_cast<device_array*>(b.owner);
  }
  [[noreturn, gnu::cold]] static void refuse() {
    throw runtime_error(
        "pjrt: a value was read or used that a program has failed to compute; compute it again");
  }
};

namespace detail {

inline void let_go_of_array(void* owner) { delete static_cast<device_array*>(owner); }

inline void copy_array_home(void* owner, void* to, std::size_t) {
  if (!owner) device_array::refuse();
  const auto& a = *static_cast<const device_array*>(owner);
  a.on.read(a.it, a.type, to);
}

inline xla::detail::buffer* make_without(const xla::detail::memory_place& there,
                                         std::size_t bytes) {
  return xla::detail::buffer::borrow({&there}, bytes);
}

/// What a device has been sent of a tensor of the host, kept with that until it is written.
class device_copy final : public xla::detail::kept_form {
 public:
  device_copy(const xla::detail::memory_place& at, const client& c, const array_type& type,
              const void* data, int device = 0)
      : kept_form(&kind_of_these),
        at_(at),
        array_(c, type, c.put(data, type, host_memory::copied, device)) {}
  /// The one that a buffer has there, as an array of that type: tensors of other shapes may share
  /// it, and a device may order their elements otherwise.
  static const device_copy* find(const xla::detail::buffer& of, const xla::detail::memory_place& at,
                                 const array_type& type) {
    for (auto* k = of.forms.load(std::memory_order_acquire); k; k = k->next)
      if (k->kind == &kind_of_these)
        if (auto* const c = static_cast<const device_copy*>(k);
            &c->at_ == &at && c->array_.type == type)
          return c;
    return nullptr;
  }
  abi::buffer* get() const { return array_.it; }

 private:
  static constexpr char kind_of_these = 0;
  const xla::detail::memory_place& at_;
  device_array array_;
};

}  // namespace detail

/// The memory of a client's device, where tensors may lie: a buffer of that place has a
/// device_array.
inline const xla::detail::memory_place& memory_of(const client& c, int device = 0) {
  struct registry {
    std::mutex mutex;
    std::map<std::pair<const client*, int>, xla::detail::memory_place> all;
  };
  static registry& r = *new registry;
  const std::lock_guard hold(r.mutex);
  return r.all
      .try_emplace({&c, device}, xla::detail::memory_place{.let_go = &detail::let_go_of_array,
                                                           .copy_home = &detail::copy_array_home,
                                                           .make = &detail::make_without})
      .first->second;
}

/// The elements of a buffer, row by row on the host, where they are copied once. It has been waited
/// for; there it has lain row by row.
inline const void* home_of(xla::detail::buffer& b, std::size_t bytes) {
  using xla::detail::buffer_cache;
  if (const void* const home = b.home.load(std::memory_order_acquire)) return home;
  struct block {
    void* data;
    ~block() { xla::detail::heap_give(data, buffer_cache::alignment); }
  } copy{xla::detail::heap_take(bytes, buffer_cache::alignment, {})};
  b.place->copy_home(b.owner, copy.data, bytes);
  void* first = nullptr;
  return b.home.compare_exchange_strong(first, copy.data) ? std::exchange(copy.data, nullptr)
                                                          : first;
}

}  // namespace xla::ext::pjrt
