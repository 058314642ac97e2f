// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weight's gradient by direct sums. For each tap it is a product of the pixels under the tap,
// transposed, and of the result's gradient, with pixels as k. The latter is packed as panels, some
// lines of pixels at a time; the former is read in place. A tile of the gradient stays in registers
// for all these pixels. algorithms.hpp chooses it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "xla/base/compiler.hpp"
#include "xla/kernel/convolution/direct.hpp"
#include "xla/kernel/memory/cache_sizes.hpp"

namespace xla::kernel::detail {

/// A run of pixels in a line; the pointers into x and y advance by fixed steps.
template <class T>
struct pixel_run {
  const T *x, *y;
  index_t length;
};

/// How many pixels ahead the loop prefetches.
template <class T>
struct pixel_runs {
  const pixel_run<T>* first;
  index_t count, channel, step, y_step;
  index_t x_ahead = 0, y_ahead = 0;
};

/// to(Rows, Vectors) (+)= the sum over pixels of x(Rows) y(Vectors).
template <class T, int Rows, int Vectors, bool Fetches>
void outer_kernel(const pixel_runs<T>& all, T* to, bool first) {
  using vector = packet<T>;
  constexpr int width = lanes<T>;
  const index_t step = all.step, channel = all.channel, y_step = all.y_step;
  [[maybe_unused]] const index_t x_ahead = all.x_ahead * step, y_ahead = all.y_ahead * y_step;
  vector sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) sum[i][j] = simd::pset1<vector>(T{0});
  const pixel_run<T>* run = all.first;
  for (index_t left = all.count; left > 0; --left, ++run) {
    const T* __restrict x = run->x + channel;
    const T* __restrict y = run->y;
    for (index_t n = run->length; n > 0; --n, x += step, y += y_step) {
      vector row[Vectors];
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) row[j] = simd::ploadu<vector>(y + j * width);
      if constexpr (Fetches) {
        XLA_PREFETCH(x + x_ahead, 0, 3);
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) XLA_PREFETCH(y + y_ahead + j * width, 0, 3);
      }
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const vector one = simd::pset1<vector>(x[i]);
#pragma GCC unroll 4
        for (int j = 0; j < Vectors; ++j) sum[i][j] = simd::pmadd(one, row[j], sum[i][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j, to += width)
      simd::pstoreu(to, first ? sum[i][j] : simd::padd(simd::ploadu<vector>(to), sum[i][j]));
}

/// The kernels for up to `rows` channels of x and `vectors` vectors of channels of y, or up to
/// `tallest` channels and one vector.
template <class T>
struct outer_tile {
#if defined(__AVX512F__) || defined(__aarch64__)
  static constexpr int rows = 14, vectors = 2, tallest = 16;
#else
  static constexpr int rows = 6, vectors = 2, tallest = 6;
#endif
  static constexpr index_t width = lanes<T>, columns = vectors * width;
  using kernel = void (*)(const pixel_runs<T>&, T*, bool);

  static kernel of(index_t height, index_t wide, bool fetches = false) {
    constexpr std::make_integer_sequence<int, tallest> heights;
    static constexpr auto all = table<false>(heights), fetching = table<true>(heights);
    return (fetches ? fetching : all)[static_cast<std::size_t>(height - 1)][wide > width];
  }

