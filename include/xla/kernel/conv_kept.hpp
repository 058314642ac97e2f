// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "xla/kernel/conv_choice.hpp"
#include "xla/kernel/gemm_scratch.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla::kernel {

/// What packed weights depend on beside the elements.
struct conv_form {
  conv_sizes sizes;  ///< without those that do not matter
  conv_way way;
  conv_direction direction;

  bool operator==(const conv_form&) const = default;

  template <class T>
  static conv_form of(const conv_sizes& s, conv_direction d) {
    conv_form f{s, way_of<T>(s), d};
    f.sizes.batch = 0;
    // It packs the same for images of every size, but for phases of the stride that have no pixels.
    const bool forward = d == conv_direction::forward;
    f.sizes.height = forward ? 0 : std::min(s.height, s.stride[0]);
    f.sizes.width = forward ? 0 : std::min(s.width, s.stride[1]);
    f.sizes.out_height = f.sizes.out_width = detail::is_product(s);
    return f;
  }
};

/// Packed weights that lie beside those that they were made of, as long as these are not written.
class kept_weights final : public xla::detail::kept_form {
 public:
  explicit kept_weights(const conv_form& f) : kept_form(&kind_of_these), form_(f) {}
  ~kept_weights() override { delete data_.load(std::memory_order_acquire); }

  /// Those of a form; nullptr where nobody has asked for them before.
  static kept_weights* find(const xla::detail::buffer& of, const conv_form& form) {
    for (auto* k = of.forms.load(std::memory_order_acquire); k; k = k->next)
      if (k->kind == &kind_of_these)
        if (auto* const w = static_cast<kept_weights*>(k); w->form_ == form) return w;
    return nullptr;
  }
  static void add(xla::detail::buffer& to, const conv_form& form) {
    to.keep(*new kept_weights(form));
  }

  /// What pack(to) makes, of so many elements. Of several threads that come at once each makes it,
  /// and one's stays.
  template <class T, class Pack>
  const T* get(std::int64_t count, Pack pack) {
    block* there = data_.load(std::memory_order_acquire);
    if (there) return there->template elements<T>();
    auto made = std::make_unique<block>(count * static_cast<std::int64_t>(sizeof(T)));
    pack(made->template elements<T>());
    if (!data_.compare_exchange_strong(there, made.get(), std::memory_order_acq_rel))
      return there->template elements<T>();
    return made.release()->template elements<T>();
  }

 private:
  struct block {
    explicit block(std::int64_t size) : bytes(size) {
      memory.get<char>(bytes);
      xla::detail::memory_count::instance().add(bytes);
    }
    ~block() { xla::detail::memory_count::instance().remove(bytes); }
    template <class T>
    T* elements() {
      return memory.get<T>(0);
    }
    detail::scratch memory;
    std::int64_t bytes;
  };
  static constexpr char kind_of_these = 0;
  conv_form form_;
  std::atomic<block*> data_{nullptr};
};

template <class T>
void keep_packed(xla::detail::buffer* keeper, const conv_sizes& s, conv_direction d,
                 conv_weights<T>& w) {
  if (!keeper || !conv_packs<T>(s, d)) return;
  const conv_form form = conv_form::of<T>(s, d);
  kept_weights* const kept = kept_weights::find(*keeper, form);
  if (!kept) return kept_weights::add(*keeper, form);
  w.packed = kept->get<T>(conv_packed_size<T>(s, d), [&](T* to) { conv_pack(s, d, w, to); });
}

}  // namespace xla::kernel
