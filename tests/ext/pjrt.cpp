// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_arrays.hpp"
#include "xla/ext/pjrt/ahead_of_time.hpp"
#include "xla/ext/pjrt/compile.hpp"
#include "xla/run/state/metrics.hpp"

namespace fs = std::filesystem;
using namespace xla::ext::pjrt;
using test::add;
using test::add_to;
using test::array;
using test::content;
using test::folder;
using test::four;
using test::on;
using test::ones;
using test::pair_of;
using test::thrown;
using test::variable;

namespace {

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const auto& e : fs::directory_iterator(folder)) all.push_back(e.path());
  return all;
}

std::int64_t counted(const char* name) { return xla::counter_value(name).value_or(0); }

}  // namespace

TEST_CASE("the argument types of a program are parsed from its text") {
  const auto p = parameters_of(
      "module @m attributes {a = \"@main\"} {\n func.func public @main(%arg0: tensor<64x10xf32> "
      "{jax.buffer_donor = true}, %1 : tensor<ui64>, %2: tensor<0x3xi1> {mhlo.sharding = "
      "\"{devices=[2,1]<=[2]}\", x = {y = 1}} loc(\"a\"), %3:tensor<4xbf16> {tf.aliasing_output = "
      "0 : i32}) -> (tensor<f32>) {");
  REQUIRE(p.size() == 4);
  CHECK(p[0].type == array(element::float32, {64, 10}));
  CHECK(p[1].type == array(element::uint64, {}));
  CHECK(p[2].type == array(element::boolean, {0, 3}));
  CHECK(p[3].type == array(element::bfloat16, {4}));
  CHECK((p[0].donated && !p[1].donated && !p[2].donated && p[3].donated));
  CHECK(describe(p[0].type) == "float32 (64, 10)");
  CHECK(parameters_of("func.func @main() -> tensor<f32>").empty());
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "no function @main"},
           {"@main(", "ends within"},
           {"@main(%0: tensor<4xf32>", "ends within"},
           {"@main(%0: tensor<4xf32", "ends within"},
           {"@main(%0: tensor<4xf32> {a = \"", "ends within"},
           {"@main(%0", "ends within"},
           {"@main(tensor<4xf32>)", "has no name"},
           {"@main(%0: memref<4xf32>)", "memref<4xf32 is no tensor"},
           {"@main(%0: tensor<?xf32>)", "tensor<?xf32> is of no type"},
           {"@main(%0: tensor<4xcomplex<f32>>)", "is of no type"},
           {"@main(%0: tensor<99999999999999999999xf32>)", "is of no type"},
           {"@main(%0: tensor<1x1x1x1x1x1x1xf32>)", "too many axes"},
           {"@main(%0: tensor<4xf32> %1: tensor<4xf32>)", "',' is missing"}})
    CHECK_THAT(thrown([&] { parameters_of(text); }), test::contains(why));
}

TEST_CASE("a text whose functions or brackets do not end is refused before XLA reads it") {
  const auto said = [](const std::string& text) { return thrown([&] { check_text(text); }); };
  const auto calls = [](const std::string& f, const std::string& g) {
    return "func.func private @" + f + "(%0: tensor<f32>) -> tensor<f32> { %1 = func.call @" + g +
           "(%0) : (tensor<f32>) -> tensor<f32>\n func.return %1 : tensor<f32> }\n";
  };
  const std::string self = "calls itself", leaf = "func.func private @z() { func.return }\n";
  for (const std::string& text :
       {calls("f", "f"), calls("f", "g") + leaf + calls("g", "h") + calls("h", "f"),
        "module { " + calls("\"f g\"", "\"f g\"") + "}",
        std::string(R"("func.func"() <{sym_name = "f", sym_visibility = "private"}> ({
          %1 = "func.call"(%0) <{callee = @f}> : () -> () }) : () -> ())"),
        std::string("func.func @f() { } func.func @g() { \"stablehlo.composite\"() {decomposition "
                    "= @g} : () -> () }")})
    CHECK_THAT(said(text), test::contains(self));
  for (const std::string& text :
       {calls("f", "z") + leaf + calls("g", "z"), calls("f", "g") + "// @f\n" + calls("g", "z"),
        calls("f", "g") + calls("g", "z") + leaf + calls("h", "f"),
        std::string("sdy.mesh @f = <[\"d\"=2]> func.func @f() {a = \"@f \\\" @f\"} {"),
        std::string("\""), std::string("@"), std::string("@\""), std::string("//"), add, add_to})
    CHECK(said(text) == "nothing");

  std::string chain = leaf;
  for (int i = 0; i < 300; ++i)
    chain += calls("f" + std::to_string(i), i > 0 ? "f" + std::to_string(i - 1) : "z");
  CHECK_THAT(said(chain), test::contains("its calls are nested 301 deep; the limit is 300"));
  for (const std::string open : {"(", "[", "{", "<", "tuple<", "({ "}) {
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += open;
    CHECK_THAT(said(deep), test::contains(" deep; the limit is 300"));
  }
  std::string flat;
  for (int i = 0; i < 1000; ++i) flat += "(tensor<4xf32>) -> {} [{}, \"((\"] // ((\n";
  CHECK(said(flat) == "nothing");
}

