// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops whose number of steps may be known at run time only, scan(), associative_scan(),
// fori_loop() and while_loop(), and the choice between two branches, cond().

#include "xla/loop/associative_scan.hpp"
#include "xla/loop/cond.hpp"
#include "xla/loop/fori_loop.hpp"
#include "xla/loop/gradient_accumulation.hpp"
#include "xla/loop/scan.hpp"
#include "xla/loop/while_loop.hpp"
