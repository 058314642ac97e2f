// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "xla/ext/pjrt/buffer.hpp"
#include "xla/ext/pjrt/several.hpp"

namespace xla::detail {

/// The part that a device of a mesh has of a tensor which lies row by row.
class mesh_part {
 public:
  mesh_part(const sharding& s, const shape& whole, int device, std::size_t width)
      : whole_(whole), part_(s.part_of(whole)), width_(width) {
    for (int i = 0; i < whole.rank; ++i) first_.push(s.part_of(device, i) * part_[i]);
  }
  const shape& dims() const { return part_; }

  void take_out(const void* whole, void* part) const {
    each_row([&](std::size_t there, std::size_t here, std::size_t bytes) {
      std::memcpy(static_cast<char*>(part) + here, static_cast<const char*>(whole) + there, bytes);
    });
  }
  void put_in(const void* part, void* whole) const {
    each_row([&](std::size_t there, std::size_t here, std::size_t bytes) {
      std::memcpy(static_cast<char*>(whole) + there, static_cast<const char*>(part) + here, bytes);
    });
  }

 private:
  template <class F>
  void each_row(const F& copy) const {
    const int last = whole_.rank - 1;
    const auto bytes = static_cast<std::size_t>(last < 0 ? 1 : part_[last]) * width_;
    const std::size_t all = static_cast<std::size_t>(count(part_)) * width_;
    shape at = first_;
    for (std::size_t here = 0; here < all; here += bytes) {
      std::int64_t there = 0;
      for (int i = 0; i <= last; ++i) there = there * whole_[i] + at[i];
      copy(static_cast<std::size_t>(there) * width_, here, bytes);
      for (int i = last - 1; i >= 0 && ++at[i] == first_[i] + part_[i]; --i) at[i] = first_[i];
    }
  }

  shape whole_, part_, first_;
  std::size_t width_;
};

/// Runs a program that is shared out to the devices of a mesh: each gets its part of what is
/// marked, a copy, and of all else the whole.
class pjrt_partitions final : public pjrt_on_several {
 public:
  pjrt_partitions(const engine& by, const ext::pjrt::client& on, sized_program&& p)
      : pjrt_on_several(by, on, std::move(p), false, 1) {
    for (const stablehlo_argument& a : text_.written.arguments)
      if (a.output >= 0) p_.in_place[a.output] = true;
  }

  void run(const run_arguments& with) override {
    checks_.run(with, true);
    if (text_.results.empty()) return;
    const int devices = text_.written.partitions;
    std::vector<ext::pjrt::buffer> held;
    std::vector<std::vector<device_buffer*>> in(static_cast<std::size_t>(devices)), out = in;
    std::vector<device_buffer* const*> ins;
    std::vector<device_buffer**> outs;
    for (int d = 0; d < devices; ++d) {
      const auto at = static_cast<std::size_t>(d);
      for (int i = 0; i < text_.arguments.size(); ++i)
        in[at].push_back(held.emplace_back(bring(i, with, d)).get());
      out[at].resize(static_cast<std::size_t>(text_.results.size()));
      ins.push_back(in[at].data());
      outs.push_back(out[at].data());
    }
    executable_->execute_all(ins.data(), outs.data());
    for (int d = 0; d < devices; ++d)
      for (int i = 0; i < text_.results.size(); ++i)
        held.emplace_back(on_, outs[static_cast<std::size_t>(d)][i], text_.results[i], d);
    for (int i = 0; i < text_.results.size(); ++i) keep(outs, i, *with.outputs[i]);
  }

 private:
  ext::pjrt::buffer bring(int i, const run_arguments& with, int device) const {
    const stablehlo_argument& a = text_.written.arguments[i];
    const argument_words words(a, with);
    const void* const from = home_of(a, with, words);
    const mesh_part part = part_of(a.shared_out, text_.arguments[i], device);
    const ext::pjrt::array_type type{text_.arguments[i].type, part.dims()};
    if (type == text_.arguments[i]) return {on_, from, type, host_memory::copied, device};
    std::vector<char> copy(type.bytes());
    part.take_out(from, copy.data());
    return {on_, copy.data(), type, host_memory::copied, device};
  }
  // Of what no axis cuts every device has the whole.
  void keep(const std::vector<device_buffer**>& from, int i, buffer& to) const {
    for (int d = 0; d < text_.written.partitions; ++d) {
      const mesh_part part = part_of(text_.written.places[i], text_.results[i], d);
      const ext::pjrt::array_type type{text_.results[i].type, part.dims()};
      const device_buffer* const there = from[static_cast<std::size_t>(d)][i];
      if (type == text_.results[i]) return on_.read(there, type, to.memory);
      std::vector<char> copy(type.bytes());
      on_.read(there, type, copy.data());
      part.put_in(copy.data(), to.memory);
    }
  }
  static mesh_part part_of(const sharding& s, const ext::pjrt::array_type& whole, int device) {
    return {s, whole.sizes, device, ext::pjrt::facts_of(whole.type).bytes};
  }
};

}  // namespace xla::detail
