// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bench {

/// Allocations of this program so far, in all threads: malloc's family, and so operator new.
long long allocations();

}  // namespace bench