TEST_CASE("compile options are those bytes that XLA wants, and never of no device") {
  compile_options o;
  CHECK(o.encode() == std::string("\x1a\x04\x20\x01\x28\x01", 6));
  o.replicas = 300;
  CHECK(o.encode() == std::string("\x1a\x05\x20\xac\x02\x28\x01", 7));
  o.replicas = 1;
  o.partitions = 2;
  o.shardy = true;
  CHECK(o.encode() == std::string("\x1a\x09\x20\x01\x28\x02\x30\x01\x98\x01\x01", 11));
  o = {};
  o.debug["a"] = true;
  CHECK(o.encode().substr(6) == std::string("\x3a\x07\x0a\x01\x61\x12\x02\x10\x01", 9));
  for (const auto& [replicas, partitions] : {std::pair{0, 1}, {-1, 1}, {1, 0}}) {
    o.replicas = replicas;
    o.partitions = partitions;
    CHECK_THAT(thrown([&] { o.encode(); }), test::contains("each is 1 or more"));
  }
}

TEST_CASE("a saved program comes back whole or not at all") {
  const saved_program p{"a plugin", "options", std::string(1000, 't'), std::string("\0code", 5)};
  const std::string bytes = p.pack();
  const auto q = saved_program::unpack(bytes);
  REQUIRE(q);
  CHECK((q->made_by == p.made_by && q->options == p.options && q->text == p.text));
  CHECK(q->code == p.code);
  for (std::size_t n = 0; n < bytes.size(); ++n)
    CHECK_FALSE(saved_program::unpack(std::string_view(bytes).substr(0, n)));
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    std::string other = bytes;
    other[n] = static_cast<char>(other[n] ^ 4);
    CHECK_FALSE(saved_program::unpack(other));
  }
  CHECK_FALSE(saved_program::unpack(bytes + "x"));
}

TEST_CASE("a plugin is found where pip puts it, or where the environment says") {
  const folder home;
  const variable path("PATH", "/nowhere::" + (home.path / "env/bin").string());
  const variable venv("VIRTUAL_ENV", ""), conda("CONDA_PREFIX", ""), user("HOME", home.path);
  const variable named("XLA_PJRT_PLUGIN", "");
  CHECK(thrown([] { find_plugin("npu"); }) ==
        "PJRT_DEVICE=NPU: no plugin found; set XLA_PJRT_PLUGIN to a .so with GetPjrtApi; known "
        "without that are CPU, CUDA, TPU");
  CHECK(thrown([] { detail::refuse_to_find("CPU"); }) ==
        "PJRT_DEVICE=CPU: no plugin found; set XLA_PJRT_PLUGIN to a .so with GetPjrtApi, or pip "
        "install lammps-jax-pjrt-cpu");
  const auto put = [&](const std::string& file) {
    fs::create_directories((home.path / file).parent_path());
    std::ofstream(home.path / file) << "x";
    return (home.path / file).string();
  };
  if (thrown([] { find_plugin("TPU"); }) != "nothing") {  // the system's folders are looked at, too
    const auto users = put(".local/lib/python3.9/site-packages/libtpu/libtpu.so");
    CHECK(find_plugin("tpu") == users);
    const auto beside = put("env/lib/python3.11/site-packages/libtpu/libtpu.so");
    CHECK(find_plugin("TPU") == users);
    put("env/bin/python3");
    CHECK(find_plugin("TPU") == beside);
    const auto active = put("active/lib/python3.12/site-packages/libtpu/libtpu.so");
    const variable activated("VIRTUAL_ENV", home.path / "active");
    CHECK(find_plugin("TPU") == active);
  }
  const auto own = put("own.so");
  const variable said("XLA_PJRT_PLUGIN", own);
  CHECK(find_plugin("anything") == own);
  CHECK_THAT(thrown([&] { plugin::load(own); }), test::contains("cannot load the plugin"));
  const variable gone("XLA_PJRT_PLUGIN", own + "x");
  CHECK(thrown([] { client::of("CPU"); }) == "XLA_PJRT_PLUGIN=" + own + "x: there is no such file");
}

