// error: a.compiled.body,.like.a.pass.of.it,.is.constexpr
// then: log
#include <cstdio>
#include <xla/xla.hpp>

inline void log() { std::printf("called\n"); }
constexpr auto doubled = xla::custom_gradient(
    [](const auto& x) {
      log();
      return x * 2;
    },
    [](const auto&, const auto& g) { return g * 2; });

int main() {
  auto x = xla::ones<float>({2});
  xla::compile([](auto& x) { return doubled(x); })(x);
}
