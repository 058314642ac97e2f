// SPDX-License-Identifier: Apache-2.0
#pragma once

// The number of allocations of a program, which allocations.cpp counts, for the part overhead.

namespace bench {

/// Allocations of this program so far, in all threads: malloc's family, and so operator new.
long long allocations();

}  // namespace bench
