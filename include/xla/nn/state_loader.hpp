// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loads a state: everything is compared first, and written only if all matches. It is the untyped
// part of state_dict.hpp, compiled once.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xla/base/error.hpp"
#include "xla/nn/convert.hpp"
#include "xla/nn/file_names.hpp"
#include "xla/nn/state_dict.hpp"

namespace xla::detail {

template <class In>
NamedArray array_of(const std::string& name, dtype type, const handle& value) {
  const shape s = value.dims();
  const auto* const from = static_cast<const std::uint8_t*>(basic_machine<In>::read(value));
  dependent<In, std::vector<std::uint8_t>> bytes(from, from + count(s) * size_of(type));
  return {name, type, {s.dims, s.dims + s.rank}, std::move(bytes)};
}
XLA_LIBRARY_INSTANCE(NamedArray array_of<void>(const std::string&, dtype, const handle&));

template <class In>
NamedArray number_array(const std::string& name, dtype type, const void* number) {
  dependent<In, std::vector<std::uint8_t>> bytes(8, 0);
  std::memcpy(bytes.data(), number, 8);
  return {name, type, {}, std::move(bytes)};
}
XLA_LIBRARY_INSTANCE(NamedArray number_array<void>(const std::string&, dtype, const void*));

/// The state's values by name, their targets, and the mismatches, until everything is compared.
template <class In>
struct basic_state_loader<In>::state {
  // A pending write: a tensor to a target, or a number to one of three kinds of numbers.
  struct entry {
    const NamedArray* from = nullptr;
    dtype type = dtype::float32;  // of the target
    handle* target = nullptr;
    handle value;
    Scalar* scalar = nullptr;
    double* fraction = nullptr;
    int* whole = nullptr;
  };
  const StateDict* dict = nullptr;
  dependent<In, std::unordered_map<std::string_view, std::pair<const NamedArray*, std::size_t>>>
      by_name;
  dependent<In, std::vector<bool>> taken;
  struct second_name {
    std::string alias, name;
  };
  dependent<In, std::vector<second_name>> ties;
  dependent<In, std::vector<std::string>> missing, mismatched;
  dependent<In, std::vector<entry>> entries;

