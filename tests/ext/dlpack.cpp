// SPDX-License-Identifier: Apache-2.0
#include "xla/ext/dlpack.hpp"

#include <memory>
#include <vector>

#include "catch.hpp"
#include "support/memory_spaces.hpp"
#include "xla/xla.hpp"

namespace {

/// An array as another library would hand it out, in memory of exactly its size.
struct foreign {
  DLManagedTensor managed{};
  std::vector<std::int64_t> sizes, strides;
  std::unique_ptr<float[]> elements;
  int* deleted;

  foreign(std::vector<std::int64_t> shape, std::vector<std::int64_t> steps, std::size_t count,
          int* counter)
      : sizes(std::move(shape)),
        strides(std::move(steps)),
        elements(new float[count]),
        deleted(counter) {
    for (std::size_t i = 0; i < count; ++i) elements[i] = static_cast<float>(i);
    managed.dl_tensor = {elements.get(),
                         {kDLCPU, 0},
                         static_cast<int>(sizes.size()),
                         {kDLFloat, 32, 1},
                         sizes.data(),
                         strides.empty() ? nullptr : strides.data(),
                         0};
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* m) {
      auto* self = static_cast<foreign*>(m->manager_ctx);
      ++*self->deleted;
      delete self;
    };
  }
};

}  // namespace

TEST_CASE("another library's array is a tensor without a copy, and is never written") {
  const bool eager = GENERATE(true, false);
  const xla::eager_mode_guard mode(eager);
  int deleted = 0;
  auto* array = new foreign({3, 5}, {}, 15, &deleted);
  const float* const elements = array->elements.get();
  {
    auto x = xla::from_dlpack<float, 2>(&array->managed);
    CHECK(x.data() == elements);
    const auto same = x;
    x += 1.f;
    x *= 2.f;
    auto step = xla::compile([](auto& x) {
      x = x * 2;
      return xla::sum(x);
    });
    CHECK(step(x).item() == 15 * 14 / 2 * 4 + 15 * 4);
    CHECK(x.data()[14] == 60);
    CHECK(elements[14] == 14);
    auto again = same;
    CHECK(step(again).item() == 15 * 14);
    CHECK(elements[14] == 14);
    CHECK(xla::sum(xla::softmax(same, -1)).item() == Approx(3));
    CHECK(deleted == 0);
  }
  xla::sync(true);
  CHECK(deleted == 1);
}

TEST_CASE("an array of other strides is copied") {
  const xla::eager_mode_guard eager;
  int deleted = 0;
  auto* array = new foreign({2, 3}, {1, 4}, 10, &deleted);
  const auto x = xla::from_dlpack<float, 2>(&array->managed);
  CHECK(deleted == 1);
  CHECK(x.to_vector() == std::vector<float>{0, 4, 8, 1, 5, 9});
  auto* offset = new foreign({2}, {1}, 3, &deleted);
  offset->managed.dl_tensor.byte_offset = 4;
  CHECK(xla::from_dlpack<float, 1>(&offset->managed).to_vector() == std::vector<float>{1, 2});
  auto* none = new foreign({0, 4}, {4, 1}, 0, &deleted);
  CHECK(xla::from_dlpack<float, 2>(&none->managed).numel() == 0);
  CHECK(deleted == 3);
}

TEST_CASE("an array that does not match is refused and stays the caller's") {
  int deleted = 0;
  foreign array({2, 3}, {}, 6, &deleted);
  CHECK_THROWS_WITH((xla::from_dlpack<double, 2>(&array.managed)),
                    test::contains("from_dlpack: the array's elements are of type code 2 with 32 "
                                   "bits and 1 lanes; float64 is code 2 with 64 bits"));
  CHECK_THROWS_WITH((xla::from_dlpack<float, 1>(&array.managed)),
                    test::contains("the array has 2 axes, and the tensor's type 1"));
  array.managed.dl_tensor.device.device_type = kDLCUDA;
  CHECK_THROWS_WITH((xla::from_dlpack<float, 2>(&array.managed)),
                    test::contains("not in the processor's memory"));
  CHECK(deleted == 0);
}

TEST_CASE("a tensor goes out without a copy, and comes back") {
  const bool eager = GENERATE(true, false);
  const xla::eager_mode_guard mode(eager);
  auto x = xla::tensor<std::int64_t>({{1, 2, 3}, {4, 5, 6}});
  auto* out = xla::to_dlpack(x);
  CHECK(out->dl_tensor.data == x.data());
  CHECK(out->dl_tensor.ndim == 2);
  CHECK(out->dl_tensor.shape[1] == 3);
  CHECK(out->dl_tensor.dtype.code == kDLInt);
  x += 1;
  CHECK(x.data()[0] == 2);
  const auto back = xla::from_dlpack<std::int64_t, 2>(out);
  x = back;
  CHECK(back.to_vector() == std::vector<std::int64_t>{1, 2, 3, 4, 5, 6});
  auto* boolean = xla::to_dlpack(back > 3);
  CHECK(boolean->dl_tensor.dtype.code == 6);
  CHECK(boolean->dl_tensor.dtype.bits == 8);
  boolean->deleter(boolean);
}

TEST_CASE("elements in another memory space are exported in row-major order") {
  const xla::eager_mode_guard eager;
  const auto x = xla::tensor<float>({{1, 2, 3}, {4, 5, 6}});
  for (const auto* place : {&test::ordered_memory, &test::backend_memory}) {
    auto* out = xla::to_dlpack(test::laid_out(x, {1, 0}, *place));
    const auto back = xla::from_dlpack<float, 2>(out);
    CHECK(back.data() == out->dl_tensor.data);
    CHECK(back.to_vector() == x.to_vector());
  }
  CHECK(test::backend_elements::living == 0);
}
