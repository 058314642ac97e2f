// error: xla::compile: give a module that lives longer than the compiled function
#include <xla/xla.hpp>

void f() { auto g = xla::compile(xla::nn::Linear(2, 3)); }
