// SPDX-License-Identifier: Apache-2.0
#include "xla/io/svg.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Whether every tag that is opened is closed, in order, and quotes are paired.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (auto at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const auto end = svg.find('>', at);
    if (end == std::string::npos) return false;
    const auto tag = svg.substr(at + 1, end - at - 1);
    if (count(tag, "\"") % 2 != 0 || tag.find('<') != std::string::npos) return false;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else if (!tag.ends_with("/")) {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a chart has title, axes, ticks, lines and a legend") {
  const xla::io::line_chart chart{
      .title = "Training",
      .x_label = "time (s)",
      .y_label = "loss (nats)",
      .series = {{"train", {0, 50, 100}, {4.0, 2.0, 1.5}}, {"validation", {0, 100}, {4.1, 1.8}}}};
  const auto svg = xla::io::to_svg(chart);
  CHECK(well_formed(svg));
  CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"420\""));
  CHECK(svg.ends_with("</svg>\n"));
  for (const auto* text : {">Training<", ">time (s)<", ">loss (nats)<", ">train<", ">validation<",
                           ">0<", ">20<", ">100<", ">1.5<", ">4.5<"})
    CHECK(count(svg, text) == 1);
  CHECK(count(svg, "<path ") == 2);
  // x = 0 is at the left edge of the plot; y = 4.5 would be its top.
  CHECK(count(svg, "d=\"M76 ") == 2);
}

TEST_CASE("text is escaped") {
  const auto svg =
      xla::io::to_svg({.title = "a<b & \"c\" 'd'>\n\x01é", .series = {{"<&>", {}, {}}}});
  CHECK(well_formed(svg));
  CHECK(count(svg, ">a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt; ?é<") == 1);
  CHECK(count(svg, ">&lt;&amp;&gt;<") == 1);
}

TEST_CASE("values that are not finite interrupt the line and leave the axes alone") {
  const double nan = std::nan(""), infinity = INFINITY;
  const auto svg = xla::io::to_svg(
      {.series = {{"", {0, 1, 2, 3, 4, 5}, {1, 2, nan, 3, infinity, 4}}, {"", {nan}, {1e9}}}});
  CHECK(well_formed(svg));
  CHECK(count(svg, "M") == 3);
  CHECK(count(svg, "<path ") == 1);
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "inf") == 0);
  CHECK(count(svg, ">4<") >= 1);
}

TEST_CASE("degenerate charts are drawn") {
  using list = std::vector<xla::io::chart_series>;
  const auto series =
      GENERATE(list{}, list{{"empty", {}, {}}}, list{{"point", {5}, {7}}},
               list{{"zero", {0, 0}, {0, 0}}}, list{{"flat", {1, 2}, {3, 3}}},
               list{{"tiny", {1e-300}, {1e-308}}}, list{{"vast", {-1e300, 1e300}, {0, 1}}},
               list{{"near", {1, 1 + 1e-15}, {-1e6, -1e6 + 1e-9}}});
  const auto svg = xla::io::to_svg({.title = "t", .series = series});
  CHECK(well_formed(svg));
  CHECK(count(svg, "nan") == 0);
  CHECK(count(svg, "inf") == 0);
  CHECK(count(svg, "<line ") < 60);
  CHECK(count(svg, "<line ") > 4);
}

TEST_CASE("ticks are multiples of 1, 2 or 5 that enclose the data") {
  const xla::io::detail::svg_axis axis{0.13, 0.87, 6};
  CHECK(axis.step == Approx(0.2));
  CHECK(axis.low == Approx(0).margin(1e-12));
  CHECK(axis.high == Approx(1));
  CHECK(axis.label(3) == "0.6");
  const xla::io::detail::svg_axis thousands{0, 12'345, 6};
  CHECK(thousands.step == 5000);
  CHECK(thousands.label(2) == "10000");
  const xla::io::detail::svg_axis around{-1, 1, 4};
  CHECK(around.label(2) == "0");
}

TEST_CASE("unequal series and tiny charts are refused") {
  CHECK_THROWS_AS(xla::io::to_svg({.series = {{"s", {1, 2}, {1}}}}), xla::shape_error);
  CHECK_THROWS_AS(xla::io::to_svg({.width = 10}), xla::error);
  CHECK_THROWS_AS(xla::io::to_svg({.width = std::nan("")}), xla::error);
}
