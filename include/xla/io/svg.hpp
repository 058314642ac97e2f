// SPDX-License-Identifier: Apache-2.0
#pragma once

// Line charts as SVG text, for loss curves. No other header needs it.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "xla/base/error.hpp"

namespace xla::io {

/// One line of a chart: its points in order. A point that is not finite interrupts the line.
struct chart_series {
  std::string label = {};
  std::vector<double> x = {}, y = {};
};

/// A line chart; put units into the axis labels (`"time (s)"`). Sizes are in pixels.
struct line_chart {
  std::string title = {};
  std::string x_label = {}, y_label = {};
  std::vector<chart_series> series = {};
  double width = 720, height = 420;
};

namespace detail {

/// A number with at most `digits` significant digits; a point as the decimal mark in any locale.
inline std::string svg_number(double value, int digits = 6) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value,
                                 std::chars_format::general, digits);
  return {text.data(), end.ptr};
}

/// Text as XML character data or attribute value; control characters, which XML forbids, are '?'.
inline std::string svg_escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      case '\t':
      case '\n':
      case '\r': out += ' '; break;
      default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  return out;
}

/// An axis: data range, widened to whole ticks, and its ticks (steps of 1, 2 or 5 times 10^k).
struct svg_axis {
  double low = 0, high = 1, step = 0.2;

  svg_axis(double min, double max, int ticks) {
    if (!(min <= max)) min = 0, max = 1;  // no point at all
    const double least = std::max({std::abs(min), std::abs(max), 1e-300}) * 1e-9;
    if (max - min < least) {
      const double half = min == 0 ? 0.5 : std::abs(min) / 10;
      min -= half, max += half;
    }
    const double rough = (max - min) / ticks;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    const double lead = rough / power;
    step = (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
    low = std::floor(min / step) * step;
    high = std::ceil(max / step) * step;
  }

  int count() const { return static_cast<int>(std::lround((high - low) / step)); }

  std::string label(int tick) const {
    const double value = low + tick * step;
    return svg_number(std::abs(value) < step / 2 ? 0 : value);
  }
};

/// Writes one chart: the axes with their ticks, the lines, and their names.
class svg_writer {
 public:
  explicit svg_writer(const line_chart& chart)
      : chart_(chart),
        x_(axis(&chart_series::x, std::max(2, static_cast<int>(chart.width / 100)))),
        y_(axis(&chart_series::y, std::max(2, static_cast<int>(chart.height / 60)))),
        right_(chart.width - 24),
        bottom_(chart.height - 56) {}

  std::string write() {
    const auto width = svg_number(chart_.width), height = svg_number(chart_.height);
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + width + "\" height=\"" + height +
           "\" viewBox=\"0 0 " + width + " " + height +
           "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    const double middle = (left_ + right_) / 2;
    text(middle, 26, "middle", chart_.title, " font-size=\"16\"");
    text(middle, chart_.height - 14, "middle", chart_.x_label);
    const double centre = (top_ + bottom_) / 2;
    text(18, centre, "middle", chart_.y_label,
         " transform=\"rotate(-90 18 " + svg_number(centre) + ")\"");
    grid();
    for (std::size_t i = 0; i < chart_.series.size(); ++i) line(i);
    legend();
    return out_ + "</svg>\n";
  }

 private:
  svg_axis axis(std::vector<double> chart_series::*values, int ticks) const {
    double min = std::numeric_limits<double>::infinity(), max = -min;
    for (const auto& series : chart_.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        if (!std::isfinite(series.x[i]) || !std::isfinite(series.y[i])) continue;
        min = std::min(min, (series.*values)[i]);
        max = std::max(max, (series.*values)[i]);
      }
    }
    return {min, max, ticks};
  }

  double x_at(double x) const {
    return left_ + (x - x_.low) / (x_.high - x_.low) * (right_ - left_);
  }
  double y_at(double y) const {
    return bottom_ - (y - y_.low) / (y_.high - y_.low) * (bottom_ - top_);
  }

