// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "support/modes.hpp"
#include "support/on_plugin.hpp"
#include "support/replicas.hpp"
#include "support/stablehlo.hpp"
#include "xla/ext/stablehlo.hpp"
#include "xla/functions.hpp"

// Each lowering is read as text; and, where a plugin is there, run, and compared with eager mode.

using test::host_array;
using test::numbers;
using xla::grad;
using xla::sum;

namespace {

enum class way { text, plugin };

struct magnitude {
  static constexpr auto name = "square";
  static constexpr auto words = "has to be from 0 to 16";
};

/// Where random numbers begin: the arguments that follow the tensors.
host_array draw(std::int64_t offset) {
  std::vector<host_array> one;
  test::add_arrays(one, xla::tensor<std::int64_t>({7, offset}));
  return one[0];
}

/// f in eager mode against its text, to this many units of rounding; every tensor is read.
template <class F, class... A>
void compare(way how, double units, const std::vector<host_array>& draws, F f, A... a) {
  const std::string text = xla::stablehlo(f, a...);
  REQUIRE(test::stablehlo_reader::problem(text) == "");
  if (how == way::text) return;
  const xla::eager_mode_guard eager;
  std::vector<host_array> want;
  std::vector<std::vector<host_array>> arguments(1);
  (test::add_arrays(arguments[0], a), ...);
  arguments[0].insert(arguments[0].end(), draws.begin(), draws.end());
  xla::manual_seed(7);
  test::add_arrays(want, f(a...));
  const auto got = test::run_text(text, arguments, want);
  for (std::size_t i = 0; i < want.size(); ++i) {
    INFO("result " << i << " of " << text.size() << " characters");
    CHECK(test::far_apart(got[0][i], want[i], units) == "");
  }
  test::note_ops_of(f, a...);
}

template <std::size_t N>
auto places(const xla::Size (&sizes)[N], std::int64_t below) {
  auto x = numbers<float>(sizes);
  return xla::cast<std::int64_t>(xla::abs(x * 1000)) % below;
}
/// Many equal elements, and some NaN.
auto ties(auto x) {
  const auto whole = xla::round(x);
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  return xla::where(x > 1.5f, nan, whole);
}

/// f of x, and x's gradient of the sum of its cubes.
template <class F>
auto with_gradient(F) {
  return [](auto& x, auto&... more) {
    auto p = x * 1;
    p.requires_grad_();
    auto y = F{}(p, more...);
    return std::tuple(y, grad(sum(y * y * y), p));
  };
}
/// The same of f of two, and of its squares.
template <class F>
auto with_gradients(F) {
  return [](auto& x, auto& w, auto&... more) {
    auto p = x * 1;
    auto q = w * 1;
    p.requires_grad_();
    q.requires_grad_();
    auto y = F{}(p, q, more...);
    auto [a, b] = grad(sum(y * y), std::tuple(p, q));
    return std::tuple(y, a, b);
  };
}

void indices(way how) {
  auto x = numbers<float>({7, 6});
  auto rows = numbers<float>({9, 6});
  auto index = places({4, 5}, 7);  // less than x and than rows
  auto line = places({9}, 7);
  const auto one = [&](auto f, const auto& at) { compare(how, 4, {}, with_gradient(f), x, at); };
  const auto two = [&](auto f, const auto& at) {
    compare(how, 4, {}, with_gradients(f), x, rows, at);
  };
  one([](auto& x, auto& i) { return xla::gather(x, 0, i); }, index);
  one([](auto& x, auto& i) { return xla::index_select(transpose(x), 1, i); }, line);
  one([](auto& x, auto& i) { return xla::embedding(i, x, 2); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::scatter(x, 0, i, r); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::scatter_add(x, 0, i, r); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::scatter_reduce(x, 0, i, r, "prod"); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::scatter_reduce(x, 0, i, r, "amax"); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::scatter_reduce(x, 0, i, r, "amin"); }, index);
  two([](auto& x, auto& r, auto& i) { return xla::index_copy(x, 0, i, r); }, line);
  two([](auto& x, auto& r, auto& i) { return xla::index_add(x, 0, i, r); }, line);
  auto column = numbers<float>({7, 1});
  auto in_rows = places({7, 1}, 6);  // one in each row
  const auto in_each = [&](auto f) { compare(how, 4, {}, with_gradients(f), x, column, in_rows); };
  in_each([](auto& x, auto& c, auto& i) {
    return xla::scatter_add(x, 1, i, c) * xla::sum(xla::gather(x, 1, i));
  });
  auto whole = numbers<std::int64_t>({7, 6});
  auto boolean = x > 0;
  compare(
      how, 0, {},
      [](auto& x, auto& t, auto& i) {
        return std::tuple(xla::gather(x, 0, i), xla::gather(t, 0, i), xla::scatter_add(x, 0, i, x),
                          xla::scatter(t, 0, i, !t));
      },
      whole, boolean, index);
  auto none = places({0, 6}, 7);
  compare(
      how, 0, {},
      [](auto& x, auto& i) {
        return std::tuple(xla::gather(x, 0, i), xla::scatter(x, 0, i, x), xla::embedding(i, x));
      },
      x, none);
}

void movement(way how) {
  auto x = numbers<float>({4, 6});
  compare(how, 4, {}, with_gradient([](auto& x) {
            auto d = x * 2;
            d.index(xla::Slice(xla::none, xla::none, 2)) = x.index(xla::Slice(1, xla::none, 2)) * 3;
            const auto wide = xla::expand(xla::reshape(d, {4, 1, 6}), {-1, 2, -1});
            return xla::cat({flatten(transpose(flip(d, {1}))), flatten(wide)});
          }),
          x);
}

/// With gradients of all three.
constexpr auto attended = [](auto& q, auto& k, auto& v, auto&... mask) {
  auto a = q * 1, b = k * 1, c = v * 1;
  a.requires_grad_();
  b.requires_grad_();
  c.requires_grad_();
  const auto y = xla::scaled_dot_product_attention(a, b, c, mask...);
  return std::tuple_cat(std::tuple(y), grad(sum(y * y), std::tie(a, b, c)));
};

void products(way how) {
  auto a = numbers<float>({4, 3, 5});
  auto b = numbers<float>({5, 2});
  const auto product = with_gradients([](auto& a, auto& b) { return matmul(a, b); });
  compare(how, 8, {}, product, a, b);
  compare(how, 8, {}, product, numbers<double>({0, 3, 5}), numbers<double>({5, 2}));
  auto q = numbers<float>({2, 4, 5, 4}, 1);
  auto k = numbers<float>({2, 2, 7, 4}, 2);
  auto v = numbers<float>({2, 2, 7, 3}, 3);
  compare(how, 64, {}, attended, q, k, v);
  compare(how, 64, {}, attended, q, k, v, numbers<float>({5, 7}, 4));
  // Weights are rounded before they are divided by their sum there, after it here: 1.3 hundredths
  // of the largest gradient, of which float32's are 2.4 away.
  constexpr double of_bfloat16 = 1 << 19;
  compare(how, of_bfloat16, {}, xla::autocast(attended), q, k, v);
}

void norms(way how) {
  auto x = numbers<float>({4, 6, 5});
  const auto on = [&](auto f) { compare(how, 32, {}, with_gradient(f), x); };
  on([](auto& x) { return xla::layer_norm(x); });
  on([](auto& x) { return xla::batch_norm(x); });
  on([](auto& x) { return xla::group_norm(x, 3); });
  on([](auto& x) { return xla::var(x, {1}); });
}

void convolutions(way how) {
  auto x = numbers<float>({2, 4, 9, 8});
  auto w = numbers<float>({6, 2, 3, 3});
  auto deep = numbers<float>({8, 1, 3, 2});
  auto none = numbers<float>({0, 4, 9, 8});
  const auto grouped = with_gradients(
      [](auto& x, auto& w) { return xla::conv2d(x, w, {.stride = 2, .padding = 1, .groups = 2}); });
  compare(how, 8, {}, grouped, x, w);
  compare(how, 8, {}, grouped, none, w);
  compare(how, 8, {}, with_gradients([](auto& x, auto& w) {
            return xla::conv2d(
                x, w, {.stride = {1, 2}, .padding = {0, 3}, .dilation = {2, 1}, .groups = 2});
          }),
          x, w);
  compare(how, 8, {}, with_gradients([](auto& x, auto& w) {
            return xla::conv2d(x, w, {.stride = 3, .padding = 2, .groups = 4});
          }),
          x, deep);
  auto small = numbers<double>({2, 6, 4, 5});
  auto wide = numbers<double>({6, 2, 3, 3});
  compare(how, 8, {}, with_gradients([](auto& x, auto& w) {
            return xla::conv_transpose2d(
                x, w, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
          }),
          small, wide);
}

void pools(way how) {
  auto x = numbers<float>({2, 3, 7, 9});
  auto tied = ties(x);
  auto small = ties(numbers<float>({1, 2, 3, 3}));
  const auto pool = [&](auto f, const auto& of) { compare(how, 4, {}, with_gradient(f), of); };
  pool([](auto& x) { return xla::max_pool2d(x, 3, {.stride = 2, .padding = 1}); }, tied);
  pool([](auto& x) { return xla::max_pool2d(x, 2, {.ceil_mode = true}); }, tied);
  pool([](auto& x) { return xla::max_pool2d(x, 2, {.stride = 1, .padding = 1, .dilation = 4}); },
       small);  // nothing is under some windows
  pool([](auto& x) { return xla::adaptive_max_pool2d(x, {3, 4}); }, tied);
  compare(
      how, 0, {},
      [](auto& x) { return xla::max_pool2d_with_indices(x, 3, {.stride = 2, .padding = 1}); },
      tied);
  pool([](auto& x) { return xla::avg_pool2d(x, 3, {.stride = 2, .padding = 1}); }, x);
  pool([](auto& x) { return xla::avg_pool2d(x, 2, {.ceil_mode = true}); }, x);
  pool(
      [](auto& x) {
        return xla::avg_pool2d(
            x, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      x);
  pool([](auto& x) { return xla::adaptive_avg_pool2d(x, {10, 4}); }, x);
  pool(
      [](auto& x) {
        return xla::unfold(x, {2, 3}, {.dilation = 2, .padding = 1, .stride = 2});
      },
      x);
  compare(
      how, 4, {},
      [](auto& x) {  // a gradient of the gradient
        auto p = x * 1;
        p.requires_grad_();
        auto y = xla::max_pool2d(p, 3, {.stride = 2, .padding = 1});
        auto g = grad(sum(y * y * y), p, {.create_graph = true});
        return grad(sum(g * g), p);
      },
      xla::round(x));
  auto none = numbers<float>({0, 3, 7, 9});
  compare(
      how, 0, {},
      [](auto& x) {
        return std::tuple(xla::max_pool2d(x, 2), xla::adaptive_avg_pool2d(x, 2), xla::unfold(x, 2));
      },
      none);
}

void resampling(way how) {
  auto x = numbers<float>({2, 3, 7, 9});
  const auto to = [&](auto f) { compare(how, 8, {}, with_gradient(f), x); };
  to([](auto& x) { return xla::interpolate(x, {.size = {10, 5}}); });
  to([](auto& x) {
    return xla::interpolate(x, {.size = {10, 5}, .mode = xla::Interpolation::bilinear});
  });
  to([](auto& x) {
    return xla::interpolate(x, {.scale_factor = 2, .mode = xla::Interpolation::bicubic});
  });
  to([](auto& x) { return xla::pad(x, {{0, 0}, {0, 0}, {2, 1}, {3, 0}}, xla::PadMode::reflect); });
}

void order(way how) {
  auto x = ties(numbers<float>({4, 5, 3}));
  auto whole = xla::cast<std::int64_t>(numbers<float>({4, 5, 3}));
  const auto of = [](auto& x) {
    return std::tuple(xla::argmax(x, 1), xla::argmin(x, 0), xla::argsort(x, 1),
                      xla::argsort(x, 0, true), xla::topk(x, 3, 1), xla::cummax(x, 1),
                      xla::cummin(x, 0), xla::median(x, 1), xla::median(x, 0), xla::median(x));
  };
  compare(how, 0, {}, of, x);
  compare(how, 0, {}, of, whole);
  compare(how, 4, {}, with_gradient([](auto& x) {
            return xla::cat({std::get<0>(xla::sort(x, 0)), std::get<0>(xla::topk(x, 2, 0))}) +
                   std::get<0>(xla::median(x, 0)) + xla::median(x);
          }),
          numbers<float>({5, 3}));
  auto none = numbers<float>({0, 5});
  compare(
      how, 0, {},
      [](auto& x) {
        return std::tuple(xla::argmax(x, 1), xla::argsort(x, 0), xla::argsort(x, 1),
                          xla::median(x, 1));
      },
      none);
  auto rows = std::get<0>(xla::sort(ties(numbers<float>({5, 13})), 1));
  auto values = ties(numbers<float>({5, 4}));
  auto line = std::get<0>(xla::sort(numbers<float>({16})));
  compare(
      how, 0, {},
      [](auto& rows, auto& values, auto& line) {
        return std::tuple(xla::searchsorted(rows, values), xla::searchsorted(rows, values, true),
                          xla::searchsorted(line, values), xla::searchsorted(line, line, true));
      },
      rows, values, line);
}

void scans(way how) {
  auto x = numbers<float>({3, 37, 2});
  x = xla::where(xla::abs(x) < 0.3f, 0.f, x);
  compare(how, 16, {}, with_gradient([](auto& x) { return xla::cumsum(x, 1); }), x);
  compare(how, 16, {}, with_gradient([](auto& x) { return xla::cumprod(x, 1); }), x);
  compare(how, 16, {}, with_gradient([](auto& x) { return xla::prod(x, {1}); }), x);
  auto whole = numbers<std::int64_t>({3, 7});
  auto none = numbers<float>({3, 0});
  compare(how, 64, {}, with_gradient([](auto& x) { return logcumsumexp(x, 1); }), x);
  const auto both = [](auto& x) { return std::tuple(xla::cumsum(x, 1), xla::cumprod(x, 0)); };
  compare(how, 0, {}, both, whole);
  compare(how, 0, {}, both, none);
}

void random(way how) {
  // 185 elements take 47 counters, or 93 of 8 bytes each.
  auto x = numbers<float>({37, 5});
  auto wide = numbers<double>({37, 5});
  auto whole = numbers<std::int64_t>({37, 5});
  const auto uniform = [](auto& x) { return std::tuple(x * 1, xla::rand_like(x)); };
  compare(how, 0, {draw(0)}, uniform, x);
  compare(how, 0, {draw(0)}, uniform, wide);
  const auto normal = [](auto& x) {
    auto first = xla::rand_like(x);
    return std::tuple(x + first, xla::randn_like(x));
  };
  compare(how, 8, {draw(0), draw(47)}, normal, x);
  compare(how, 8, {draw(0), draw(93)}, normal, wide);
  compare(
      how, 0, {draw(0), draw(93)},
      [](auto& x) {
        auto far = xla::randint_like(x, -9000000000000000000, 9000000000000000000);
        auto order = xla::randperm(x.size(0));
        return std::tuple(x * 1, far, order);
      },
      whole);
  compare(
      how, 0, {draw(0)}, [](auto& x) { return xla::multinomial(x, 4, true); }, xla::abs(x));
  compare(
      how, 0, {},
      [](auto& p) {
        const auto inside = xla::check_between<magnitude>(p * p, 0, 16);
        return std::tuple(inside * 2, grad(sum(inside), p));
      },
      test::parameter(x));
}

template <class F, class Make>
void compare_replicas(way how, int replicas, F f, const Make& make) {
  const auto n = static_cast<std::size_t>(replicas);
  std::vector<std::vector<host_array>> arguments(n), want(n);
  std::string text;
  xla::detail::graph_view ops{};
  test::replicate(replicas, [&](int ordinal) {
    auto x = make(ordinal);
    const auto r = static_cast<std::size_t>(ordinal);
    test::add_arrays(arguments[r], x);
    if (ordinal == 0) {
      text = xla::stablehlo(f, x);
      ops = xla::detail::printed_program<F, xla::detail::argument_of<decltype((x))>>::graph.view();
    }
    const xla::eager_mode_guard eager;
    test::add_arrays(want[r], f(x));
  });
  REQUIRE(test::stablehlo_reader::problem(text) == "");
  if (how == way::text) return;
  const auto got = test::run_text(text, arguments, want[0]);
  for (std::size_t r = 0; r < n; ++r)
    for (std::size_t i = 0; i < want[r].size(); ++i) {
      INFO("result " << i << " of replica " << r << " of " << replicas);
      CHECK(test::far_apart(got[r][i], want[r][i], 4) == "");
    }
  test::note_ops(ops);
}

// Calls are in an order of their own: all replicas exchange in it.
void exchanges(way how, int replicas) {
  const auto on = [&](auto f, auto make) { compare_replicas(how, replicas, f, make); };
  on(
      [](auto& x) {
        auto a = xla::all_reduce(x);
        auto b = xla::all_reduce(x, "mean");
        auto c = xla::all_reduce(x, "max");
        auto d = xla::all_reduce(x, "mul");
        auto e = xla::all_gather(x, 1);
        auto f = xla::reduce_scatter(x, 0, xla::reduce_type::mean);
        auto g = xla::all_to_all(x, 0, 1);
        auto h = xla::collective_permute(x, {{0, 1}, {1, 0}});
        auto i = xla::broadcast(x > 1, 1);
        auto k = xla::all_gather(x > 1);
        return std::tuple(a, b, c, d, e, f, g, h, i, k);
      },
      [](int r) {
        return numbers<float>({6, 4}, static_cast<std::uint64_t>(r));
      });
  on(
      [](auto& x) {
        auto p = x * 1;
        p.requires_grad_();
        const auto of = [](const auto& y) { return sum(y * y); };
        auto loss = of(xla::all_reduce(p));
        loss += of(xla::all_gather(p, 1));
        loss += of(xla::reduce_scatter(p, 0));
        loss += of(xla::all_to_all(p, 0, 1));
        loss += of(xla::collective_permute(p, {{0, 1}, {1, 0}}));
        return grad(loss, p);
      },
      [](int r) {
        return numbers<float>({6, 4}, static_cast<std::uint64_t>(r));
      });
  on([](auto& x) { return std::tuple(xla::all_reduce(x, "min"), xla::broadcast(x, 1)); },
     [](int r) {
       return numbers<std::int64_t>({6, 4}, static_cast<std::uint64_t>(r));
     });
  on(
      [](auto& x) {
        auto a = xla::reduce_scatter(x, 0, xla::reduce_type::sum, xla::tags::padded);
        auto b = xla::all_gather(a, 0, x.size(0));
        auto c = xla::local_shard(x);
        auto p = x * 1;
        p.requires_grad_();
        auto y = xla::broadcast(p, 1);
        return std::tuple(a, b, c, y, grad(sum(y * y * y), p));
      },
      [](int r) {
        return numbers<double>({5, 4}, static_cast<std::uint64_t>(r));
      });
}

void all(way how) {
  indices(how);
  movement(how);
  products(how);
  norms(how);
  convolutions(how);
  pools(how);
  resampling(how);
  order(how);
  scans(how);
  random(how);
  exchanges(how, 2);
  exchanges(how, 3);
  test::note_refused_gradient("local_shard", [] {
    const xla::eager_mode_guard eager;
    sum(xla::local_shard(test::parameter(numbers<float>({3})))).backward();
  });
}

}  // namespace

TEST_CASE("the text of every lowering is in order, at awkward sizes too") { all(way::text); }

TEST_CASE("XLA computes by every lowering what the op computes", "[.plugin]") {
  if (test::plugin_is_there()) all(way::plugin);
}