TEST_CASE("files that are not plugins, or have an old interface, are refused") {
  CHECK_THAT(thrown([] { plugin::load(XLA_OLD_PLUGIN); }),
             test::contains("speaks PJRT 0.29; 0.57 or newer is needed"));
  CHECK_THAT(thrown([] { plugin::load("/proc/self/exe"); }), test::contains("the plugin"));
  CHECK_THAT(thrown([] { plugin::load("no such file"); }),
             test::contains("cannot load the plugin"));
}

TEST_CASE("a plugin's own log is silenced, unless somebody has said how loud it is") {
  for (const std::string said : {"", "0", "2"}) {
    const variable set("TF_CPP_MIN_LOG_LEVEL", said);
    if (said.empty()) unsetenv("TF_CPP_MIN_LOG_LEVEL");
    CHECK(thrown([&] { plugin::load("no plugin " + said); }) != "nothing");
    CHECK(std::getenv("TF_CPP_MIN_LOG_LEVEL") == (said.empty() ? "3" : said));
  }
}

TEST_CASE("the description of a GPU names what the plugin divides by") {
  std::string config;
  for (const char* field :
       {"threads_per_warp", "threads_per_block_limit", "threads_per_core_limit", "core_count",
        "fpus_per_core", "block_dim_limit_x", "block_dim_limit_y", "block_dim_limit_z"}) {
    const std::string said = std::string("has no ") + field + ";";
    CHECK_THAT(thrown([&] { gpu_target(config); }), test::contains(said));
    CHECK_THAT(thrown([&] { gpu_target(config + field + ": 0"); }), test::contains(said));
    CHECK_THAT(thrown([&] { gpu_target(config + field + ":"); }), test::contains(said));
    config += std::string(field) + ": 64 ";
  }
  CHECK(std::get<std::string>(gpu_target(config, 2).options["topology"]) == "1x1x2");
  CHECK_THAT(thrown([&] { gpu_target(config, 0); }), test::contains("1 GPU or more"));
}

TEST_CASE("a program runs, and what is donated to it is gone", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("cpu");
  CHECK(&c == &client::of("CPU"));
  CHECK((c.platform() == "cpu" && c.on_host() && c.devices() == 1));
  CHECK(c.loaded_plugin().version().minor >= 57);
  CHECK(c.loaded_plugin().attributes().count("stablehlo_current_version") == 1);
  const auto program = c.compile(add_to);
  REQUIRE(program->results().size() == 1);
  CHECK(program->results()[0] == four);
  CHECK(program->parameters()[0].donated);
  buffer a = on(c), b = on(c);
  const void* const at = a.address();
  auto out = program->run({&a, &b});
  CHECK(out[0].to_vector<float>() == std::vector<float>{2, 4, 6, 8});
  CHECK(out[0].address() == at);
  CHECK((a.donated() && !b.donated()));
  CHECK(thrown([&] {
          program->run({&a, &b});
        }) == "pjrt::buffer: float32 (4,) was donated to a program that has run, and is gone");
  CHECK_THAT(thrown([&] { a.to_vector<float>(); }), test::contains("is gone"));
  CHECK(thrown([&] { buffer().wait(); }) == "pjrt::buffer: it has no array");
  const auto memory = program->memory();
  CHECK((memory.arguments == 32 && memory.results == 16 && memory.aliased == 16));
}

