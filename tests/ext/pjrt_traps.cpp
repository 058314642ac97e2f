// SPDX-License-Identifier: Apache-2.0
// Inputs for which XLA would end the process, hang or write messages of its own. Each test runs in
// a process of its own, which must get an error, end normally and print nothing. Three such inputs
// are impossible through this interface: custom bytes as compile options, which are always encoded
// here; a destroyed handle, as a buffer owns its own; and a client that ends before its objects, as
// clients live as long as the process.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "support/child.hpp"
#include "support/pjrt.hpp"
#include "support/pjrt_arrays.hpp"

using namespace xla::ext::pjrt;
using test::add;
using test::add_to;
using test::array;
using test::four;
using test::on;
using test::ones;
using test::pair_of;
using test::thrown;

namespace {

struct trap {
  const char* name;
  void (*run)();
};

const client& cpu(int devices = 1) { return client::of("CPU", {.devices = devices}); }
void refused(const std::string& text) {
  INFO(text);
  CHECK_THAT(thrown([&] { cpu().compile(text); }), test::contains("pjrt: "));
}
std::string main_of(const std::string& arguments, const std::string& result,
                    const std::string& body) {
  return "module { func.func public @main(" + arguments + ") -> " + result + " { " + body + " } }";
}

constexpr trap mistakes[] = {
    {"a program for no device",
     [] {
       CHECK_THAT(thrown([] { cpu().compile(add, {.replicas = 0}); }), test::contains("1 or more"));
     }},
    {"a program for more devices than there are",
     [] {
       CHECK_THAT(thrown([] { cpu().compile(add, {.replicas = 2}); }),
                  test::contains("a program for 2 devices, and there are 1"));
     }},
    {"a client of no devices",
     [] {
       CHECK_THAT(thrown([] {
                    client::of("CPU", {.more = {{"cpu_device_count", std::int64_t{0}}}});
                  }),
                  test::contains("0 devices of the processor: at least 1"));
     }},
    {"texts that are no program",
     [] {
       const std::string type = "tensor<4xf32>", more = "tensor<8xf32>";
       for (const char* text : {"", "hello", "module {}", "module { func.func public @main("})
         refused(text);
       refused(pair_of("frobnicate", type));
       refused(pair_of("add", "tensor<?xf32>"));
       refused(main_of("%0: " + type, more, "func.return %0 : " + type));
       refused(main_of("%0: " + type, type,
                       "%1 = \"stablehlo.negate\"(%0) : (" + more + ") -> " + type +
                           "\n func.return %1 : " + type));  // %0 was of another type
       refused(main_of("%0: " + type, type,
                       "%1 = \"stablehlo.custom_call\"(%0) {call_target_name = \"nobody\"} : (" +
                           type + ") -> " + type + "\n func.return %1 : " + type));
     }},
    {"functions that call themselves, and regions in regions in regions",
     [] {
       const std::string type = "tensor<4xf32>";
       const std::string call =
           "%1 = func.call @f(%0) : (" + type + ") -> " + type + "\n func.return %1 : " + type;
       refused("module { func.func private @f(%0: " + type + ") -> " + type + " { " + call +
               " } func.func public @main(%0: " + type + ") -> " + type + " { " + call + " } }");
       std::string within = "func.return %0 : " + type;
       for (int i = 0; i < 20000; ++i) within = "\"stablehlo.case\"(%2) ({ " + within;
       refused(main_of("%0: " + type, type, within));
     }},
    {"more threads than a machine makes",
     [] {
       const test::variable set("PJRT_NPROC", "100000");
       CHECK_THAT(thrown([] { cpu(); }), test::contains("PJRT_NPROC=100000: a plugin has at most"));
     }},
    {"results that take the same memory, or memory of other sizes",
     [] {
       const std::string given = " {tf.aliasing_output = 0 : i32}", type = "tensor<4xf32>";
       refused(main_of("%0: " + type + given + ", %1: " + type + given, type,
                       "func.return %0 : " + type));
       refused(main_of("%0: " + type + given, "tensor<2xf32>",
                       "%1 = \"stablehlo.slice\"(%0) {start_indices = array<i64: 0>, "
                       "limit_indices = array<i64: 2>, strides = array<i64: 1>} : (" +
                           type + ") -> tensor<2xf32>\n func.return %1 : tensor<2xf32>"));
     }},
    {"arrays that are not there",
     [] {
       const auto program = cpu().compile(add_to);
       buffer a = on(cpu()), b = on(cpu()), never, moved = on(cpu());
       const buffer there = std::move(moved);
       for (buffer* const none : {&never, &moved, static_cast<buffer*>(nullptr)}) {
         CHECK(thrown([&] { program->run({none, &b}); }) != "nothing");
         CHECK(thrown([&] { program->run({&b, none}); }) != "nothing");
       }
       program->run({&a, &b});
       CHECK_THAT(thrown([&] { program->run({&a, &b}); }), test::contains("is gone"));
       for (const buffer* const none : {&a, &never}) {
         CHECK(thrown([&] { none->wait(); }) != "nothing");
         CHECK(thrown([&] { none->address(); }) != "nothing");
         CHECK(thrown([&] { none->to_device(0); }) != "nothing");
         CHECK(thrown([&] { none->to_vector<float>(); }) != "nothing");
       }
     }},
    {"arguments that are others in all but their bytes",
     [] {
       const auto program = cpu().compile(add_to);
       const int whole[] = {1, 2, 3, 4};
       buffer a = on(cpu()), ints(cpu(), whole, array(element::int32, {4})),
              turned(cpu(), ones.data(), array(element::float32, {2, 2}));
       CHECK_THAT(thrown([&] { program->run({&a, &ints}); }), test::contains("is int32"));
       CHECK_THAT(thrown([&] { program->run({&turned, &a}); }), test::contains("(2, 2)"));
       CHECK_THAT(thrown([&] { program->run({&a, &a}); }), test::contains("donate"));
       CHECK_THAT(thrown([&] { program->run({&a}); }), test::contains("was built for 2"));
       CHECK_THAT(thrown([&] {
                    program->run({&a, &ints, &turned});
                  }),
                  test::contains("was built for 2"));
       CHECK_THAT(thrown([&] { a.to_vector<double>(); }), test::contains("of 8 bytes"));
       buffer b = on(cpu());
       CHECK(program->run({&a, &b})[0].to_vector<float>()[3] == 8);  // nothing was donated
     }},
    {"an array of another device",
     [] {
       const auto program = cpu(2).compile(add_to);
       buffer a = on(cpu(2)), far = on(cpu(2), 1);
       CHECK_THAT(thrown([&] { program->run({&a, &far}); }), test::contains("is on device 1"));
       CHECK_THAT(thrown([&] { program->run({&far, &a}); }), test::contains("is on device 1"));
       for (const int none : {-1, 2}) {
         CHECK_THAT(thrown([&] { on(cpu(2), none); }), test::contains(" of 2"));
         CHECK_THAT(thrown([&] { a.to_device(none); }), test::contains(" of 2"));
       }
     }},
    {"one list of arguments for two replicas",
     [] {
       const auto program = cpu(2).compile(add, {.replicas = 2});
       buffer a = on(cpu(2)), b = on(cpu(2));
       CHECK_THAT(thrown([&] {
                    program->run({&a, &b});
                  }),
                  test::contains("1 lists of arguments, one for each device"));
     }},
    {"elements of no type, and sizes that are none",
     [] {
       const array_type odd = array(static_cast<element>(99), {4}), less = array(four.type, {-4});
       for (const array_type& none : {odd, array(element{}, {4}), array(element{-1}, {4})}) {
         const std::string said = "there are no elements of the type ";
         CHECK_THAT(thrown([&] { buffer(cpu(), ones.data(), none); }), test::contains(said));
         CHECK_THAT(thrown([&] { cpu().put(ones.data(), none); }), test::contains(said));
         CHECK_THAT(thrown([&] { none.bytes(); }), test::contains(said));
         CHECK_THAT(thrown([&] { describe(none); }), test::contains(said));
       }
       CHECK_THAT(thrown([&] { cpu().put(ones.data(), less); }), test::contains("is not known"));
       CHECK_THAT(thrown([&] { cpu().put(nullptr, four); }), test::contains("a null pointer"));
       const std::string type = "tensor<4xf32>", pairs = "tensor<4xcomplex<f32>>";
       CHECK_THAT(
           thrown([&] {
             cpu().compile(main_of("%0: " + type, pairs,
                                   "%1 = \"stablehlo.complex\"(%0, %0) : (" + type + ", " + type +
                                       ") -> " + pairs + "\n func.return %1 : " + pairs));
           }),
           test::contains("pjrt: result 0 of the program: there are no elements"));
     }},
    {"fewer bytes read than the array has",
     [] {
       const buffer a = on(cpu());
       float few[4] = {};
       CHECK_THAT(thrown([&] { cpu().read(a.get(), array(element::float32, {2}), few); }),
                  test::contains("pjrt: copying from the device: "));
       CHECK(few[2] == 0);
       CHECK(a.to_vector<float>() == ones);
     }},
    {"more memory than any machine has",
     [] {
       const std::string type = "tensor<1000000000000xf32>";
       const auto program = cpu().compile(
           main_of("%0: tensor<f32>", type,
                   "%1 = \"stablehlo.broadcast_in_dim\"(%0) {broadcast_dimensions = array<i64>} : "
                   "(tensor<f32>) -> " +
                       type + "\n func.return %1 : " + type));
       buffer one(cpu(), ones.data(), array(element::float32, {}));
       CHECK_THROWS_AS(program->run({&one}), xla::out_of_memory);
     }},
    {"the host's memory at an odd address",
     [] {
       alignas(64) static float host[20];
       CHECK_THAT(thrown([] { buffer(cpu(), host + 1, four, host_memory::written_in_place); }),
                  test::contains("64-byte aligned"));
       CHECK_THAT(thrown([] { buffer(cpu(), nullptr, four); }), test::contains("null pointer"));
     }},
    {"a damaged saved program in an intact file",
     [] {
       const test::folder files;
       const auto file = (files.path / "add.xla").string();
       const std::string code = cpu().compile(add)->serialize();
       for (const std::string& bad : {std::string(), std::string("nonsense"), code.substr(0, 100),
                                      code.substr(0, code.size() / 2)}) {
         std::ofstream(file, std::ios::binary) << saved_program{"", "", add, bad}.pack();
         CHECK_THAT(thrown([&] { cpu().load(file); }), test::contains("pjrt: "));
       }
     }},
    {"a flag that XLA does not know",
     [] {
       const test::variable set("XLA_FLAGS", "--xla_no_such_flag=1");
       CHECK_THAT(thrown([] { cpu().compile(add); }), test::contains("xla_no_such_flag"));
     }},
};

buffer pair_on(const client& c, float first, float second) {
  const float v[4] = {first, second, 1, 2};
  return {c, v, four};
}

bool adds(const client& c) {
  buffer a = on(c), b = on(c);
  return c.compile(add)->run({&a, &b})[0].to_vector<float>()[3] == 8;
}

/// Held by static storage, as a model of a program may be.
struct kept {
  std::shared_ptr<const executable> program;
  std::vector<buffer> arrays;
};
kept until_the_end;

constexpr trap ends[] = {
    {"four threads that run one program",
     [] {
       const client& c = cpu();
       const auto program = c.compile(add);
       std::atomic<int> wrong{0};
       std::vector<std::thread> threads;
       for (int k = 0; k < 4; ++k)
         threads.emplace_back([&, k] {
           for (int i = 0; i < 500; ++i) {
             const auto x = static_cast<float>(k), y = static_cast<float>(i);
             buffer a = pair_on(c, x, y), b = pair_on(c, x, y);
             const auto sum = program->run({&a, &b})[0].to_vector<float>();
             wrong += sum[0] != 2 * x || sum[1] != 2 * y;
           }
         });
       for (auto& t : threads) t.join();
       CHECK(wrong == 0);
     }},
    {"flags that have XLA write files",
     [] {
       const test::folder files;
       const auto dump = files.path / "dump";
       const test::variable set("XLA_FLAGS", "--xla_dump_to=" + dump.string());
       CHECK(adds(cpu()));
       CHECK_FALSE(std::filesystem::is_empty(dump));
     }},
    {"the end of the process while it holds programs and arrays",
     [] {
       const client& c = cpu();
       until_the_end.program = c.compile(add);
       buffer a = on(c), b = on(c);
       until_the_end.arrays = until_the_end.program->run({&a, &b});
       until_the_end.arrays.push_back(std::move(a));
       until_the_end.arrays[0].wait();
     }},
    {"a fork after the plugin is loaded",
     [] {
       plugin::load(find_plugin("CPU"));
       CHECK(test::in_child([] { return adds(cpu()); }) == 0);
       CHECK(adds(cpu()));
     }},
    {"a fork after the client is made",
     [] {
       const client& c = cpu();
       const auto program = c.compile(add);
       buffer a = on(c), b = on(c);
       CHECK(test::in_child([&] {
               bool good = true;
               for (const auto& said :
                    {thrown([&] {
                       program->run({&a, &b});
                     }),
                     thrown([&] { c.compile(add_to); }), thrown([&] { on(c); }),
                     thrown([&] { a.to_vector<float>(); }), thrown([&] { client::of("CPU"); }),
                     thrown([&] { program->memory(); })})
                 good &= said.find("was forked after its PJRT client was made") != said.npos;
               { const buffer dropped = std::move(a); }
               return good;
             }) == 0);
       CHECK(adds(c));
     }},
    {"the end of the process while it holds arrays that are not yet there",
     [] {
       const client& c = client::of("CPU", {.more = {{"asynchronous", true}}});
       const std::string type = "tensor<1200x1200xf32>";
       until_the_end.program = c.compile(
           main_of("%0: " + type, type,
                   "%1 = \"stablehlo.dot_general\"(%0, %0) {dot_dimension_numbers = "
                   "#stablehlo.dot<lhs_contracting_dimensions = [1], "
                   "rhs_contracting_dimensions = [0]>} : (" +
                       type + ", " + type + ") -> " + type + "\n func.return %1 : " + type));
       const std::vector<float> large(1200 * 1200, 1);
       buffer a(c, large.data(), array(element::float32, {1200, 1200}));
       for (int i = 0; i < 3; ++i)
         until_the_end.arrays.push_back(std::move(until_the_end.program->run({&a})[0]));
       until_the_end.arrays.push_back(std::move(a));
     }},
};

/// f(trap) of all.
void each_trap(auto f) {
  for (const trap& t : mistakes) f(t);
  for (const trap& t : ends) f(t);
}

}  // namespace

TEST_CASE("the trap that XLA_TEST_TRAP names", "[.trap]") {
  const char* const name = std::getenv("XLA_TEST_TRAP");
  REQUIRE(name != nullptr);
  bool known = false;
  each_trap([&](const trap& t) {
    if (std::string_view(t.name) != name) return;
    known = true;
    t.run();
  });
  CHECK(known);
}

TEST_CASE("inputs for which XLA would end the process are errors, each tested in its own process") {
  if (!test::plugin_is_there()) return;
  const test::folder files;
  const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto told = (files.path / "told").string(), said = (files.path / "said").string();
  ::unsetenv("TF_CPP_MIN_LOG_LEVEL");
  each_trap([&](const trap& t) {
    const test::variable one("XLA_TEST_TRAP", t.name);
    const int status = std::system((self + " '[.trap]' > " + told + " 2> " + said).c_str());
    INFO(t.name << '\n' << test::content(told));
    CHECK(status == 0);
    CHECK(test::content(said) == "");
  });
}
