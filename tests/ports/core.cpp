// SPDX-License-Identifier: Apache-2.0
// One program that every platform compiles and runs (bench/ports.py): a network trains in eager,
// traced and compiled mode with the same bits, files come back as they were written, and what needs
// threads works or is refused in a sentence. It uses no framework for tests, and prints the losses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>
#include <xla/data/prefetch.hpp>
#include <xla/io/atomic_file.hpp>
#include <xla/io/file.hpp>
#include <xla/io/npy.hpp>
#include <xla/parallel/launch.hpp>
#include <xla/run/backend/body_path.hpp>
#include <xla/xla.hpp>
#if __has_include(<nlohmann/json.hpp>)
#include <xla/ext/checkpoint.hpp>
#define HAS_JSON 1
#else
#define HAS_JSON 0
#endif
namespace nn = xla::nn;

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

struct Net {
  nn::Conv2d<3> conv{1, 4};
  nn::Linear fc1{144, 32}, fc2{32, 10};
  constexpr auto operator()(xla::Tensor<float, 4> x) const {
    return fc2(xla::tanh(fc1(xla::flatten<1>(xla::relu(conv(x))))));
  }
  XLA_MODULE(conv, fc1, fc2)
};

enum class mode { eager, traced, compiled };

std::vector<float> train(mode how) {
  xla::manual_seed(42);
  Net model;
  nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  const auto step = [](auto& model, auto& data, auto& target, auto& loss_fn, auto& optimizer) {
    optimizer.zero_grad();
    auto loss = loss_fn(model(data), target);
    loss.backward();
    optimizer.step();
    return loss;
  };
  auto data = xla::randn<float>({8, 1, 8, 8});
  auto target = xla::randint(0, 10, {8});
  xla::eager_mode(how != mode::traced);
  auto compiled = xla::compile(step);
  std::vector<float> losses;
  for (int i = 0; i < 4; ++i)
    losses.push_back(how == mode::compiled
                         ? compiled(model, data, target, loss_fn, optimizer).item()
                         : step(model, data, target, loss_fn, optimizer).item());
  return losses;
}

void check_training() {
  const auto eager = train(mode::eager);
  std::printf("losses");
  for (const float loss : eager) std::printf(" %a", static_cast<double>(loss));
  std::printf("\n");
  check(train(mode::traced) == eager, "traced mode has the bits of eager mode");
  check(train(mode::compiled) == eager, "compiled mode has the bits of eager mode");
  check(eager.back() < eager.front(), "the loss goes down");
  xla::eager_mode(true);
}

/// Functions of kernels and sizes that use compiler extensions where these exist.
void check_kernels() {
  const auto a = xla::randn<float>({37, 41}), b = xla::randn<float>({41, 33});
  const auto exact = xla::matmul(a, b).to_vector();
  const auto rounded = xla::matmul(xla::cast<xla::bfloat16>(a), xla::cast<xla::bfloat16>(b));
  const auto near = xla::cast<float>(rounded).to_vector();
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    most = std::max(most, std::abs(double{exact[i]} - double{near[i]}));
  check(most > 0 && most < 0.25, "a product of bfloat16 is near that of floats");

#ifdef __wasm_simd128__
  check(xla::kernel::lanes<float> == 4, "kernels use vectors of 128 bits");
#endif

  constexpr std::int64_t huge = std::int64_t{1} << 62;
  std::int64_t to = 0;
  using namespace xla::detail;
  check(!calculate(huge, '*', 4, to) && !calculate(huge, '+', huge, to) &&
            !calculate(-huge, '-', huge + 1, to) && !calculate(-huge - huge, '/', -1, to),
        "numbers beyond 2^63 are noticed");
  check(calculate(-huge, '*', 2, to) && to == -huge - huge && calculate(huge, '-', huge, to) &&
            to == 0 && calculate(huge - 1, '+', huge, to) && to == huge - 1 + huge,
        "the largest sizes are numbers");
}

