// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one gate to Boost.Hana: what the library uses of it, and nothing more. hana::tuple would
// bring 36 KB of text more to every program.

#include <boost/hana/basic_tuple.hpp>
#include <boost/hana/unpack.hpp>

namespace xla {
namespace hana = boost::hana;
}