 private:
  template <bool Fetches, int... I>
  static constexpr auto table(std::integer_sequence<int, I...>) {
    return std::array<std::array<kernel, 2>, tallest>{
        {{&outer_kernel<T, I + 1, 1, Fetches>,
          &outer_kernel<T, std::min(I + 1, rows), 2, Fetches>}...}};
  }
};

/// The channels of x, divided into blocks of nearly equal size, given the channels of y.
template <class T>
struct channel_blocks {
  index_t channels, columns = outer_tile<T>::columns;
  index_t tallest = columns > outer_tile<T>::width ? outer_tile<T>::rows : outer_tile<T>::tallest;
  index_t count = (channels + tallest - 1) / tallest;
  index_t most = (channels + count - 1) / count;
  index_t height(index_t i) const { return std::min(most, channels - i * most); }
};

/// How the computation is divided. It depends on shapes alone, which fixes the order of every sum.
template <class T>
struct outer_cut {
  using tile = outer_tile<T>;
  const conv_sizes& s;
  index_t in = s.in / s.groups, out = s.out / s.groups;
  index_t seen = std::min(s.kernel[0], s.stride[0]) * std::min(s.kernel[1], s.stride[1]);
  index_t pixels = pixels_at_a_time();
  index_t joined = joined_pixels<T>(s);
  index_t taps = s.kernel[0] * s.kernel[1] / joined;
  channel_blocks<T> blocks{joined * in, out};
  index_t pieces =
      std::max<index_t>((s.out_width + 2 * pixels - 1) / (2 * pixels), 1);  // of a line
  index_t units = s.batch * s.out_height * pieces;
  index_t chunk = pieces > 1 ? 1 : std::max<index_t>(pixels / std::max<index_t>(s.out_width, 1), 1);
  index_t across = (out + tile::columns - 1) / tile::columns;  // panels of a group
  index_t panels = s.groups * across;
  index_t panel = taps * blocks.channels * std::min(tile::columns, round_up(out, tile::width));
  /// Small gradients of many pixels are sums of parts that threads share.
  index_t parts = std::clamp<index_t>(
      std::min({units / chunk / 8, units, (index_t{1} << 18) / (panels * panel)}), 1, 16);

  /// A panel: its group, its first channel of all, its channels, and these as whole vectors.
  index_t group(index_t i) const { return i / across; }
  index_t first(index_t i) const { return group(i) * out + i % across * tile::columns; }
  index_t channels(index_t i) const {
    return std::min(tile::columns, out - i % across * tile::columns);
  }
  index_t wide(index_t i) const { return round_up(channels(i), tile::width); }
  /// With one tap, vectors are read in place, unless pixels map to few sets of a cache. Reading
  /// past the last channel touches the next pixel's channels, whose results are not used.
  bool in_place(index_t i, bool last) const {
    return taps == 1 && joined == 1 && !(last && channels(i) < wide(i)) && !few_sets(s.out);
  }
  static bool few_sets(index_t channels) { return channels * element_size<T> % 2048 == 0; }

 private:
  /// An approximate choice. With one tap, chunks are smaller if lines come from memory: 93 % of the
  /// peak instead of 91 for 64 -> 64, 56 x 56, batch 8, but 93 instead of 95 for 192 -> 64, 14 x
  /// 14.
  index_t pixels_at_a_time() const {
    if (s.taps() > 1) return std::clamp<index_t>((1 << 17) / (s.in * seen), 64, 256);
    const index_t elements = s.batch * s.out_height * s.out_width * (s.in + s.out);
    return elements > 1 << 21 ? 32 : 64;
  }
};

/// The data of the next chunk, prefetched into the L2 cache a part at a time.
template <class T>
class upcoming_run {
 public:
  upcoming_run() = default;
  upcoming_run(const T* first, index_t length, index_t shares)
      : at_(first), end_(first + length), share_(round_up(length / shares + 1, line)) {}
  void fetch() {
    for (const T* const until = at_ + std::min<index_t>(share_, end_ - at_); at_ < until;
         at_ += line)
      XLA_PREFETCH(at_, 0, 2);
  }

 private:
  static constexpr index_t line = 64 / sizeof(T);
  const T *at_ = nullptr, *end_ = nullptr;
  index_t share_ = 0;
};

/// One thread's share: some panels, for some blocks of x's channels, of some lines.
template <class T>
class outer_work {
 public:
  outer_work(const outer_cut<T>& cut, const T* x, const T* dy)
      : cut_(cut), s_(cut.s), x_(x), dy_(dy) {}

  void operator()(T* to, range units, range panels, range blocks) {
    const index_t calls = panels.size() * blocks.size() * cut_.taps;
    for (index_t unit = units.begin; unit < units.end; unit += cut_.chunk) {
      find_pixels(unit, units.end);
      if (cut_.joined > 1) copy_lines();
      look_ahead(units.end, calls);
      for (index_t panel = panels.begin; panel < panels.end; ++panel) {
        const index_t wide = cut_.wide(panel);
        if (cut_.in_place(panel, unit + cut_.chunk >= cut_.units)) {
          y_ = first_of(lines_.begin, panel);
          y_step_ = s_.out;
        } else {
          pack(panel, wide);
          y_step_ = wide;
        }
        find_runs();
        for (index_t i = blocks.begin; i < blocks.end; ++i)
          multiply(to + panel * cut_.panel, panel, i, unit == units.begin,
                   {panel == panels.begin, i == blocks.begin});
      }
    }
  }

