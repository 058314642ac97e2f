// SPDX-License-Identifier: Apache-2.0
#pragma once

// Loops whose number of steps may be known at run time only: scan() and fori_loop().

#include "xla/loop/fori_loop.hpp"
#include "xla/loop/scan.hpp"
