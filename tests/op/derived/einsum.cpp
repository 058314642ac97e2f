// SPDX-License-Identifier: Apache-2.0
#include "xla/op/derived/einsum.hpp"

#include <array>
#include <map>

#include "support/modes.hpp"

using test::check_equal;
using test::numbers;
using xla::einsum;

namespace {

/// The plain sum over every assignment of all letters.
template <class... X>
std::vector<double> reference(const std::vector<std::string>& in, const std::string& out,
                              const X&... x) {
  std::vector<test::sizes_t> sizes{x.sizes()...};
  std::vector<std::vector<double>> data{x.to_vector()...};
  std::map<char, std::int64_t> size, at;
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::size_t i = 0; i < in[k].size(); ++i) size[in[k][i]] = sizes[k][i];
  std::int64_t all = 1, results = 1;
  for (auto [c, n] : size) all *= n;
  for (char c : out) results *= size[c];
  auto place = [&](const std::string& letters) {
    std::int64_t p = 0;
    for (char c : letters) p = p * size[c] + at[c];
    return static_cast<std::size_t>(p);
  };
  std::vector<double> want(static_cast<std::size_t>(results));
  for (std::int64_t i = 0; i < all; ++i) {
    std::int64_t rest = i;
    for (auto [c, n] : size) {
      at[c] = rest % n;
      rest /= n;
    }
    double product = 1;
    for (std::size_t k = 0; k < in.size(); ++k) product *= data[k][place(in[k])];
    want[place(out)] += product;
  }
  return want;
}

template <xla::EinsumText Text, class... X>
void check(const std::vector<std::string>& in, const std::string& out, const X&... x) {
  INFO(Text.text);
  const auto y = einsum<Text>(x...);
  CHECK(y.rank == static_cast<int>(out.size()));
  CHECK(y.to_vector().size() == reference(in, out, x...).size());
  check_equal(y, y.sizes(), reference(in, out, x...), 1e-13);
}

}  // namespace

TEST_CASE("einsum of one tensor") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({3, 4, 5});
  const auto square = numbers<double>({4, 4});
  check<"ijk->kij">({"ijk"}, "kij", x);
  check<"ijk->ik">({"ijk"}, "ik", x);
  check<"i j k -> k">({"ijk"}, "k", x);
  check<"ijk->">({"ijk"}, "", x);
  check<"ii->i">({"ii"}, "i", square);
  check<"ii->">({"ii"}, "", square);
  check<"ii">({"ii"}, "", square);
  check<"ji">({"ji"}, "ij", square);
  check<"iji->ij">({"iji"}, "ij", numbers<double>({3, 2, 3}));
  check<"iii->i">({"iii"}, "i", numbers<double>({3, 3, 3}));
}

TEST_CASE("einsum of two tensors") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({7, 13}), b = numbers<double>({13, 5}, 1);
  check<"ij,jk->ik">({"ij", "jk"}, "ik", a, b);
  check<"ij,jk">({"ij", "jk"}, "ik", a, b);
  check<"ij,jk->ki">({"ij", "jk"}, "ki", a, b);
  check<"ji,jk->ik">({"ji", "jk"}, "ik", numbers<double>({13, 7}), b);
  check<"ij,kj->ik">({"ij", "kj"}, "ik", a, numbers<double>({5, 13}));
  check<"ij,jk->k">({"ij", "jk"}, "k", a, b);
  check<"ij,jk->">({"ij", "jk"}, "", a, b);
  check<"ij,ij->ij">({"ij", "ij"}, "ij", a, a);
  check<"ij,ij->i">({"ij", "ij"}, "i", a, a);
  check<"ij,ji->">({"ij", "ji"}, "", a, numbers<double>({13, 7}));
  const auto u = numbers<double>({4}), v = numbers<double>({3}, 2);
  check<"i,j->ij">({"i", "j"}, "ij", u, v);
  check<"i,j->ji">({"i", "j"}, "ji", u, v);
  check<"i,i->">({"i", "i"}, "", u, u);
  check<",i->i">({"", "i"}, "i", xla::tensor(2.0), u);
  check<"ij,j->i">({"ij", "j"}, "i", numbers<double>({3, 4}), u);
  check<"ii,ij->j">({"ii", "ij"}, "j", numbers<double>({3, 3}), numbers<double>({3, 4}));
  check<"ij,jk->ik">({"ij", "jk"}, "ik", numbers<double>({0, 3}), numbers<double>({3, 2}));
  check<"ij,jk->ik">({"ij", "jk"}, "ik", numbers<double>({2, 0}), numbers<double>({0, 2}));
}

