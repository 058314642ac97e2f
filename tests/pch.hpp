// SPDX-License-Identifier: Apache-2.0
// Precompiled for every test; a test still includes what it uses.
#include <xla/xla.hpp>

#include "catch.hpp"