 private:
  void find_pixels(index_t unit, index_t end) {
    const index_t line = unit / cut_.pieces;
    lines_ = {line, cut_.pieces > 1 ? line + 1 : std::min(end, line + cut_.chunk)};
    columns_ = part(s_.out_width, 1, cut_.pieces, unit % cut_.pieces);
  }

  /// The next lines, if they are whole.
  void look_ahead(index_t end, index_t calls) {
    next_x_ = next_y_ = {};
    if (!far_) return;
    const index_t first = lines_.end, last = std::min(end, first + cut_.chunk);
    if (cut_.pieces > 1 || first >= last) return;
    const index_t line = first / s_.out_height * s_.height + first % s_.out_height * s_.stride[0];
    const index_t seen = std::min(s_.batch * s_.height - line, (last - first) * s_.stride[0]);
    next_x_ = {x_ + line * s_.width * s_.in, seen * s_.width * s_.in, calls};
    const index_t row = s_.out_width * s_.out;
    next_y_ = {dy_ + first * row, (last - first) * row, calls};
  }

  /// Of dy, in a line.
  const T* first_of(index_t line, index_t panel) const {
    return dy_ + (line * s_.out_width + columns_.begin) * s_.out + cut_.first(panel);
  }
  void pack(index_t panel, index_t wide) {
    constexpr index_t width = lanes<T>, columns = outer_tile<T>::columns;
    T* to = right_scratch().template get<T>(lines_.size() * columns_.size() * columns);
    const index_t count = cut_.channels(panel);
    y_ = to;
    for (index_t line = lines_.begin; line < lines_.end; ++line) {
      const T* from = first_of(line, panel);
      for (index_t i = 0; i < columns_.size(); ++i, from += s_.out)
        for (index_t j = 0; j < wide; j += width, to += width)
          simd::pstoreu(to, count - j >= width ? simd::ploadu<packet<T>>(from + j)
                                               : load_part<T>(from + j, count - j));
    }
  }

  /// For kernels whose pixels are read together: the lines under the kernel's rows, between zeros.
  void copy_lines() {
    const index_t step = padded(), all = lines_.size() * cut_.taps;
    copy_ = static_cast<T*>(thread_scratch<outer_work>(all * step * element_size<T>));
    const index_t left = columns_.begin * s_.stride[1] - s_.padding[1];
    const index_t begin = std::clamp<index_t>(-left * s_.in, 0, step);
    const index_t end = std::clamp<index_t>((s_.width - left) * s_.in, begin, step);
    for (index_t i = 0; i < all; ++i) {
      const index_t y = seen_line(lines_.begin + i / cut_.taps, i % cut_.taps);
      if (y < 0) continue;
      T* const to = copy_ + i * step;
      const T* const from = x_ + (y * s_.width + left) * s_.in;
      std::fill_n(to, begin, T{0});
      std::copy(from + begin, from + end, to + begin);
      std::fill(to + end, to + step, T{0});
    }
  }
  index_t padded() const { return ((columns_.size() - 1) * s_.stride[1] + s_.kernel[1]) * s_.in; }
  /// The index among the lines of all images; -1 outside of them.
  index_t seen_line(index_t line, index_t row) const {
    const index_t y = line % s_.out_height * s_.stride[0] + row * s_.dilation[0] - s_.padding[0];
    return y < 0 || y >= s_.height ? -1 : line / s_.out_height * s_.height + y;
  }

  void find_runs() {
    constexpr auto unit = static_cast<index_t>(sizeof(pixel_run<T>) / sizeof(index_t));
    const index_t most = cut_.taps * lines_.size();
    ends_ = left_scratch().template get<index_t>(cut_.taps + most * unit);
    runs_ = reinterpret_cast<pixel_run<T>*>(ends_ + cut_.taps);
    pixel_run<T>* run = runs_;
    for (index_t t = 0; t < cut_.taps; ++t) {
      const bool joined = cut_.joined > 1;
      const index_t row = joined ? t : t / s_.kernel[1];
      const index_t left = joined ? 0 : t % s_.kernel[1] * s_.dilation[1] - s_.padding[1];
      const range seen = joined ? columns_ : inside(left);
      for (index_t line = lines_.begin; line < lines_.end && seen.size() > 0; ++line) {
        const index_t y = seen_line(line, row), i = line - lines_.begin;
        if (y < 0) continue;
        const T* const x = joined ? copy_ + (i * cut_.taps + t) * padded()
                                  : x_ + (y * s_.width + seen.begin * s_.stride[1] + left) * s_.in;
        *run++ = {x, y_ + (i * columns_.size() + seen.begin - columns_.begin) * y_step_,
                  seen.size()};
      }
      ends_[t] = run - runs_;
    }
  }
  /// The columns for which a tap at this offset is inside the image.
  range inside(index_t left) const {
    const index_t step = s_.stride[1], room = s_.width - 1 - left;
    const index_t begin = std::max(columns_.begin, left >= 0 ? 0 : (step - 1 - left) / step);
    return {begin, room < 0 ? begin : std::min(columns_.end, room / step + 1)};
  }

