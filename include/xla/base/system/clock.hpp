// SPDX-License-Identifier: Apache-2.0
#pragma once

// The clocks and durations of std::chrono, without its calendars where the standard library has
// them in another header: those are a hundredth of what a program reads with xla.hpp.

#if __has_include(<bits/chrono.h>)  // libstdc++ from 12 on
#include <bits/chrono.h>
#else
#include <chrono>
#endif
