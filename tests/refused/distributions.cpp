// What distributions do not take.
// error: xla::distributions::Categorical: takes probs or logits, not both
// error: xla::distributions::Bernoulli: takes probs or logits, not both
// error: xla::distributions: the element types of the parameters differ; convert one
// error: xla::distributions::Independent: more event axes than the distribution has axes
#include <xla/distributions.hpp>

using namespace xla::distributions;
using Tensor = xla::Tensor<float, 1>;

auto categorical(Tensor x) { return Categorical(probs(x), logits(x)); }
auto bernoulli(Tensor x) { return Bernoulli(logits(x), probs(x)); }
auto normal(Tensor x, xla::Tensor<double, 1> scale) { return Normal(x, scale); }
auto event(Tensor x) { return independent<2>(Normal(x, 1)); }