TEST_CASE("arrays of every type come back as they went, and of no element, too", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  std::vector<std::uint8_t> bytes(6 * 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 37);
  for (const element_facts& e : all_elements) {
    const array_type type = array(e.type, {2, 1, 3});
    std::vector<std::uint8_t> in(bytes.begin(), bytes.begin() + static_cast<long>(type.bytes()));
    if (e.type == element::boolean)
      for (auto& b : in) b &= 1;
    std::vector<std::uint8_t> out(in.size());
    const buffer b(c, in.data(), type);
    c.read(b.get(), type, out.data());
    CHECK(out == in);
  }
  CHECK(buffer(c, nullptr, array(element::float32, {0, 3})).to_vector<float>().empty());
  CHECK(buffer(c, ones.data(), array(element::float32, {})).to_vector<float>()[0] == 1);
  CHECK_THAT(thrown([&] { on(c).to_vector<double>(); }), test::contains("elements of 8 bytes"));
  CHECK_THAT(thrown([&] { buffer(c, nullptr, four); }),
             test::contains("a null pointer for float32"));
  CHECK_THAT(thrown([&] { buffer(c, ones.data(), array(element::float32, {-4})); }),
             test::contains("is not known"));
}

TEST_CASE("a transposed result is read row by row, and a maximum keeps its NaN", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  const auto turn =
      c.compile(R"(module { func.func public @main(%0: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %1 = "stablehlo.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    func.return %1 : tensor<3x2xf32> } })");
  const float rows[] = {1, 2, 3, 4, 5, 6};
  buffer a(c, rows, array(element::float32, {2, 3}));
  CHECK(turn->run({&a})[0].to_vector<float>() == std::vector<float>{1, 4, 2, 5, 3, 6});
  const std::vector<float> odd{NAN, 1, NAN, 2};
  buffer x = on(c), y(c, odd.data(), four);
  const auto most = c.compile(pair_of("maximum", "tensor<4xf32>"));
  for (const auto& arguments : {std::vector{&x, &y}, {&y, &x}}) {
    const auto out = most->run(arguments)[0].to_vector<float>();
    CHECK((std::isnan(out[0]) && std::isnan(out[2]) && out[1] == 2 && out[3] == 4));
  }
}

TEST_CASE("other arguments than those of a program are refused, and nothing is donated",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU", {.devices = 2});
  const client& other = client::of("CPU", {.devices = 3});
  const auto program = c.compile(add_to);
  buffer a = on(c), b = on(c), far = on(c, 1), foreign = on(other);
  const std::int32_t whole[] = {1, 2, 3, 4};
  buffer ints(c, whole, array(element::int32, {4})),
      turned(c, ones.data(), array(element::float32, {2, 2}));
  const auto why = [&](std::vector<buffer*> with) { return thrown([&] { program->run(with); }); };
  CHECK(why({&a}) == "pjrt::executable::run: 1 arguments; the program was built for 2");
  CHECK_THAT(why({&a, &b, &b}), test::contains("3 arguments"));
  CHECK(why({&a, &ints}) ==
        "pjrt::executable::run: argument 1 is int32 (4,); the program was built for float32 (4,)");
  CHECK_THAT(why({&a, &turned}), test::contains("is float32 (2, 2)"));
  CHECK_THAT(why({&a, &far}), test::contains("argument 1 is on device 1"));
  CHECK_THAT(why({&a, &foreign}), test::contains("is of another client"));
  CHECK_THAT(why({&a, nullptr}), test::contains("null pointer"));
  CHECK_THAT(why({&a, &a}), test::contains("donate"));
  CHECK_THAT(thrown([&] { on(c, 2); }), test::contains("device 2 of 2"));
  CHECK_THAT(thrown([&] { on(c, -1); }), test::contains("device -1 of 2"));
  CHECK_FALSE(a.donated());
  CHECK(program->run({&a, &b})[0].to_vector<float>()[3] == 8);
}

