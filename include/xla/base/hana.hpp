// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one gate to Boost.Hana: what the library uses of it, and nothing more.
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

namespace xla {
namespace hana = boost::hana;
}
