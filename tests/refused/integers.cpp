// What integers and bool do not give, and what to write.
// error: xla::mean: needs float or double; write xla::mean\(xla::cast<float>\(x\)\)
// error: a fraction would be truncated in a tensor of integers; convert the tensor first: xla::cast<float>\(x\)
// error: /= of a tensor of integers or bool would truncate fractions; write x = xla::floor_divide\(x, y\)
// error: tensors of bool have no rounded quotient; write xla::cast<std::int64_t>\(x\)
// error: take tensors of bool or integers; put comparisons in parentheses: \(x > 0\) & \(y > 0\)
// error: a number was given where a tensor of bool is taken
// error: the element types of the tensors, .+ and .+, differ; convert one: xla::cast<.+>\(x\)
// error: tensors of bool have no -, and no number is added to them or multiplied; write ~x for 1 - x
#include <xla/xla.hpp>

template <class T>
using Vector = xla::Tensor<T, 1>;

auto mean_of_int32(Vector<std::int32_t> x) { return mean(x); }
auto mean_of_int64(Vector<std::int64_t> x) { return mean(x, {0}); }
auto mean_of_uint8(Vector<std::uint8_t> x) { return mean(x, {0}, xla::keepdim); }
auto mean_of_bool(Vector<bool> x) { return mean(x); }
auto times_fraction(Vector<int> x) { return x * 0.5; }
auto floor_of_fraction(Vector<int> x) { return floor_divide(x, 0.5); }
void in_place(Vector<int> x, Vector<int> y) { x /= y; }
void by_number(Vector<std::int64_t> x) { x /= 2; }
void part(Vector<std::uint8_t> x) { x[0] /= 2; }
auto floor_of_bool(Vector<bool> x) { return floor_divide(x, x); }
auto without_parentheses(Vector<float> x, Vector<float> y) { return x > 0 & y > 0; }
auto bits_of_fractions(Vector<float> x) { return ~x; }
auto number_beside_bool(Vector<bool> x) { return x & 2; }
auto types_of_bits(Vector<std::int64_t> x, Vector<bool> y) { return x | y; }
auto types_of_quotient(Vector<float> x, Vector<double> y) { return x / y; }
auto types_of_comparison(Vector<int> x, Vector<std::int64_t> y) { return x == y; }
auto order_of_types(Vector<float> x, Vector<std::int64_t> y) { return x < y; }
auto difference_of_bool(Vector<bool> x) { return x - x; }
auto negative_bool(Vector<bool> x) { return -x; }
auto one_minus_bool(Vector<bool> x) { return 1 - x; }
auto twice_bool(Vector<bool> x) { return x * 2; }
auto bool_and_one(Vector<bool> x) { return x + 1; }
auto types_of_floor(Vector<int> x, Vector<std::int64_t> y) { return floor_divide(x, y); }
