// SPDX-License-Identifier: Apache-2.0
// A program for other registers than its runtime: it does not link, whatever it does.
#include <xla/xla.hpp>

int main() { xla::eager_mode(true); }
