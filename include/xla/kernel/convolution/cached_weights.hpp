// SPDX-License-Identifier: Apache-2.0
#pragma once

// Packed weights that the buffer of the weights caches. It packs nothing itself: conv_pack() of
// algorithms.hpp does. The kernels of the ops call cache_packed() before each convolution.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "xla/kernel/convolution/algorithms.hpp"
#include "xla/kernel/memory/cached_form.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::kernel {

/// The key of packed weights: everything that their form depends on, apart from the elements.
struct conv_form {
  conv_sizes sizes;  ///< without fields that do not matter
  conv_algorithm algorithm;
  conv_direction direction;

  bool operator==(const conv_form&) const = default;

  template <class T>
  static conv_form of(const conv_sizes& s, conv_direction d) {
    conv_form f{s, algorithm_of<T>(s), d};
    f.sizes.batch = 0;
    // The packed form is the same for images of every size, except for phases of the stride without
    // pixels.
    const bool forward = d == conv_direction::forward;
    f.sizes.height = forward ? 0 : std::min(s.height, s.stride[0]);
    f.sizes.width = forward ? 0 : std::min(s.width, s.stride[1]);
    f.sizes.out_height = f.sizes.out_width = detail::is_product(s);
    return f;
  }
};

/// Packed weights that the buffer of the weights owns. They are dropped when it is written.
class cached_weights final : public cached_elements {
 public:
  explicit cached_weights(const conv_form& f) : cached_elements(&kind_of_these), form_(f) {}

  /// The weights of a form; nullptr if it has not been requested before.
  static cached_weights* find(const xla::detail::buffer& of, const conv_form& form) {
    for (auto* k = of.forms.load(std::memory_order_acquire); k; k = k->next)
      if (k->kind == &kind_of_these)
        if (auto* const w = static_cast<cached_weights*>(k); w->form_ == form) return w;
    return nullptr;
  }
  static void add(xla::detail::buffer& to, const conv_form& form) {
    to.keep(*new cached_weights(form));
  }

 private:
  static constexpr char kind_of_these = 0;
  conv_form form_;
};

/// Sets w to the `count` elements that pack(to) writes, from the second call on.
template <class T, class Pack>
void cache_form(xla::detail::buffer& cache_owner, const conv_form& form, std::int64_t count,
                Pack pack, conv_weights<T>& w) {
  cached_weights* const cached = cached_weights::find(cache_owner, form);
  if (!cached) return cached_weights::add(cache_owner, form);
  w.packed = cached->get<T>(count, pack);
}

template <class T>
void cache_packed(xla::detail::buffer* cache_owner, const conv_sizes& s, conv_direction d,
                  conv_weights<T>& w) {
  if (!cache_owner || !conv_packs<T>(s, d)) return;
  cache_form(
      *cache_owner, conv_form::of<T>(s, d), conv_packed_size<T>(s, d),
      [&](T* to) { conv_pack(s, d, w, to); }, w);
}

}  // namespace xla::kernel
