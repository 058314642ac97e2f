// error: xla reports errors by exceptions: compile without -fno-exceptions
// flags: -fno-exceptions
#include "xla/xla.hpp"
int main() {}
