// SPDX-License-Identifier: Apache-2.0
#pragma once

// An array on a plugin's device, owned by this object. Tensors on devices are in device_memory.hpp,
// which shares them with the rest of the library.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/ext/pjrt/client.hpp"

namespace xla::ext::pjrt {

/// An array on a device of a client, which it owns.
class buffer {
 public:
  buffer() = default;
  /// From elements on the host in row-major order.
  buffer(const client& c, const void* data, const array_type& type,
         host_memory semantics = host_memory::copied, int device = 0)
      : client_(&c),
        it_(c.put(check_address(data, semantics, c), type, semantics, device)),
        type_(type),
        device_(device) {}
  /// From a program's result.
  buffer(const client& c, abi::buffer* made, const array_type& type, int device) noexcept
      : client_(&c), it_(made), type_(type), device_(device) {}
  buffer(buffer&& o) noexcept { swap(o); }
  buffer& operator=(buffer&& o) noexcept {
    swap(o);
    return *this;
  }
  ~buffer() { release(); }

  const array_type& type() const { return type_; }
  int device() const { return device_; }
  /// Whether a program has taken its memory over (donation).
  bool donated() const { return client_ && !it_; }
  /// Throws if there is no array: it was donated, or never made.
  abi::buffer* get() const {
    if (!it_) refuse();
    return it_;
  }
  const client* on() const { return client_; }

  void wait() const { client_of().wait(get()); }
  void* address() const { return client_of().address(get()); }
  buffer to_device(int device) const {
    return {client_of(), client_of().copy_to(get(), device), type_, device};
  }
  /// Waits for the elements, and copies them to the host in row-major order.
  template <class T>
  std::vector<T> to_vector() const {
    if (sizeof(T) != facts_of(type_.type).bytes)
      throw runtime_error("pjrt::buffer::to_vector: elements of " + std::to_string(sizeof(T)) +
                          " bytes, and the array is " + describe(type_));
    std::vector<T> out(static_cast<std::size_t>(count(type_.sizes)));
    client_of().read(get(), type_, out.data());
    return out;
  }
  /// Marks it as donated.
  void donate() noexcept { client_->drop(std::exchange(it_, nullptr)); }

 private:
  // XLA would silently make a copy.
  static const void* check_address(const void* data, host_memory semantics, const client& c) {
    if (semantics != host_memory::copied && c.on_host() &&
        reinterpret_cast<std::uintptr_t>(data) % 64 != 0)
      throw runtime_error(
          "pjrt::buffer: an array can be used in place only at a 64-byte aligned address");
    return data;
  }
  const client& client_of() const {
    if (!client_) refuse();
    return *client_;
  }
  void release() noexcept {
    if (it_) client_->drop(it_);
  }
  void swap(buffer& o) noexcept {
    std::swap(client_, o.client_);
    std::swap(it_, o.it_);
    std::swap(type_, o.type_);
    std::swap(device_, o.device_);
  }
  [[noreturn, gnu::cold]] void refuse() const {
    throw runtime_error(client_ ? "pjrt::buffer: " + describe(type_) +
                                      " was donated to a program that has run, and is gone"
                                : "pjrt::buffer: it has no array");
  }

  const client* client_ = nullptr;
  abi::buffer* it_ = nullptr;
  array_type type_;
  int device_ = 0;
};

}  // namespace xla::ext::pjrt