TEST_CASE("programs that XLA refuses throw its message", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  const auto why = [&](const std::string& text, const compile_options& how = {}) {
    return thrown([&] { c.compile(text, how); });
  };
  CHECK_THAT(why(""), test::contains("pjrt: XLA's compiler: "));
  CHECK_THAT(why("hello"), test::contains("pjrt: XLA's compiler: "));
  CHECK_THAT(why(pair_of("frobnicate", "tensor<4xf32>")), test::contains("frobnicate"));
  CHECK_THAT(why(pair_of("add", "tensor<?xf32>")), test::contains("pjrt: "));
  CHECK_THAT(why("module { func.func public @other(%0: tensor<4xf32>) -> tensor<4xf32> { "
                 "func.return %0 : tensor<4xf32> } }"),
             test::contains("main"));
  CHECK_THAT(
      why(R"(module { func.func public @main(%0: tensor<4xf32> {tf.aliasing_output = 0 : i32},
      %1: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
      func.return %0 : tensor<4xf32> } })"),
      test::contains("pjrt: "));
  CHECK_THAT(why(add, {.replicas = 0}), test::contains("each is 1 or more"));
  CHECK_THAT(why(add, {.replicas = 2}), test::contains("a program for 2 devices, and there are 1"));
  CHECK_THAT(why(add, {.replicas = 65536, .partitions = 65536}),
             test::contains("a program for 4294967296 devices, and there are 1"));
  CHECK_THAT(why(add, {.debug = {{"xla_no_such_option", true}}}),
             test::contains("xla_no_such_option"));
  CHECK_THAT(thrown([] { client::of("CPU", {.devices = -1}); }), test::contains("at least 1"));
  CHECK_THAT(thrown([] { client::of("CPU", {.at_least = 64 * 64 * 64}); }),
             test::contains("262144 devices of the processor: at least 1, at most 4096"));
  const auto with_option = [](const char* name, const option_value& value) {
    return thrown([&] { client::of("CPU", {.more = {{name, value}}}); });
  };
  CHECK_THAT(with_option("cpu_device_count", std::string("2")), test::contains("std::int64_t"));
  CHECK_THAT(with_option("cpu_device_count", std::int64_t{0}), test::contains("0 devices"));
  CHECK_THAT(with_option("asynchronous", std::int64_t{1}), test::contains("asynchronous"));
  const auto asked = [] { client::of("CPU", {.more = {{"no_such_option", true}}}); };
  if (c.loaded_plugin().version().minor > 100)  // older ones look away
    CHECK_THAT(thrown(asked), test::contains("no_such_option"));
  {
    const variable same("XLA_PJRT_PLUGIN", c.loaded_plugin().path());
    CHECK_THAT(thrown([] { client::of("CUDA"); }), test::contains("PJRT_DEVICE=CUDA: "));
  }
  {
    const variable none("CPU_NUM_DEVICES", "none");
    CHECK_THAT(thrown([] { client::of("CPU"); }), test::contains("0 devices of the processor"));
  }
  // Sizes of which XLA's compiler divides by zero, or which it cannot count.
  for (const char* sizes : {"1125899906842624", "1099511627776x1099511627776",
                            "9223372036854775807", "4x99999999999999999999x2"})
    CHECK_THAT(
        why(pair_of("add", "tensor<" + std::string(sizes) + "xf32>")),
        test::contains("tensor<" + std::string(sizes) + "xf32>, which is more than any machine"));
  CHECK_THAT(why(R"(module { func.func public @main(%0: tensor<f32>) -> tensor<f32> {
      %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1125899906842624xf32>
      func.return %0 : tensor<f32> } })"),
             test::contains("more than any machine's memory"));
  const auto large = c.compile(
      R"(module { func.func public @main(%0: tensor<f32>) -> tensor<1000000000000xf32> {
      %1 = "stablehlo.broadcast_in_dim"(%0) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1000000000000xf32>
      func.return %1 : tensor<1000000000000xf32> } })");
  buffer one(c, ones.data(), array(element::float32, {}));
  CHECK_THROWS_AS(large->run({&one}), xla::out_of_memory);
}

TEST_CASE("memory of the host is used in place, and written where it is donated", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  const auto program = c.compile(add_to);
  struct alignas(64) block {
    float v[16];
  };
  const auto host = std::make_unique<block>(block{{1, 2, 3, 4}});
  buffer step = on(c);
  for (const bool writes : {false, true}) {
    const auto keeps = writes ? host_memory::written_in_place : host_memory::read_in_place;
    buffer a(c, host->v, four, keeps);
    CHECK(a.address() == host->v);
    for (int i = 0; i < 3; ++i) a = std::move(program->run({&a, &step})[0]);
    CHECK((a.address() == host->v) == writes);
    CHECK(a.to_vector<float>() == std::vector<float>{4, 8, 12, 16});
    CHECK(host->v[3] == (writes ? 16 : 4));
  }
  CHECK_THAT(thrown([&] { buffer(c, host->v + 1, four, host_memory::read_in_place); }),
             test::contains("64-byte aligned"));
}

