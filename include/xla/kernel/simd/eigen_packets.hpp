// SPDX-License-Identifier: Apache-2.0
#pragma once

// Includes the part of Eigen that kernels use, packets and their functions, which costs three
// fifths of including Eigen/Core. The list is that of Eigen/Core 3.4 up to its functors. With other
// versions and architectures, or if the program has included Eigen/Core already, all of it is
// included. Eigen/Core may be included later.

// g++ 12 warns of uninitialised registers in the AVX-512 intrinsics; the warning can only be
// silenced around the include.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#if !defined(EIGEN_CORE_H) && defined(__x86_64__) && !defined(EIGEN_USE_MKL_ALL) && \
    !defined(EIGEN_USE_SYCL) && !defined(__CUDACC__) && !defined(__HIPCC__) &&      \
    __has_include(<Eigen/src/Core/arch/Default/GenericPacketMathFunctionsFwd.h>) &&     \
    !__has_include(<Eigen/src/Core/InternalHeaderCheck.h>)

#include <Eigen/src/Core/util/DisableStupidWarnings.h>

#include <Eigen/src/Core/util/Macros.h>

#include <Eigen/src/Core/util/ConfigureVectorization.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>

#include <Eigen/src/Core/util/MKL_support.h>
#ifndef EIGEN_HAS_ERRNO
#define EIGEN_HAS_ERRNO
#endif
namespace Eigen {
using std::ptrdiff_t;
using std::size_t;
}  // namespace Eigen

// clang-format off
#include <Eigen/src/Core/util/Constants.h>
#include <Eigen/src/Core/util/Meta.h>
#include <Eigen/src/Core/util/ForwardDeclarations.h>
#include <Eigen/src/Core/util/StaticAssert.h>
#include <Eigen/src/Core/util/XprHelper.h>
#include <Eigen/src/Core/util/Memory.h>
#include <Eigen/src/Core/util/IntegralConstant.h>
#include <Eigen/src/Core/util/SymbolicIndex.h>

#include <Eigen/src/Core/NumTraits.h>
#include <Eigen/src/Core/MathFunctions.h>
#include <Eigen/src/Core/GenericPacketMath.h>
#include <Eigen/src/Core/MathFunctionsImpl.h>
#include <Eigen/src/Core/arch/Default/ConjHelper.h>
#include <Eigen/src/Core/arch/Default/Half.h>
#include <Eigen/src/Core/arch/Default/BFloat16.h>
#include <Eigen/src/Core/arch/Default/TypeCasting.h>
#include <Eigen/src/Core/arch/Default/GenericPacketMathFunctionsFwd.h>

#if defined(EIGEN_VECTORIZE_AVX512)
#include <Eigen/src/Core/arch/SSE/PacketMath.h>
#include <Eigen/src/Core/arch/SSE/TypeCasting.h>
#include <Eigen/src/Core/arch/SSE/Complex.h>
#include <Eigen/src/Core/arch/AVX/PacketMath.h>
#include <Eigen/src/Core/arch/AVX/TypeCasting.h>
#include <Eigen/src/Core/arch/AVX/Complex.h>
#include <Eigen/src/Core/arch/AVX512/PacketMath.h>
#include <Eigen/src/Core/arch/AVX512/TypeCasting.h>
#include <Eigen/src/Core/arch/AVX512/Complex.h>
#include <Eigen/src/Core/arch/SSE/MathFunctions.h>
#include <Eigen/src/Core/arch/AVX/MathFunctions.h>
#include <Eigen/src/Core/arch/AVX512/MathFunctions.h>
#elif defined(EIGEN_VECTORIZE_AVX)
#include <Eigen/src/Core/arch/SSE/PacketMath.h>
#include <Eigen/src/Core/arch/SSE/TypeCasting.h>
#include <Eigen/src/Core/arch/SSE/Complex.h>
#include <Eigen/src/Core/arch/AVX/PacketMath.h>
#include <Eigen/src/Core/arch/AVX/TypeCasting.h>
#include <Eigen/src/Core/arch/AVX/Complex.h>
#include <Eigen/src/Core/arch/SSE/MathFunctions.h>
#include <Eigen/src/Core/arch/AVX/MathFunctions.h>
#elif defined(EIGEN_VECTORIZE_SSE)
#include <Eigen/src/Core/arch/SSE/PacketMath.h>
#include <Eigen/src/Core/arch/SSE/TypeCasting.h>
#include <Eigen/src/Core/arch/SSE/MathFunctions.h>
#include <Eigen/src/Core/arch/SSE/Complex.h>
#endif
#include <Eigen/src/Core/arch/Default/Settings.h>
#include <Eigen/src/Core/arch/Default/GenericPacketMathFunctions.h>
// clang-format on

#include <Eigen/src/Core/util/ReenableStupidWarnings.h>

#else
#include <Eigen/Core>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