  const NamedArray* find(const std::string& name, dtype type,
                         const dependent<In, std::vector<std::int64_t>>& sizes) {
    auto found = by_name.find(name);
    for (const auto& t : ties)
      if (found == by_name.end() && t.name == name) found = by_name.find(t.alias);
    if (found == by_name.end()) {
      missing.push_back(name);
      return nullptr;
    }
    taken[found->second.second] = true;
    const NamedArray& a = *found->second.first;
    const auto describe = [](dtype t, const dependent<In, std::vector<std::int64_t>>& s) {
      return std::string{name_of(t)} + io::sizes_text(s);
    };
    if (a.sizes == sizes && a.bytes.size() != io::array_bytes(a.type, sizes))
      mismatched.push_back(name + ": " + std::to_string(a.bytes.size()) + " bytes found for " +
                           describe(a.type, sizes));
    else if (a.sizes != sizes || (a.type != type && !convertible(a, type)))
      mismatched.push_back(name + ": " + describe(a.type, a.sizes) + " found, " +
                           describe(type, sizes) + " needed");
    else return &a;
    return nullptr;
  }
  entry* find_number(const std::string& name, dtype type) {
    const NamedArray* const found = find(name, type, {});
    if (!found) return nullptr;
    entry& e = entries.emplace_back();
    e.from = found;
    return &e;
  }
  template <class Stored>
  static Stored number(const entry& e) {
    Stored value{};
    nn::detail::convert_elements<In>(e.from->type, e.from->bytes.data(), 1, dtype_of<Stored>,
                                     reinterpret_cast<std::uint8_t*>(&value));
    return value;
  }
  // Floating-point numbers convert to any floating-point type; integers must be checked.
  static bool convertible(const NamedArray& a, dtype type) {
    const auto is_fraction = [](dtype t) {
      return nn::detail::visit_numbers<true>(t, [](auto) {});
    };
    if (is_fraction(a.type) && is_fraction(type)) return true;
    return converted(a, type).size() == io::array_bytes(type, a.sizes);
  }
  // The elements in another type; empty if they do not fit.
  static dependent<In, std::vector<std::uint8_t>> converted(const NamedArray& a, dtype type) {
    const auto count = static_cast<std::int64_t>(a.bytes.size()) / size_of(a.type);
    dependent<In, std::vector<std::uint8_t>> out(static_cast<std::size_t>(count * size_of(type)));
    if (!nn::detail::convert_elements<In>(a.type, a.bytes.data(), count, type, out.data()))
      out.clear();
    return out;
  }
  static void read(entry& e) {
    shape s;
    for (const std::int64_t size : e.from->sizes) s.push(size);
    if (e.from->type != e.type)
      return basic_machine<In>::upload(e.value, e.type, s, converted(*e.from, e.type).data());
    if (e.type != dtype::boolean)
      return basic_machine<In>::upload(e.value, e.type, s, e.from->bytes.data());
    dependent<In, std::vector<std::uint8_t>> booleans(e.from->bytes.begin(), e.from->bytes.end());
    for (auto& t : booleans) t = t != 0;  // any byte but 0 and 1 is an invalid bool
    basic_machine<In>::upload(e.value, dtype::boolean, s, booleans.data());
  }
  static std::string list(const char* what, const dependent<In, std::vector<std::string>>& all,
                          const char* between) {
    std::string out;
    for (const auto& s : all) out += (out.empty() ? "" : between) + s;
    return out.empty() ? out : std::string("\n  ") + what + ": " + out;
  }
};

template <class In>
basic_state_loader<In>::basic_state_loader(const StateDict& dict) {
  auto made = std::make_unique<state>();
  state& s = *made;
  s.dict = &dict;
  s.taken.assign(dict.size(), false);
  for (std::size_t i = 0; i < dict.size(); ++i)
    if (!s.by_name.emplace(dict[i].name, std::pair{&dict[i], i}).second)
      s.mismatched.push_back(dict[i].name + ": appears twice");
  state_ = made.release();
}

template <class In>
basic_state_loader<In>::~basic_state_loader() {
  delete state_;
}

template <class In>
void basic_state_loader<In>::tie(std::string alias, std::string name) {
  state& s = *state_;
  if (const auto a = s.by_name.find(alias); a != s.by_name.end()) {
    s.taken[a->second.second] = true;
    const auto n = s.by_name.find(name);
    if (n != s.by_name.end() && !io::same_values(*a->second.first, *n->second.first))
      s.mismatched.push_back(alias + ": has other values than " + name +
                             ", which is the same parameter of this model");
  }
  s.ties.push_back({std::move(alias), std::move(name)});
}
template <class In>
void basic_state_loader<In>::want(const std::string& name, dtype type, handle& target) {
  const shape s = target.dims();
  const NamedArray* const found = state_->find(name, type, {s.dims, s.dims + s.rank});
  if (!found) return;
  auto& e = state_->entries.emplace_back();
  e.from = found;
  e.type = type;
  e.target = &target;
}
template <class In>
void basic_state_loader<In>::want(const std::string& name, Scalar& scalar) {
  if (auto* e = state_->find_number(name, dtype::float64)) e->scalar = &scalar;
}
template <class In>
void basic_state_loader<In>::want(const std::string& name, double& number) {
  if (auto* e = state_->find_number(name, dtype::float64)) e->fraction = &number;
}
template <class In>
void basic_state_loader<In>::want(const std::string& name, int& number) {
  auto* const e = state_->find_number(name, dtype::int64);
  if (!e) return;
  const auto value = state::template number<std::int64_t>(*e);
  if (std::in_range<int>(value)) {
    e->whole = &number;
  } else {
    state_->mismatched.push_back(name + ": " + std::to_string(value) + " is out of range");
    state_->entries.pop_back();
  }
}

template <class In>
IncompatibleKeys basic_state_loader<In>::check(bool strict, const std::string& function) {
  state& s = *state_;
  IncompatibleKeys report{s.missing, {}};
  for (std::size_t i = 0; i < s.taken.size(); ++i)
    if (!s.taken[i] && s.by_name.at((*s.dict)[i].name).second == i)
      report.unexpected_keys.push_back((*s.dict)[i].name);
  std::string text = s.list("does not fit", s.mismatched, ";\n    ");
  if (strict)
    text = s.list("missing", report.missing_keys, ", ") +
           s.list("unexpected", report.unexpected_keys, ", ") + text +
           nn::detail::naming_hint<In>(report.missing_keys, report.unexpected_keys);
  if (!text.empty())
    throw runtime_error(function + ": the state does not fit; nothing was loaded" + text);
  for (auto& e : s.entries)
    if (e.target) s.read(e);
  return report;
}

template <class In>
void basic_state_loader<In>::write() {
  for (auto& e : state_->entries) {
    if (e.target) basic_machine<In>::rebind(*e.target, e.value);
    if (e.scalar) *e.scalar = state::template number<double>(e);
    if (e.fraction) *e.fraction = state::template number<double>(e);
    if (e.whole) *e.whole = static_cast<int>(state::template number<std::int64_t>(e));
  }
}
XLA_LIBRARY_INSTANCE(class basic_state_loader<void>);

}  // namespace xla::detail