  /// Whether a kernel is the first one to read its x, and its y.
  struct firsts {
    bool x, y;
  };
  void multiply(T* to, index_t panel, index_t block, bool first, firsts reads) {
    const index_t channel = block * cut_.blocks.most, wide = cut_.wide(panel);
    const index_t offset = cut_.group(panel) * cut_.in + channel;
    const bool fetches = far_ && cut_.pieces > 1 && cut_.taps == 1 && (reads.x || reads.y);
    const auto kernel = outer_tile<T>::of(cut_.blocks.height(block), wide, fetches);
    const index_t ahead = fetches ? 2 * cut_.pixels : 0;
    for (index_t t = 0; t < cut_.taps; ++t) {
      const index_t begin = t == 0 ? 0 : ends_[t - 1];
      next_x_.fetch();
      next_y_.fetch();
      kernel({runs_ + begin, ends_[t] - begin, offset, s_.stride[1] * s_.in, y_step_,
              reads.x ? ahead : 0, reads.y ? ahead : 0},
             to + (t * cut_.blocks.channels + channel) * wide, first);
    }
  }

  const outer_cut<T>& cut_;
  const conv_sizes& s_;
  const T *x_, *dy_;
  bool far_ = s_.batch * (s_.height * s_.width * s_.in + s_.out_height * s_.out_width * s_.out) *
                  element_size<T> >
              near_memory<>;
  range lines_{0, 0}, columns_{0, 0};  // of the chunk
  const T* y_ = nullptr;               // of a panel's columns, in place or packed
  index_t y_step_ = 0;
  T* copy_ = nullptr;
  index_t* ends_ = nullptr;  // of each tap's runs
  pixel_run<T>* runs_ = nullptr;
  upcoming_run<T> next_x_, next_y_;
};

/// A panel's sums over all parts, as (out, in, height, width), or of one tap as (in, out).
template <class T>
void finish_panel(const outer_cut<T>& cut, T* sums, index_t panel, bool swapped, T* dw) {
  using tile = outer_tile<T>;
  const index_t wide = cut.wide(panel), run = cut.s.kernel[0] * cut.s.kernel[1] * cut.in;
  T* const all = sums + panel * cut.panel;
  for (index_t i = 1; i < cut.parts; ++i) {
    const T* const more = all + i * cut.panels * cut.panel;
    for (index_t j = 0; j < run * wide; j += tile::width)
      simd::pstoreu(
          all + j, simd::padd(simd::ploadu<packet<T>>(all + j), simd::ploadu<packet<T>>(more + j)));
  }
  if (swapped) {
    for (index_t i = 0; i < cut.in; ++i)
      std::copy_n(all + i * wide, cut.channels(panel), dw + i * cut.out + cut.first(panel));
    return;
  }
  for (index_t j = 0; j < wide; j += tile::width) {
    transpose_rows(dw + (cut.first(panel) + j) * run, run,
                   std::min(tile::width, cut.channels(panel) - j), run,
                   panel_cursor<T>{all + j, cut.s.kernel[0] * cut.s.kernel[1], cut.in, wide});
  }
}

template <class T>
void weight_gradient_directly(const conv_sizes& s, const T* x, const T* dy, T* dw,
                              bool swapped = false) {
  const outer_cut<T> cut{s};
  ::xla::detail::working_memory memory;
  T* const sums = static_cast<T*>(
      memory.take(static_cast<std::size_t>(cut.parts * cut.panels * cut.panel) * sizeof(T)));
  // Lines are read once for all panels that one thread has of them.
  const index_t wanted = num_threads() == 1 ? 1 : 2 * num_threads();
  const index_t across = std::min((wanted + cut.parts - 1) / cut.parts, cut.panels);
  const index_t down =
      std::min((wanted + cut.parts * across - 1) / (cut.parts * across), cut.blocks.count);
  parallel_for(cut.parts * across * down, [&](index_t i) {
    const index_t job = i / down, part_of = job / across;
    outer_work<T>{cut, x, dy}(
        sums + part_of * cut.panels * cut.panel, part(cut.units, 1, cut.parts, part_of),
        part(cut.panels, 1, across, job % across), part(cut.blocks.count, 1, down, i % down));
  });
  parallel_for(cut.panels, [&](index_t i) { finish_panel(cut, sums, i, swapped, dw); });
}

/// The same for a kernel of one pixel, as a matrix product. It reads all pixels of the image, or a
/// copy of those that the stride selects.
template <class T, class Gemm>
void weight_gradient_of_pixels(const conv_sizes& s, const T* x, const T* dy, T* dw, Gemm gemm) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  const index_t lines = s.batch * s.out_height, pixels = lines * s.out_width;
  if (is_product(s)) return gemm(out, in, pixels, {dy, 1, s.out}, {x, s.in, 1}, dw, in, nullptr);
  ::xla::detail::working_memory memory;
  T* const seen = static_cast<T*>(memory.take(static_cast<std::size_t>(pixels * in) * sizeof(T)));
  for_ranges(lines, s.out_width * in, [&](index_t first, index_t last) {
    for (index_t i = first; i < last; ++i) {
      const index_t line = i / s.out_height * s.height + i % s.out_height * s.stride[0];
      for (index_t j = 0; j < s.out_width; ++j)
        std::copy_n(x + (line * s.width + j * s.stride[1]) * s.in, in,
                    seen + (i * s.out_width + j) * in);
    }
  });
  gemm(out, in, pixels, {dy, 1, s.out}, {seen, in, 1}, dw, in, nullptr);
}

