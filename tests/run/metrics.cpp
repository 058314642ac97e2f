// SPDX-License-Identifier: Apache-2.0
#include "xla/run/state/metrics.hpp"
#include "xla/run/state/metric_report.hpp"
#include "xla/run/state/metric_store.hpp"

#include <thread>
#include <vector>

#include "catch.hpp"

using xla::detail::get_counter;
using xla::detail::get_metric;
using xla::detail::metric_unit;
using names = std::vector<std::string>;

TEST_CASE("a counter is listed from its first count to the next clear") {
  xla::clear_all();
  auto& steps = get_counter("MarkStep");
  CHECK(xla::counter_names().empty());
  CHECK_FALSE(xla::counter_value("MarkStep"));
  CHECK_FALSE(xla::counter_value("NeverMade"));

  steps.add();
  steps.add(4);
  get_counter("CachedCompile").add();
  CHECK(xla::counter_value("MarkStep") == 5);
  CHECK(xla::counter_names() == names{"CachedCompile", "MarkStep"});

  xla::clear_metrics();
  CHECK(xla::counter_value("MarkStep") == 5);
  xla::clear_counters();
  CHECK(xla::counter_names().empty());
  CHECK_FALSE(xla::counter_value("MarkStep"));

  steps.add(2);
  CHECK(&steps == &get_counter("MarkStep"));
  CHECK(xla::counter_value("MarkStep") == 2);
}

TEST_CASE("a metric keeps its totals and its newest 1,024 samples, oldest first") {
  xla::clear_all();
  auto& sizes = get_metric("TensorsGraphSize", metric_unit::plain);
  CHECK(xla::metric_names().empty());
  CHECK_FALSE(xla::metric_data("TensorsGraphSize"));
  CHECK_FALSE(xla::metric_data("NeverMade"));

  for (int i = 1; i <= 1500; ++i) sizes.add(i);
  CHECK(xla::metric_names() == names{"TensorsGraphSize"});
  const auto [total, sum, samples] = *xla::metric_data("TensorsGraphSize");
  CHECK(total == 1500);
  CHECK(sum == 1500 * 1501 / 2.0);
  REQUIRE(samples.size() == 1024);
  CHECK(samples.front().value == 1500 - 1023);
  CHECK(samples.back().value == 1500);
  CHECK(samples.front().time <= samples.back().time);
  CHECK(samples.front().time > 1.6e9);

  xla::clear_counters();
  CHECK(xla::metric_names().size() == 1);
  xla::clear_metrics();
  CHECK(xla::metric_names().empty());
  sizes.add(7);
  CHECK(xla::metric_data("TensorsGraphSize")->total_samples == 1);
  CHECK(xla::metric_data("TensorsGraphSize")->accumulator == 7);
}

TEST_CASE("the unit of a metric is the one it was created with") {
  CHECK(get_metric("bytes of an arena", metric_unit::bytes).unit() == metric_unit::bytes);
  CHECK(get_metric("bytes of an arena").unit() == metric_unit::bytes);
}

TEST_CASE("timed adds the elapsed nanoseconds") {
  xla::clear_all();
  {
    const xla::detail::timed sample{get_metric("ExecuteTime")};
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  const auto data = *xla::metric_data("ExecuteTime");
  CHECK(data.total_samples == 1);
  CHECK(data.accumulator >= 2e6);
  CHECK(data.accumulator < 10e9);
}

TEST_CASE("values are printed as PyTorch/XLA prints them") {
  using namespace xla::detail;
  CHECK(print_time(0) == "000.000us");
  CHECK(print_time(24'312) == "024.312us");
  CHECK(print_time(1'024'000'000) == "01s024ms000.000us");
  CHECK(print_time(1.6e9) == "01s600ms000.000us");
  CHECK(print_time(90'061e9 + 1) == "01d01h01m01s000ms000.001us");
  CHECK(print_time(-1500) == "-001.500us");
  CHECK(print_time(1e300) == "1e+300ns");
  CHECK(print_bytes(0) == "0.00B");
  CHECK(print_bytes(1536) == "1.50KB");
  CHECK(print_bytes(1ull << 60) == "1024.00PB");
  CHECK(print_value(metric_unit::plain, 2.5) == "2.50");
}

TEST_CASE("the report lists metrics, then counters") {
  xla::clear_all();
  CHECK(xla::metrics_report().empty());
  auto& compile = get_metric("CompileTime");
  for (int i = 0; i < 100; ++i) compile.add_at(1'000'000'000 + i * 10'000'000, i * 1e6);
  get_metric("ArenaBytes", metric_unit::bytes).add(2048);
  get_counter("fallback::item").add();
  get_counter("xla::add").add(3);

  CHECK(xla::metrics_report() ==
        "Metric: ArenaBytes\n"
        "  TotalSamples: 1\n"
        "  Accumulator: 2.00KB\n"
        "  Percentiles: 1%=2.00KB; 5%=2.00KB; 10%=2.00KB; 20%=2.00KB; 50%=2.00KB; 80%=2.00KB; "
        "90%=2.00KB; 95%=2.00KB; 99%=2.00KB\n"
        "Metric: CompileTime\n"
        "  TotalSamples: 100\n"
        "  Accumulator: 04s950ms000.000us\n"
        "  ValueRate: 05s000ms000.000us / second\n"
        "  Rate: 101.01 / second\n"
        "  Percentiles: 1%=001ms000.000us; 5%=005ms000.000us; 10%=010ms000.000us; "
        "20%=020ms000.000us; 50%=050ms000.000us; 80%=080ms000.000us; 90%=090ms000.000us; "
        "95%=095ms000.000us; 99%=099ms000.000us\n"
        "Counter: fallback::item\n"
        "  Value: 1\n"
        "Counter: xla::add\n"
        "  Value: 3\n");
  CHECK(xla::executed_fallback_ops() == names{"fallback::item"});

  const auto brief = xla::short_metrics_report();
  CHECK(brief.starts_with("Metric: CompileTime\n"));
  CHECK(brief.ends_with("Counter: fallback::item\n  Value: 1\n"));
  CHECK(brief.find("xla::add") == std::string::npos);
  CHECK(xla::short_metrics_report({"xla::add"}, {"None"}) ==
        "Counter: fallback::item\n  Value: 1\nCounter: xla::add\n  Value: 3\n");
}

TEST_CASE("counters, metrics and reports may be used from many threads") {
  xla::clear_all();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 2000; ++i) {
        get_counter("MarkStep").add();
        get_metric("ExecuteTime").add(1);
        if (i % 500 == 0) (void)xla::metrics_report();  // Catch2 v2 asserts on one thread only
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(xla::counter_value("MarkStep") == 8000);
  CHECK(xla::metric_data("ExecuteTime")->accumulator == 8000);
}