TEST_CASE("replicas sum over devices, each given its own arguments", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU", {.devices = 2});
  const auto program = c.compile(
      R"(module { func.func public @main(%0: tensor<4xf32>) -> tensor<4xf32> {
      %1 = "stablehlo.all_reduce"(%0) ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = "stablehlo.add"(%p, %q) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%s) : (tensor<f32>) -> () })
        {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
      func.return %1 : tensor<4xf32> } })",
      {.replicas = 2});
  CHECK(program->devices() == 2);
  buffer a = on(c), b = on(c, 1), copy = b.to_device(0);
  CHECK(copy.device() == 0);
  const std::vector<std::vector<buffer*>> both{{&a}, {&b}}, one{{&a}}, wrong{{&a}, {&copy}};
  const auto out = program->run_all(both);
  for (const auto& device : out)
    CHECK(device[0].to_vector<float>() == std::vector<float>{2, 4, 6, 8});
  CHECK(out[1][0].device() == 1);
  CHECK_THAT(
      thrown([&] { program->run_all(one); }),
      test::contains("1 lists of arguments, one for each device; the program was built for 2"));
  CHECK_THAT(thrown([&] { program->run({&a}); }), test::contains("1 lists of arguments"));
  CHECK_THAT(thrown([&] { program->run_all(wrong); }), test::contains("is on device 0"));
  CHECK_THAT(thrown([&] { b.to_device(2); }), test::contains("device 2 of 2"));
}

TEST_CASE("a program is made once, and taken from XLA_CACHE by the next who wants it",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const folder files;
  const variable cache("XLA_CACHE", files.path / "new");
  const client& c = client::of("CPU");
  const std::string text = pair_of("subtract", "tensor<4xf32>");
  std::int64_t hits = counted("PersistentCacheHit"), misses = counted("PersistentCacheMiss");
  const auto use = [&](const std::string& what, const compile_options& how = {}) {
    const auto program = c.compile(what, how);
    CHECK(c.compile(what, how) == program);
    buffer a = on(c), b = on(c);
    CHECK(program->run({&a, &b})[0].to_vector<float>() == std::vector<float>(4));
    const bool hit = counted("PersistentCacheHit") > hits;
    CHECK(hit != (counted("PersistentCacheMiss") > misses));
    hits = counted("PersistentCacheHit");
    misses = counted("PersistentCacheMiss");
    return hit;
  };
  CHECK_FALSE(use(text));
  CHECK(use(text));
  CHECK_FALSE(use(text + "\n"));
  CHECK_FALSE(use(text, {.debug = {{"xla_cpu_enable_fast_math", true}}}));
  CHECK(use(text, {.debug = {{"xla_cpu_enable_fast_math", true}}}));
  CHECK(files_of(files.path / "new").size() == 3);
  for (const fs::path& path : files_of(files.path / "new")) {
    CHECK(path.extension() == ".xla");
    // Another file's name, a byte of it changed, cut short, empty, of another plugin.
    const std::string whole = content(path);
    const auto as = [&](const std::string& bytes) {
      std::ofstream(path, std::ios::binary) << bytes;
    };
    auto there = saved_program::unpack(whole);
    REQUIRE(there);
    if (there->text != text || there->options.find("fast_math") != std::string::npos) continue;
    std::string bad = whole;
    bad[bad.size() / 2] = static_cast<char>(~bad[bad.size() / 2]);
    for (const std::string& bytes : {bad, whole.substr(0, whole.size() / 2), std::string()}) {
      as(bytes);
      CHECK_FALSE(use(text));
      CHECK(use(text));
    }
    auto foreign = *there;
    foreign.made_by += "another";
    as(foreign.pack());
    CHECK_FALSE(use(text));
    for (const std::string& code :
         {std::string("nonsense"), std::string(), there->code.substr(0, there->code.size() / 2)}) {
      auto other = *there;  // with a checksum that is right
      other.code = code;
      as(other.pack());
      CHECK_FALSE(use(text));
      CHECK(use(text));
    }
  }
  // Folders that cannot be, or not be written; a folder where the file would be.
  for (const fs::path& other : {fs::path("/proc/version/x"), fs::path("/proc"),
                                fs::path("/dev/null"), files.path / std::string(300, 'x')}) {
    const variable nowhere("XLA_CACHE", other);
    CHECK_FALSE(use(text));
  }
  for (const fs::path& file : files_of(files.path / "new")) {
    fs::remove(file);
    fs::create_directories(file);
  }
  CHECK_FALSE(use(text));
}