  void text(double x, double y, const char* anchor, std::string_view content,
            const std::string& more = {}) {
    if (content.empty()) return;
    out_ += "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" text-anchor=\"" +
            anchor + "\"" + more + ">" + svg_escape(content) + "</text>\n";
  }

  void segment(double x1, double y1, double x2, double y2, const std::string& style) {
    out_ += "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" +
            svg_number(x2) + "\" y2=\"" + svg_number(y2) + "\" " + style + "/>\n";
  }

  void grid() {
    for (int i = 0; i <= x_.count(); ++i) {
      const double x = x_at(x_.low + i * x_.step);
      segment(x, top_, x, bottom_, "stroke=\"#e4e4e4\"");
      text(x, bottom_ + 18, "middle", x_.label(i));
    }
    for (int i = 0; i <= y_.count(); ++i) {
      const double y = y_at(y_.low + i * y_.step);
      segment(left_, y, right_, y, "stroke=\"#e4e4e4\"");
      text(left_ - 8, y + 4, "end", y_.label(i));
    }
    segment(left_, top_, left_, bottom_, "stroke=\"#333\"");
    segment(left_, bottom_, right_, bottom_, "stroke=\"#333\"");
  }

  void line(std::size_t which) {
    const auto& series = chart_.series[which];
    std::string path;
    bool drawing = false;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const bool finite = std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
      if (finite)
        path += (drawing ? "L" : "M") + svg_number(x_at(series.x[i])) + " " +
                svg_number(y_at(series.y[i])) + (drawing ? "" : "h0");  // h0: show a lone point
      drawing = finite;
    }
    if (path.empty()) return;
    out_ +=
        "<path fill=\"none\" stroke-width=\"1.8\" stroke-linejoin=\"round\" "
        "stroke-linecap=\"round\" stroke=\"" +
        colour(which) + "\" d=\"" + path + "\"/>\n";
  }

  /// In the upper right corner, on a ground that keeps it readable over the lines.
  void legend() {
    std::vector<std::size_t> labelled;
    std::size_t longest = 0;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      if (chart_.series[i].label.empty()) continue;
      labelled.push_back(i);
      longest = std::max(longest, chart_.series[i].label.size());
    }
    if (labelled.empty()) return;
    const double wide = 44 + 7.0 * static_cast<double>(longest);
    const double high = 10 + 18.0 * static_cast<double>(labelled.size());
    const double x = right_ - wide - 8;
    out_ += "<rect x=\"" + svg_number(x) + "\" y=\"" + svg_number(top_ + 8) + "\" width=\"" +
            svg_number(wide) + "\" height=\"" + svg_number(high) +
            "\" fill=\"#fff\" fill-opacity=\"0.85\" stroke=\"#ccc\"/>\n";
    double y = top_ + 22;
    for (const auto i : labelled) {
      segment(x + 8, y, x + 30, y, "stroke-width=\"2.5\" stroke=\"" + colour(i) + "\"");
      text(x + 36, y + 4, "start", chart_.series[i].label);
      y += 18;
    }
  }

  /// Okabe and Ito's colours, which the colour-blind can tell apart.
  static std::string colour(std::size_t i) {
    constexpr std::array colours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#000000"};
    return colours[i % colours.size()];
  }

  const line_chart& chart_;
  svg_axis x_, y_;
  double left_ = 76, right_, top_ = 44, bottom_;
  std::string out_;
};

}  // namespace detail

/// The chart as a self-contained SVG document. Throws `xla::shape_error` unless each series has as
/// many x as y, and `xla::error` if the chart is too small to draw (under 200 x 150 pixels).
inline std::string to_svg(const line_chart& chart) {
  if (!(chart.width >= 200 && chart.height >= 150 && chart.width <= 1e5 && chart.height <= 1e5))
    throw runtime_error("to_svg: width and height have to be at least 200 x 150 pixels");
  for (const auto& series : chart.series)
    if (series.x.size() != series.y.size())
      throw shape_error("to_svg: series '" + series.label + "' has " +
                        std::to_string(series.x.size()) + " x values and " +
                        std::to_string(series.y.size()) + " y values");
  return detail::svg_writer{chart}.write();
}

}  // namespace xla::io
