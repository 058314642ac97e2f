// SPDX-License-Identifier: Apache-2.0
// What compares the modes of any function, once for all tests.
#include "support/modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "support/ops_used.hpp"

namespace test {

std::string snapshot::difference(const snapshot& o) const {
  if (all_.empty()) return "no tensors to compare";
  if (all_.size() != o.all_.size()) return "another number of tensors";
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (auto d = difference(all_[i], o.all_[i]); !d.empty())
      return "tensor " + std::to_string(i) + ": " + d;
  return {};
}

void snapshot::append(const snapshot& o) { all_.insert(all_.end(), o.all_.begin(), o.all_.end()); }

void snapshot::add_elements(xla::dtype type, sizes_t sizes, const void* elements,
                            std::size_t size) {
  const auto* const bytes = static_cast<const char*>(elements);
  const auto n = static_cast<std::size_t>(product(sizes)) * size;
  all_.push_back({type, std::move(sizes), {bytes, bytes + n}});
}

template <class T>
std::string snapshot::first_different(const value& a, const value& b) {
  const auto element = [](const value& v, std::size_t i) {
    T x;
    std::memcpy(&x, v.bytes.data() + i * sizeof(T), sizeof(T));
    return x;
  };
  double close = rounding() / 100;  // where all of it is rounding
  for (std::size_t i = 0; rounding() > 0 && i * sizeof(T) < b.bytes.size(); ++i)
    if (const double y = std::abs(static_cast<double>(element(b, i))); std::isfinite(y))
      close = std::max(close, rounding() * y);
  for (std::size_t i = 0; i * sizeof(T) < a.bytes.size(); ++i) {
    const T x = element(a, i), y = element(b, i);
    if (same_number(x, y) || std::abs(static_cast<double>(x) - static_cast<double>(y)) < close)
      continue;
    std::ostringstream s;
    s.precision(17);
    s << "element " << i << ": " << +x << " and " << +y;
    return s.str();
  }
  return {};
}

std::string snapshot::difference(const value& a, const value& b) {
  if (a.type != b.type) return "another element type";
  if (a.sizes != b.sizes) return "another shape";
  if (a.type == xla::dtype::float32) return first_different<float>(a, b);
  if (a.type == xla::dtype::float64) return first_different<double>(a, b);
  return first_different<unsigned char>(a, b);
}

snapshot run_again(call_of<> call) {
  const snapshot s = call();
  INFO("called again, in memory that has been used");
  CHECK(call().difference(s) == "");
  const on_backend op_by_op("interpreter");
  INFO("called again, on the interpreter");
  CHECK(call().difference(s) == "");
  return s;
}

void compare_modes(call_of<mode> as_told, call_of<> compiled) {
  const snapshot eager = as_told(mode::eager);
  {
    INFO("eager and fused against eager");
    CHECK(as_told(mode::fused).difference(eager) == "");
  }
  const std::string traced = as_told(mode::traced).difference(eager);
  {
    INFO("traced against eager");
    CHECK(traced == "");
  }
  ops_used ops;
  const std::string by_compiler = compiled().difference(eager);
  {
    INFO("compiled against eager");
    CHECK(by_compiler == "");
  }
  if (traced.empty() && by_compiler.empty()) ops.note();
}

}  // namespace test