TEST_CASE("a program that was compiled ahead is loaded from its file", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const folder files;
  const client& c = client::of("CPU");
  const auto file = (files.path / "add.xla").string();
  const saved_program saved{"", "", add_to, c.compile(add_to)->serialize()};
  std::ofstream(file, std::ios::binary) << saved.pack();
  xla::clear_all();
  const auto program = c.load(file);
  CHECK(xla::metric_data("Pjrt::LoadTime")->total_samples == 1);
  CHECK(xla::metric_data("Pjrt::LoadTime")->accumulator > 0);
  buffer a = on(c), b = on(c);
  CHECK(program->run({&a, &b})[0].to_vector<float>()[3] == 8);
  CHECK(a.donated());
  std::ofstream(file, std::ios::binary) << saved.pack().substr(1);
  CHECK_THAT(thrown([&] { c.load(file); }), test::contains("is no whole program"));
  CHECK_THAT(thrown([&] { c.load(file + "x"); }), test::contains(file + "x"));
  // This plugin has no description of processors that are not there.
  CHECK_THAT(thrown([&] { compile_ahead("CPU", {}, add, file); }),
             test::contains("pjrt::compile_ahead: "));
}

TEST_CASE("several threads make and run programs at once", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  std::shared_ptr<const executable> made[4];
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      made[k] = c.compile(pair_of("multiply", "tensor<4xf32>"));
      for (int i = 0; i < 200; ++i) {
        const float v[4] = {static_cast<float>(k), static_cast<float>(i), 1, 2};
        buffer a(c, v, four), b = on(c);
        const auto out = made[k]->run({&a, &b})[0].to_vector<float>();
        wrong += out[0] != v[0] || out[1] != 2 * v[1];
      }
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  for (const auto& m : made) CHECK(m == made[0]);
}

TEST_CASE("transfers and compilations are measured", "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const client& c = client::of("CPU");
  xla::clear_all();
  const auto program = c.compile(pair_of("divide", "tensor<4xf32>"));
  buffer a = on(c), b = on(c);
  program->run({&a, &b})[0].to_vector<float>();
  CHECK(xla::metric_data("Pjrt::CompileTime")->total_samples == 1);
  CHECK(xla::metric_data("TransferToDeviceTime")->total_samples == 2);
  CHECK(xla::metric_data("OutboundData")->accumulator == 32);
  CHECK(xla::metric_data("TransferFromDeviceTime")->total_samples == 1);
  CHECK(xla::metric_data("InboundData")->accumulator == 16);
}

TEST_CASE("XLA_FLAGS are options of each compilation, and no wrong one ends the process",
          "[.plugin]") {
  if (!test::plugin_is_there()) return;
  const folder files;
  int devices = 10;
  const auto with = [&](const std::string& flags) {
    const variable set("XLA_FLAGS", flags);  // read once for each client
    const std::string said =
        thrown([&] { client::of("CPU", {.devices = ++devices}).compile(add); });
    CHECK(std::getenv("XLA_FLAGS") == flags);
    return said;
  };
  CHECK_THAT(with("--xla_no_such_flag=1"), test::contains("xla_no_such_flag"));
  CHECK_THAT(with("xla_no_such_file"),
             test::contains("XLA_FLAGS: 'xla_no_such_file' is neither a flag"));
  CHECK_THAT(with("--xla_cpu_enable_fast_math=maybe"), test::contains("'maybe' is not a valid"));
  CHECK_THAT(with("--xla_backend_optimization_level=high"),
             test::contains("'high' is not a valid"));
  CHECK(with("") == "nothing");
  const auto dump = (files.path / "dump").string();
  CHECK(with("--xla_dump_to=" + dump +
             "\n --xla_dump_hlo_as_text --xla_disable_hlo_passes=a,b "
             "--xla_backend_optimization_level=1 --xla_cpu_enable_fast_math=false") == "nothing");
  CHECK(fs::exists(dump));
  std::ofstream(files.path / "flags") << "--xla_no_such_flag_of_file\n";
  CHECK_THAT(with((files.path / "flags").string()), test::contains("xla_no_such_flag_of_file"));
}