TEST_CASE("einsum of batches and of three tensors") {
  const xla::eager_mode_guard eager;
  const auto q = numbers<double>({2, 3, 5, 4}), k = numbers<double>({2, 3, 6, 4}, 1);
  check<"bhqd,bhkd->bhqk">({"bhqd", "bhkd"}, "bhqk", q, k);
  check<"bhqd,bhkd->bqhk">({"bhqd", "bhkd"}, "bqhk", q, k);
  check<"bqhd,bkhd->bhqk">({"bqhd", "bkhd"}, "bhqk", numbers<double>({2, 5, 3, 4}),
                           numbers<double>({2, 6, 3, 4}, 1));
  check<"bij,bjk->bik">({"bij", "bjk"}, "bik", numbers<double>({3, 4, 5}),
                        numbers<double>({3, 5, 2}));
  check<"abij,bj->ai">({"abij", "bj"}, "ai", numbers<double>({2, 3, 4, 5}),
                       numbers<double>({3, 5}));
  check<"abcd,cdef->abef">({"abcd", "cdef"}, "abef", numbers<double>({2, 3, 4, 5}),
                           numbers<double>({4, 5, 2, 3}));
  check<"ij,jk,kl->il">({"ij", "jk", "kl"}, "il", numbers<double>({2, 3}), numbers<double>({3, 4}),
                        numbers<double>({4, 5}));
  check<"bi,ijk,bk->bj">({"bi", "ijk", "bk"}, "bj", numbers<double>({6, 2}),
                         numbers<double>({2, 3, 4}), numbers<double>({6, 4}));
}

TEST_CASE("einsum refuses sizes that differ") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({2, 3});
  CHECK_THROWS_WITH(einsum<"ij,jk->ik">(a, a),
                    test::contains("einsum: letter j stands for sizes 3 and 2"));
  CHECK_THROWS_WITH(einsum<"ij,ji->ij">(a, a), test::contains("einsum: letter i stands"));
  CHECK_THROWS_WITH(einsum<"ii->i">(a),
                    test::contains("einsum: a diagonal of axes with sizes 2 and 3"));
}

TEST_CASE("einsum's ellipsis stands for the axes without a letter") {
  const xla::eager_mode_guard eager;
  const auto x = numbers<double>({2, 3, 4, 4});
  check_equal(einsum<"...ij->...ji">(x), einsum<"abij->abji">(x));
  check_equal(einsum<"...ii->...i">(x), einsum<"abii->abi">(x));
  check_equal(einsum<"...ij->ij">(x), einsum<"abij->ij">(x));
  check_equal(einsum<"a...">(x), einsum<"abij->bija">(x));
  check_equal(einsum<"i j ...-> ... i">(x), einsum<"ijab->abi">(x));
  check_equal(einsum<"abij...->...">(x), einsum<"abij->">(x));
  const auto y = numbers<double>({3, 4, 5}, 1);
  check_equal(einsum<"...ij,...jk->...ik">(x, y), matmul(x, y), 1e-13);
  check_equal(einsum<"...ij,...jk">(x, y), einsum<"abij,bjk->abik">(x, y));
  check_equal(einsum<"a...j,...jk->ka...">(numbers<double>({2, 2, 3, 4}), y),
              einsum<"abij,ijk->kabi">(numbers<double>({2, 2, 3, 4}), y), 1e-13);
}

TEST_CASE("a letter of size 1 broadcasts in einsum, as the axes of ellipses do") {
  const xla::eager_mode_guard eager;
  const auto a = numbers<double>({2, 1}), b = numbers<double>({3, 4}, 1);
  check_equal(einsum<"ij,jk->ik">(a, b), einsum<"ij,jk->ik">(expand(a, {2, 3}), b));
  check_equal(einsum<"ij,kj->ki">(b, a), einsum<"ij,kj->ki">(b, expand(a, {2, 4})));
  check_equal(einsum<"ij,ij->ij">(a, numbers<double>({1, 5}, 2)), a * numbers<double>({1, 5}, 2));
  check_equal(einsum<"ij,ij,ij->">(a, numbers<double>({1, 5}, 2), numbers<double>({2, 5}, 3)),
              sum(a * numbers<double>({1, 5}, 2) * numbers<double>({2, 5}, 3)), 1e-13);
  const auto x = numbers<double>({5, 1, 2, 3});
  const auto y = numbers<double>({4, 3, 2}, 1);
  check_equal(einsum<"...ij,...jk->...ik">(x, y), matmul(x, y), 1e-13);
  check_equal(einsum<"...,...->...">(a, numbers<double>({7}, 1)), a * numbers<double>({7}, 1));
  check_equal(einsum<"...i,...i->...">(numbers<double>({0, 3}), numbers<double>({1, 3}, 1)), {0},
              std::vector<double>{});
  CHECK_THROWS_WITH(einsum<"ij,jk->ik">(b, b), test::contains("letter j stands for sizes 4 and 3"));
}
