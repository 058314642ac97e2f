// SPDX-License-Identifier: Apache-2.0
#pragma once

// The functions of Windows that this folder calls, declared as <windows.h> declares them. That
// header would bring its macros, such as `near` and `small`, into every program.

#include "xla/base/system/platform.hpp"

#if XLA_WINDOWS
extern "C" {
struct _RTL_SRWLOCK;
struct _RTL_CONDITION_VARIABLE;
struct _SECURITY_ATTRIBUTES;
struct HINSTANCE__;

#define XLA_WINDOWS_API(result) __declspec(dllimport) result __stdcall
XLA_WINDOWS_API(void) AcquireSRWLockExclusive(struct _RTL_SRWLOCK*);
XLA_WINDOWS_API(void) ReleaseSRWLockExclusive(struct _RTL_SRWLOCK*);
XLA_WINDOWS_API(unsigned char) TryAcquireSRWLockExclusive(struct _RTL_SRWLOCK*);
XLA_WINDOWS_API(void) WakeConditionVariable(struct _RTL_CONDITION_VARIABLE*);
XLA_WINDOWS_API(void) WakeAllConditionVariable(struct _RTL_CONDITION_VARIABLE*);
XLA_WINDOWS_API(int)
SleepConditionVariableSRW(struct _RTL_CONDITION_VARIABLE*, struct _RTL_SRWLOCK*,
                          unsigned long milliseconds, unsigned long flags);

XLA_WINDOWS_API(int) GetPhysicallyInstalledSystemMemory(unsigned long long* kilobytes);
XLA_WINDOWS_API(void*)
CreateFileW(const wchar_t* name, unsigned long access, unsigned long share,
            struct _SECURITY_ATTRIBUTES*, unsigned long creation, unsigned long flags, void*);
XLA_WINDOWS_API(void*)
CreateFileMappingW(void* file, struct _SECURITY_ATTRIBUTES*, unsigned long protection,
                   unsigned long high, unsigned long low, const wchar_t* name);
XLA_WINDOWS_API(void*)
MapViewOfFile(void* mapping, unsigned long access, unsigned long high, unsigned long low,
              unsigned long long bytes);
XLA_WINDOWS_API(int) UnmapViewOfFile(const void*);
XLA_WINDOWS_API(int) CloseHandle(void*);

XLA_WINDOWS_API(struct HINSTANCE__*) LoadLibraryW(const wchar_t* name);
typedef long long(__stdcall* xla_far_proc)();
XLA_WINDOWS_API(xla_far_proc) GetProcAddress(struct HINSTANCE__*, const char* name);
XLA_WINDOWS_API(unsigned long) GetLastError();

typedef void(__stdcall* xla_fls_callback)(void*);
XLA_WINDOWS_API(unsigned long) FlsAlloc(xla_fls_callback);
XLA_WINDOWS_API(int) FlsSetValue(unsigned long index, void* value);
#undef XLA_WINDOWS_API
}
#endif
