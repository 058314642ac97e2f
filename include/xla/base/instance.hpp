// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where the code of the run time is instantiated: by default in every translation unit, as far as
// that unit uses it. With XLA_EXTERN_RUNTIME, which CMake's target xla::runtime defines, it is
// instantiated in the sources of that target (cmake/runtime/). These define XLA_RUNTIME_SOURCE as
// well, and only they see the definitions.

// XLA_RUNTIME_HERE: this unit sees the definitions. A header of the run time declares `template
// <class = void> void f();`, a template only so that an include instantiates nothing, and ends with
//   #if XLA_RUNTIME_HERE
//   #include what defines it
//   #endif
#if !defined(XLA_EXTERN_RUNTIME) || defined(XLA_RUNTIME_SOURCE)
#define XLA_RUNTIME_HERE 1
#else
#define XLA_RUNTIME_HERE 0
#endif

// XLA_KERNELS_HERE: this unit also compiles kernels of ops. The other sources of that target only
// declare them.
#if !defined(XLA_RUNTIME_SOURCE) || defined(XLA_RUNTIME_OPS)
#define XLA_KERNELS_HERE 1
#else
#define XLA_KERNELS_HERE 0
#endif

// [[XLA_PLANS]] is for what runs once for each new signature of shapes. The units of a program
// compile it for size, as cold functions, and the library, which is built once, for speed.
#if defined(XLA_RUNTIME_SOURCE)
#define XLA_PLANS
#else
#define XLA_PLANS gnu::cold
#endif

// A program that links no run time, or one built for another instruction set, fails to link. The
// name of the missing symbol says what to do.
#if defined(XLA_EXTERN_RUNTIME)
#if defined(__AVX512F__)
#define XLA_RUNTIME_TAG xla_runtime_avx512__link_xla_runtime_or_xla_add_runtime_with_the_same_march
#elif defined(__AVX2__) && defined(__FMA__)
#define XLA_RUNTIME_TAG \
  xla_runtime_avx2_fma__link_xla_runtime_or_xla_add_runtime_with_the_same_march
#elif defined(__AVX2__)
#define XLA_RUNTIME_TAG xla_runtime_avx2__link_xla_runtime_or_xla_add_runtime_with_the_same_march
#elif defined(__AVX__)
#define XLA_RUNTIME_TAG xla_runtime_avx__link_xla_runtime_or_xla_add_runtime_with_the_same_march
#else
#define XLA_RUNTIME_TAG xla_runtime_base__link_xla_runtime_or_xla_add_runtime_with_the_same_march
#endif
extern "C" const char XLA_RUNTIME_TAG;
#if !XLA_RUNTIME_HERE
#if __has_cpp_attribute(gnu::retain)  // also by a linker that leaves out what nothing refers to
#define XLA_KEPT [[gnu::used, gnu::retain]]
#else
#define XLA_KEPT [[gnu::used]]
#endif
namespace {
XLA_KEPT const char* const xla_needed_runtime = &XLA_RUNTIME_TAG;
}
#undef XLA_KEPT
#endif
#endif

// XLA_INSTANCE(void f<void>()); is next to a definition, and instantiates it in run.cpp for all
// units.
#if defined(XLA_RUNTIME_RUN)
#define XLA_INSTANCE(...) template __VA_ARGS__
#elif defined(XLA_EXTERN_RUNTIME)
#define XLA_INSTANCE(...) extern template __VA_ARGS__
#else
#define XLA_INSTANCE(...) static_assert(true)
#endif

// The same for layers above the run time, in library.cpp; for what the kernels of ops share, in
// ops_*.cpp; and for code that uses products of floats, in ops_products_float.cpp.
#if defined(XLA_RUNTIME_LIBRARY)
#define XLA_LIBRARY_INSTANCE(...) template __VA_ARGS__
#elif defined(XLA_EXTERN_RUNTIME)
#define XLA_LIBRARY_INSTANCE(...) extern template __VA_ARGS__
#else
#define XLA_LIBRARY_INSTANCE(...) static_assert(true)
#endif
#if defined(XLA_RUNTIME_OPS)
#define XLA_OP_INSTANCE(...) template __VA_ARGS__
#elif defined(XLA_EXTERN_RUNTIME)
#define XLA_OP_INSTANCE(...) extern template __VA_ARGS__
#else
#define XLA_OP_INSTANCE(...) static_assert(true)
#endif
#if defined(XLA_RUNTIME_PRODUCTS)
#define XLA_PRODUCT_INSTANCE(...) template __VA_ARGS__
#elif defined(XLA_EXTERN_RUNTIME)
#define XLA_PRODUCT_INSTANCE(...) extern template __VA_ARGS__
#else
#define XLA_PRODUCT_INSTANCE(...) static_assert(true)
#endif

// Code that runs passes over recorded graphs is instantiated in passes.cpp, which alone sees its
// definitions.
#if !defined(XLA_EXTERN_RUNTIME)
#define XLA_PASSES_HERE 1
#define XLA_PASS_INSTANCE(...) static_assert(true)
#elif defined(XLA_RUNTIME_PASSES)
#define XLA_PASSES_HERE 1
#define XLA_PASS_INSTANCE(...) template __VA_ARGS__
#else
#define XLA_PASSES_HERE 0
#define XLA_PASS_INSTANCE(...) extern template __VA_ARGS__
#endif