/// Each algorithm of this processor for products of bfloat16: near the exact sums, the same bits
/// whether columns are packed or read in place, convolutions and attention near those of the first.
/// `expected` is the name of the one that this process has to take.
void check_bfloat16(std::string_view expected) {
  using xla::kernel::bfloat16_algorithm;
  auto& algorithm = xla::kernel::detail::algorithm_of_process();
  const bfloat16_algorithm chosen = algorithm;
  check(expected.empty() || (expected == "dot") == (chosen == bfloat16_algorithm::dot),
        "this processor has the expected products of bfloat16");
  std::vector<float> first;
  for (const auto one : {bfloat16_algorithm::fma, bfloat16_algorithm::dot}) {
    if (one == bfloat16_algorithm::dot && !xla::kernel::detail::has_dot()) continue;
    algorithm = one;
    constexpr std::int64_t n = 53, k = 101;
    const auto b = xla::randn<float>({k, n});
    const auto columns = xla::transpose(b).to_vector();
    for (const std::int64_t m : {1, 2, 4, 7, 37}) {
      const auto a = xla::randn<float>({m, k});
      std::vector<float> c(static_cast<std::size_t>(m * n)), again = c;
      xla::kernel::gemm_bfloat16<float, float>(m, n, k, {a.data(), k, 1}, {b.data(), n, 1},
                                               c.data(), n);
      xla::kernel::gemm_bfloat16<float, float>(m, n, k, {a.data(), k, 1}, {columns.data(), 1, k},
                                               again.data(), n);
      check(c == again, "products of bfloat16 do not depend on strides");
      double most = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = 0, size = 0;
          for (std::int64_t l = 0; l < k; ++l) {
            const double product = double{float(xla::bfloat16(a.data()[i * k + l]))} *
                                   double{float(xla::bfloat16(b.data()[l * n + j]))};
            sum += product;
            size += std::abs(product);
          }
          most = std::max(most, std::abs(c[static_cast<std::size_t>(i * n + j)] - sum) / size);
        }
      check(most < 1e-5, "products of bfloat16 are near their sums in double");
    }
    xla::manual_seed(7);
    const auto x = xla::randn<float>({2, 16, 9, 9}), w = xla::randn<float>({24, 16, 3, 3});
    auto results = xla::autocast(x, [&] {
                     return xla::conv2d(x, w, xla::zeros<float>({24}), {.stride = 2});
                   }).to_vector();
    const auto q = xla::randn<float>({1, 2, 19, 16}), v = xla::randn<float>({1, 2, 19, 16});
    for (const float y :
         xla::autocast(q, [&] { return xla::scaled_dot_product_attention(q, q, v); }).to_vector())
      results.push_back(y);
    if (first.empty()) first = results;
    for (std::size_t i = 0; i < first.size(); ++i)
      check(std::abs(first[i] - results[i]) < 1e-3, "algorithms of bfloat16 agree");
  }
  algorithm = chosen;
}

/// In the folder that the program is started in, under a name that is not ASCII.
void check_files() {
  const std::string name = "\u00e4\u00f6\u4e2d.npy";
  const auto numbers = xla::randn<float>({3, 5});
  xla::io::write_npy(name, numbers);
  check(xla::io::read_npy<float, 2>(name).to_vector() == numbers.to_vector(),
        "a file has the numbers that were written");
  const auto bytes = xla::io::read_file(name);
  const auto one = xla::io::to_npy(xla::ones<float>({1}));
  check(std::vector<std::uint8_t>(one.end() - 4, one.end()) ==
            std::vector<std::uint8_t>{0, 0, 0x80, 0x3f},
        "elements are little-endian in files");
#if __has_include(<filesystem>) && !defined(__wasi__)
  check(std::filesystem::exists(std::filesystem::path(u8"\u00e4\u00f6\u4e2d.npy")),
        "paths are UTF-8");
#endif
  {
    xla::io::atomic_file again{name};
    again.write(bytes);
    again.commit();
  }
  {
    const auto mapped = xla::io::map_file(name);
    check(std::equal(bytes.begin(), bytes.end(), mapped.begin(), mapped.end()),
          "a mapped file has the bytes of the one that was read");
  }
  check(xla::sys::remove_file(name), "the file can be removed");
  try {
    xla::io::map_file("no such file");
    check(false, "a file that is not there is refused");
  } catch (const xla::io_error& e) {
    check(std::string_view(e.what()).find("cannot open 'no such file'") == 0,
          "the error names the file");
  }
}

