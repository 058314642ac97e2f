// SPDX-License-Identifier: Apache-2.0
#pragma once

// A profile as JSON, for other programs and for page.hpp. It writes JSON and reads none.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "xla/run/profile/data.hpp"

namespace xla {
namespace detail {

/// The length of the valid UTF-8 sequence at the begin of a text; 0 if there is none.
[[gnu::cold]] constexpr std::size_t utf8_length(std::string_view s) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  const std::size_t n = lead < 0x80                   ? 1
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (n == 0 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  if ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) > 0x9f)) return 0;
  if ((lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) > 0x8f)) return 0;
  return n;
}

/// Writes JSON that may be in a page's script element: no '<', and valid UTF-8 for any input.
template <class>
class basic_json_writer {
 public:
  [[gnu::cold]] basic_json_writer& open(char bracket) {
    separate();
    out_ += bracket;
    fresh_ = true;
    return *this;
  }
  [[gnu::cold]] basic_json_writer& close(char bracket) {
    out_ += bracket;
    fresh_ = false;
    return *this;
  }
  [[gnu::cold]] basic_json_writer& key(std::string_view name) {
    string(name);
    out_ += ':';
    fresh_ = true;
    return *this;
  }
  [[gnu::cold]] basic_json_writer& string(std::string_view s) {
    separate();
    out_ += '"';
    while (!s.empty()) {
      const std::size_t n = utf8_length(s);
      if (n == 0) out_ += "\\ufffd";
      else if (n == 1) character(s[0]);
      else out_ += s.substr(0, n);
      s.remove_prefix(n == 0 ? 1 : n);
    }
    out_ += '"';
    return *this;
  }
  [[gnu::cold]] basic_json_writer& number(double v) {
    separate();
    if (!std::isfinite(v)) v = 0;
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.15g", v);
    for (char* c = buffer; *c != '\0'; ++c)
      out_ += *c == ',' ? '.' : *c;  // the decimal mark of some locales
    return *this;
  }
  [[gnu::cold]] basic_json_writer& boolean(bool v) {
    separate();
    out_ += v ? "true" : "false";
    return *this;
  }
  /// A list, each element written by one(element).
  template <class List, class One>
  basic_json_writer& list(const List& all, One&& one) {
    open('[');
    for (const auto& x : all) one(x);
    return close(']');
  }
  basic_json_writer& numbers(const std::vector<int>& all) {
    return list(all, [&](int i) { number(i); });
  }
  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!fresh_) out_ += ',';
    fresh_ = false;
  }
  [[gnu::cold]] void character(char c) {
    constexpr std::string_view hex = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') (out_ += '\\') += c;
    else if (code < 0x20 || code == 0x7f || c == '<')
      ((out_ += "\\u00") += hex[code >> 4]) += hex[code & 15];
    else out_ += c;
  }

  std::string out_;
  bool fresh_ = true;  ///< this list is still empty
};
using json_writer = basic_json_writer<void>;

template <class = void>
[[gnu::cold]] void write_json(json_writer& j, const ProfileStep& s) {
  j.open('{').key("name").string(s.name).key("kind").string(s.kind).key("ops");
  j.list(s.ops, [&](const std::string& op) { j.string(op); });
  j.key("algorithm").string(s.algorithm).key("attributes").string(s.attributes);
  j.key("cached").number(static_cast<double>(s.cached));
  j.key("source").string(s.source).key("module").string(s.module).key("type").string(
      name_of(s.type));
  j.key("after").numbers(s.after).key("reads").numbers(s.reads).key("writes").numbers(s.writes);
  j.key("started").number(s.started);
  j.key("once").boolean(s.once).key("start").number(s.start).key("seconds").number(s.seconds);
  j.key("spans").list(s.spans, [&](const ProfileSpan& x) {
    j.open('{').key("thread").number(x.thread).key("start").number(x.start);
    j.key("seconds").number(x.seconds).close('}');
  });
  j.key("flops").number(s.flops).key("bytes_read").number(s.bytes_read);
  j.key("bytes_written").number(s.bytes_written);
  j.key("runs").number(static_cast<double>(s.runs));
  j.key("body").list(s.body, [&](const ProfileStep& b) { write_json(j, b); }).close('}');
}
template <class = void>
[[gnu::cold]] void write_json(json_writer& j, const ProfileValue& v) {
  j.open('{').key("name").string(v.name).key("storage").string(v.storage).key("shape").string(
      v.shape);
  j.key("bytes").number(static_cast<double>(v.bytes));
  j.key("offset").number(static_cast<double>(v.offset)).key("first").number(v.first);
  j.key("last").number(v.last).key("replaces").number(v.replaces).close('}');
}
template <class = void>
[[gnu::cold]] void write_json(json_writer& j, const ProfileFunction& f) {
  j.open('{').key("name").string(f.name).key("signature").string(f.signature);
  j.key("calls").number(f.calls).key("seconds").number(f.seconds);
  j.key("threads").number(f.threads).key("flops").number(f.flops()).key("bytes").number(f.bytes());
  j.key("arena_bytes").number(static_cast<double>(f.arena_bytes));
  j.key("unshared_bytes").number(static_cast<double>(f.unshared_bytes));
  j.key("steps").list(f.steps, [&](const ProfileStep& s) { write_json(j, s); });
  j.key("values").list(f.values, [&](const ProfileValue& v) { write_json(j, v); }).close('}');
}

template <class = void>
[[gnu::cold]] void write_json(json_writer& j, const ProfileEvent& e) {
  j.open('{').key("name").string(e.name).key("kind").string(e.kind);
  j.key("step").number(static_cast<double>(e.step)).key("thread").number(e.thread);
  j.key("start").number(e.start).key("seconds").number(e.seconds);
  j.key("parent").number(e.parent).close('}');
}

template <class = void>
[[gnu::cold]] std::string profile_json(const Profile& p) {
  json_writer j;
  j.open('{').key("peaks").open('{').key("threads").number(p.peaks.threads);
  j.key("flops").number(p.peaks.flops).key("bytes").number(p.peaks.bytes).close('}');
  j.key("backends").list(p.backends, [&](const ProfileBackend& e) {
    j.open('{').key("name").string(e.name);
    j.key("runs").number(static_cast<double>(e.runs)).close('}');
  });
  j.key("metrics").list(p.metrics, [&](const ProfileMetric& m) {
    j.open('{').key("name").string(m.name).key("unit").string(m.unit);
    j.key("samples").number(static_cast<double>(m.samples));
    j.key("total").number(m.total).close('}');
  });
  j.key("events").list(p.events, [&](const ProfileEvent& e) { write_json(j, e); });
  j.key("dropped_events").number(static_cast<double>(p.dropped_events));
  j.key("functions").list(p.functions, [&](const ProfileFunction& f) { write_json(j, f); });
  return j.close('}').take();
}

}  // namespace detail

template <class V>
std::string BasicProfile<V>::to_json() const {
  return detail::profile_json(*this);
}

}  // namespace xla