/// Whether x rather than dy should be the vectors of a matrix product: the one that fills vectors
/// better, is read in place, fills tiles, or has fewer channels, so that more stay in a cache.
template <class T>
bool better_swapped(const conv_sizes& s) {
  if (s.groups > 1 || !is_product(s)) return false;
  using cut = outer_cut<T>;
  const auto better = [&](auto f) { return f(s.in, s.out) - f(s.out, s.in); };
  const index_t waste =
      better([](index_t vectors, index_t rows) { return -rows * round_up(vectors, lanes<T>); });
  if (waste != 0) return waste > 0;
  const int packed = better([](index_t vectors, index_t) { return -cut::few_sets(vectors); });
  if (packed != 0) return packed > 0;
  const int whole =
      better([](index_t vectors, index_t) { return vectors % cut::tile::columns == 0; });
  return whole != 0 ? whole > 0 : s.in < s.out;
}

/// Large gradients of one tap would be read and written too often: for 1024 -> 256, 14 x 14, batch
/// 8 the product reaches 58 % of the peak and sums over chunks 45 %. For 256 -> 64, 56 x 56 they
/// reach 35 % and 42 %.
inline bool is_large_tap(const conv_sizes& s) {
  return s.taps() == 1 && s.padding[0] == 0 && s.padding[1] == 0 &&
         s.in / s.groups * (s.out / s.groups) > 1 << 16;
}

/// dw is (out, in / groups, height, width).
template <class T>
void direct_weight_gradient(const conv_sizes& s, const T* x, const T* dy, T* dw) {
  const index_t in = s.in / s.groups, out = s.out / s.groups;
  if (!is_large_tap(s)) {
    conv_sizes as = s;
    if (is_product(s)) {  // one line of pixels
      as.width = as.out_width = s.batch * s.height * s.width;
      as.batch = as.height = as.out_height = 1;
    }
    if (!better_swapped<T>(as)) return weight_gradient_directly(as, x, dy, dw);
    std::swap(as.in, as.out);
    return weight_gradient_directly(as, dy, x, dw, true);
  }
  for (index_t g = 0; g < s.groups; ++g)
    weight_gradient_of_pixels(s, x + g * in, dy + g * out, dw + g * in * out, &kernel::gemm<T>);
}

}  // namespace xla::kernel::detail
