// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which system this is built for, and whether it has threads. Only base/system asks for the system;
// everything above calls the functions of this folder, which every system has in some form.

// Exactly one of these is 1, or none for a system that offers nothing but standard C++. A program
// that defines XLA_NO_SYSTEM gets that form anywhere.
#if defined(_WIN32) && !defined(XLA_NO_SYSTEM)
#define XLA_WINDOWS 1
#else
#define XLA_WINDOWS 0
#endif
#if defined(__wasi__) && !defined(XLA_NO_SYSTEM)
#define XLA_WASI 1
#else
#define XLA_WASI 0
#endif
#if (defined(__unix__) || defined(__APPLE__)) && !XLA_WASI && !defined(XLA_NO_SYSTEM)
#define XLA_POSIX 1
#else
#define XLA_POSIX 0
#endif
// Linux, which is also XLA_POSIX.
#if XLA_POSIX && defined(__linux__)
#define XLA_LINUX 1
#else
#define XLA_LINUX 0
#endif

// XLA_NO_THREADS: a traced graph runs where it is asked for, loops run on the caller's thread, and
// xla::launch refuses more than one replica.
#if defined(XLA_NO_THREADS) || (defined(__wasi__) && !defined(_REENTRANT))
#define XLA_THREADS 0
#else
#define XLA_THREADS 1
#endif
