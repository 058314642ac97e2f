// SPDX-License-Identifier: Apache-2.0
// One of the networks of reading.py that the ten models of models.py are not: TASK of reading.hpp.
#include "reading.hpp"

#ifndef TASK  // nobody has said which
#define TASK pnet_task
#endif

int main(int argc, char** argv) { return bench::serve_reading<bench::TASK>(argc, argv); }
