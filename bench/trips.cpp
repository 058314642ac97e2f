// SPDX-License-Identifier: Apache-2.0
// What a number of steps costs that a compiled function has not had: a scan over 1 to 10,000 rows
// of four numbers, without and with its gradient, and a fori_loop, each number for the first time
// and once more right away.

#include "trips.hpp"

int main() {
  xla::set_num_threads(1);
  xla::eager_mode(true);
  bench::measure_all_trips("trips", 10000);
}
