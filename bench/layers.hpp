// SPDX-License-Identifier: Apache-2.0
#pragma once

// How deep a benchmark's decoder is, by macros: LAYERS, called one by one or, with SCAN_LAYERS, as
// a loop.

#ifdef SCAN_LAYERS
#include <xla/loop/scan_layers.hpp>
#else
#define SCAN_LAYERS false
#endif
#ifndef LAYERS
#define LAYERS 2
#endif
