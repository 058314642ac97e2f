// SPDX-License-Identifier: Apache-2.0
// Precompiled for every test; a test still includes what it uses.
#include "catch.hpp"
#include "xla/xla.hpp"
