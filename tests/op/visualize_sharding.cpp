// SPDX-License-Identifier: Apache-2.0
// The picture of a sharding, as text.
#include "xla/op/visualize_sharding.hpp"
#include "catch.hpp"
#include "xla/xla.hpp"

TEST_CASE("a picture has a box for each part, with the devices that have it") {
  constexpr xla::Mesh mesh{{2, 2}, {"data", "model"}};
  CHECK(xla::visualize_sharding(mesh, {"data", "model"}) ==
        "+---+---+\n| 0 | 1 |\n+---+---+\n| 2 | 3 |\n+---+---+\n");
  CHECK(xla::visualize_sharding(mesh, {"model", "data"}) ==
        "+---+---+\n| 0 | 2 |\n+---+---+\n| 1 | 3 |\n+---+---+\n");
  CHECK(xla::visualize_sharding(mesh, {"data", {}}) ==
        "+------+\n| 0, 1 |\n+------+\n| 2, 3 |\n+------+\n");
  CHECK(xla::visualize_sharding(mesh, {{}, "data"}) ==
        "+------+------+\n| 0, 1 | 2, 3 |\n+------+------+\n");
  CHECK(xla::visualize_sharding(mesh, {{}, {}}) ==
        "+------------+\n| 0, 1, 2, 3 |\n+------------+\n");
  const auto x = xla::zeros<float>({3, 4, 6});
  CHECK(xla::visualize_tensor_sharding(x, mesh, {{}, "model", "data"}) ==
        xla::visualize_sharding(mesh, {"model", "data"}));
}

TEST_CASE("names and sizes that a mark may not have are errors") {
  constexpr xla::Mesh mesh{{2, 2, 2}, {"a", "b", "c"}};
  CHECK_THROWS_WITH(xla::visualize_sharding(mesh, {"d"}),
                    "visualize_sharding: the mesh has no axis \"d\"; name one that it has, or {}");
  CHECK_THROWS_WITH(xla::visualize_sharding(mesh, {"a", "a"}),
                    "visualize_sharding: \"a\" shards two axes; name it once");
  CHECK_THROWS_WITH(xla::visualize_sharding(mesh, {"a", "b", "c"}),
                    "visualize_sharding: three axes are sharded, and a picture has two; leave one "
                    "whole, {}");
  const auto x = xla::zeros<float>({3, 4});
  CHECK_THROWS_AS(xla::visualize_tensor_sharding(x, mesh, {"a", {}}), xla::shape_error);
}
