// SPDX-License-Identifier: Apache-2.0
#pragma once

// Exchanges tensors with other libraries in the same process by DLPack, without copies. It needs
// the header dlpack.h and no library.

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xla/op/create.hpp"
#include "xla/tensor/buffer.hpp"

namespace xla {
namespace detail {

// DLPack 0.6, which Debian has, lacks the name for bool.
inline constexpr std::uint8_t dlpack_bool = 6;

constexpr DLDataType dlpack_type(dtype type) {
  const auto code = type == dtype::boolean                         ? dlpack_bool
                    : type == dtype::bfloat16                      ? std::uint8_t{kDLBfloat}
                    : type == dtype::uint8                         ? std::uint8_t{kDLUInt}
                    : type == dtype::int32 || type == dtype::int64 ? std::uint8_t{kDLInt}
                                                                   : std::uint8_t{kDLFloat};
  return {code, static_cast<std::uint8_t>(size_of(type) * 8), 1};
}

/// Throws unless the array has this element type and rank, and is in the processor's memory.
inline void check_dlpack(const DLTensor& from, dtype type, int rank, const call_site& site) {
  const auto refuse = [&](const text& what) {
    text sentence;
    sentence << site.function << ": " << what << site.at;
    throw runtime_error(std::string(sentence.view()));
  };
  const DLDataType want = dlpack_type(type);
  if (from.dtype.code != want.code || from.dtype.bits != want.bits || from.dtype.lanes != 1)
    refuse(text("the array's elements are of type code ")
           << int{from.dtype.code} << " with " << int{from.dtype.bits} << " bits and "
           << int{from.dtype.lanes} << " lanes; " << name_of(type) << " is code " << int{want.code}
           << " with " << int{want.bits} << " bits and one lane");
  if (from.ndim != rank)
    refuse(text("the array has ") << from.ndim << " axes, and the tensor's type " << rank);
  if (from.device.device_type != kDLCPU && from.device.device_type != kDLCUDAHost)
    refuse("the array is not in the processor's memory: copy it there first");
  for (int i = 0; i < rank; ++i)
    if (from.shape[i] < 0) refuse(text("a size is ") << from.shape[i]);
}

/// Whether the elements are contiguous in row-major order.
inline bool is_compact(const DLTensor& from) {
  if (!from.strides) return true;
  std::int64_t step = 1;
  for (int i = from.ndim; i-- > 0; step *= from.shape[i]) {
    if (from.shape[i] == 0) return true;
    if (from.shape[i] != 1 && from.strides[i] != step) return false;
  }
  return true;
}

inline void release_dlpack(void* managed) {
  auto* const m = static_cast<DLManagedTensor*>(managed);
  if (m->deleter) m->deleter(m);
}
inline constexpr memory_space dlpack_memory{.release = &release_dlpack};

/// The state of an exported tensor that lives until the other library releases it.
template <class T, int R>
struct dlpack_export {
  DLManagedTensor managed{};
  Tensor<T, R> share;
  std::vector<std::int64_t> sizes;
};

}  // namespace detail

/// Another library's array as a tensor, without a copy if its elements are row-major; others are
/// copied. Takes the array over: its deleter runs when the last tensor that shares it is destroyed.
/// The array is never written, as in-place forms make a copy first; its owner must not write it
/// either. Throws `xla::error` for another element type, rank or device, and then leaves the array
/// to the caller. See github.com/dmlc/dlpack.
template <element T, int R>
Tensor<T, R> from_dlpack(DLManagedTensor* array, caller loc = here()) {
  const DLTensor& from = array->dl_tensor;
  detail::check_dlpack(from, dtype_of<T>, R, {"from_dlpack", loc});
  Size sizes[R > 0 ? R : 1] = {1};
  detail::shape dims;
  for (int i = 0; i < R; ++i) dims.push(from.shape[i]), sizes[i] = from.shape[i];
  auto* const data = static_cast<std::byte*>(from.data) + from.byte_offset;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % alignof(T) == 0;
  Tensor<T, R> out;
  if (detail::is_compact(from) && aligned) {
    detail::machine_of<T>::borrow(out, dtype_of<T>, dims, {&detail::dlpack_memory, array, data});
    return out;
  }
  const auto elements = std::make_unique<T[]>(static_cast<std::size_t>(detail::count(dims)));
  std::int64_t strides[detail::max_rank];
  if (from.strides) std::copy_n(from.strides, R, strides);
  else detail::find_strides(dims, {}, strides);
  detail::copy_row_by_row(dims, strides, data, elements.get(), sizeof(T));
  detail::machine_of<T>::upload(out, dtype_of<T>, dims, elements.get());
  detail::release_dlpack(array);
  return out;
}

/// A tensor for another library, without a copy; waits for its elements. The caller passes it to a
/// library that will call its deleter, or calls that itself. The elements stay as they are,
/// whatever happens to the tensor, and must not be written. In DLPack its device is always the
/// processor with number 0; `from_dlpack` puts the tensor on the thread's device.
template <class T, int R>
DLManagedTensor* to_dlpack(const Tensor<T, R>& t) {
  auto out = std::make_unique<detail::dlpack_export<T, R>>();
  out->sizes = t.sizes();
  out->share = t.detach();
  DLTensor& to = out->managed.dl_tensor;
  to.data = const_cast<T*>(out->share.data());
  to.device = {kDLCPU, 0};
  to.ndim = R;
  to.dtype = detail::dlpack_type(dtype_of<T>);
  to.shape = out->sizes.data();
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<detail::dlpack_export<T, R>*>(self->manager_ctx);
  };
  return &out.release()->managed;
}

}  // namespace xla
