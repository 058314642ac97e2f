// More forms taken from habit.
// error: xla::max: write axes in braces: xla::max\(x, {1}\). for its position write xla::argmax\(x, 1\)
// error: xla::randn: write sizes in braces: xla::randn<float>\({3, 4}\)
// error: xla::zeros: write sizes in braces
// error: xla::cross_entropy: a reduction is no text: xla::cross_entropy\(x, target, xla::reduction::sum\)
// error: xla::mse_loss: a reduction is no text
// error: xla: a tensor is added to a number. write total \+= loss.item\(\)
// error: xla: printf takes no tensor. write loss.item\(\)
// error: xla: snprintf takes no tensor
// error: xla::Tensor: the number of axes is in the type: xla::Tensor<float, 2>
// error: xla: a tensor with axes is used as a condition. write xla::any\(c\) or xla::all\(c\)
// error: xla: a tensor of std::int32_t with 2 axes was given where std::int64_t with 2 axes is taken. convert it
#include <cstdio>

#include <xla/xla.hpp>

using Matrix = xla::Tensor<float, 2>;

void largest(Matrix x) { xla::max(x, 1); }
void sizes_without_braces() { xla::randn<float>(3, 4); }
void size_without_braces() { xla::zeros(3); }
void reduction_as_text(Matrix x, xla::Tensor<std::int64_t, 1> y) { xla::cross_entropy(x, y, "sum"); }
void other_reduction_as_text(Matrix x) { xla::mse_loss(x, x, "none"); }
void total(float& sum, xla::Tensor<float, 0> loss) { sum += loss; }
void printed(xla::Tensor<float, 0> loss) { printf("%f", loss); }
void printed_to_text(char* to, Matrix x) { snprintf(to, 9, "%f", xla::mean(x)); }
xla::Tensor<float> without_rank();
void rank_missing() { without_rank(); }
bool condition(Matrix x) { return x > 0 ? true : false; }
void no_truths(Matrix x) { if (!x) return; }
void index_of_layer(xla::nn::Embedding& layer, xla::Tensor<int, 2> i) { layer(i); }