/// The bytes of a file are the same on every processor.
void check_safetensors() {
#if HAS_JSON
  using bytes = std::vector<std::uint8_t>;
  using xla::ext::FloatFormat;
  const auto weights = xla::tensor<float>({1, -2});
  const auto* const from = reinterpret_cast<const std::uint8_t*>(weights.data());
  const xla::ext::Safetensors content{{{"w", xla::dtype::float32, {2}, bytes(from, from + 8)}}, {}};
  const auto data_of = [&](FloatFormat format) {
    const auto file = xla::ext::to_safetensors(content, "f", format);
    check(file[0] == 56 && file[7] == 0, "the length of a header is little-endian");
    check(xla::ext::parse_safetensors(file, "f").tensors == content.tensors,
          "a safetensors file has the numbers that were written");
    return bytes(file.begin() + 64, file.end());
  };
  check(data_of(FloatFormat::float32) == bytes{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0}, "float32");
  check(data_of(FloatFormat::bfloat16) == bytes{0x80, 0x3f, 0, 0xc0}, "bfloat16");
  check(data_of(FloatFormat::float16) == bytes{0, 0x3c, 0, 0xc0}, "float16");
  check(xla::ext::detail::checksum_of(content) == "2832609076", "the checksum of a checkpoint");
#endif
}

void check_threads() {
  xla::data::Prefetcher<int> ahead(5, 2, [](std::int64_t i) { return static_cast<int>(10 * i); });
  for (int i = 0; i < 5; ++i) {
    const auto value = ahead.take();
    check(value && *value == 10 * i, "values that were made ahead come in order");
  }
  check(!ahead.take(), "there is none after the last");

  xla::set_num_threads(3);
  const auto big = xla::ones<float>({300, 300});
  check(xla::sum(xla::matmul(big, big)).item() == 27'000'000.f, "a product of several chunks");
  check((xla::num_threads() == 3) == xla::sys::has_threads, "as many threads as there can be");

  xla::set_device_count(2);
  try {
    xla::launch([](std::int64_t) {});
    check(xla::sys::has_threads, "replicas are refused without threads");
  } catch (const xla::error& e) {
    std::printf("%s\n", e.what());
    check(!xla::sys::has_threads &&
              std::string_view(e.what()).find("without threads") != std::string_view::npos,
          "replicas run where there are threads");
  }
}

struct own_error : xla::runtime_error {
  using xla::runtime_error::runtime_error;
};

/// Errors in a loop's body name the loop, with RTTI and without; types of others stay.
void check_loop_errors() {
  const auto loop = [](auto f) { xla::detail::in_body(xla::detail::call_site("scan"), 3, f); };
  try {
    loop([]() -> int { throw xla::runtime_error("no"); });
  } catch (const xla::error& e) {
    check(std::string_view(e.what()) == "no, in step 3 of scan", "an error has its loop's step");
  }
  try {
    loop([]() -> int { throw own_error("no"); });
  } catch (const own_error& e) {
    check(std::string_view(e.what()) == "no", "an error of another type is as it was");
  } catch (const xla::error&) {
    check(false, "an error keeps its type");
  }
}

}  // namespace

int main(int argc, char** argv) {
  check_training();
  check_kernels();
  check_bfloat16(argc > 1 ? argv[1] : "");
  check_files();
  check_safetensors();
  check_threads();
  check_loop_errors();
  std::printf(failures == 0 ? "all checks hold\n" : "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
