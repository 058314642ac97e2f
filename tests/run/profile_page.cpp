// SPDX-License-Identifier: Apache-2.0
// The page of a profile, opened in a browser where there is one.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "catch.hpp"
#include "support/steps.hpp"
#include "xla/io/text.hpp"
#include "xla/loop.hpp"
#include "xla/run/profile.hpp"
#include "xla/run/profile/trace.hpp"
#include "xla/xla.hpp"

namespace {

/// The path of a browser that can do without a screen; empty where there is none.
std::string find_browser() {
  const char* path = std::getenv("PATH");
  for (const char* name : {"chromium-headless-shell", "chromium", "google-chrome"}) {
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (const auto file = std::filesystem::path(folder) / name; std::filesystem::exists(file))
        return file.string();
  }
  return {};
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const auto a = text.find(from);
  return a == std::string::npos ? "" : text.substr(a, text.find(to, a) - a);
}

/// What a browser makes of a page: the document, and what went to its console.
struct opened {
  std::string document, console;

  opened(const std::string& browser, const std::string& page) {
    const auto here = std::filesystem::current_path();
    const auto file = here / "profile_page.html", profile = here / "profile_page_browser";
    xla::io::write_file(file.string(),
                        {reinterpret_cast<const std::uint8_t*>(page.data()), page.size()});
    const std::string command =
        "timeout 60 '" + browser + "' --headless --no-sandbox --disable-gpu --no-first-run" +
        " --user-data-dir='" + profile.string() + "' --virtual-time-budget=2000" +
        " --window-size=1400,1000 --enable-logging=stderr --dump-dom 'file://" + file.string() +
        "' > profile_page_dom.txt 2> profile_page_log.txt";
    CHECK(std::system(command.c_str()) == 0);
    document = xla::io::read_text("profile_page_dom.txt");
    std::istringstream log(xla::io::read_text("profile_page_log.txt"));
    for (std::string line; std::getline(log, line);)
      if (line.find("CONSOLE") != std::string::npos) console += line + "\n";
    std::filesystem::remove(file);
    std::filesystem::remove_all(profile);
    std::filesystem::remove("profile_page_dom.txt");
    std::filesystem::remove("profile_page_log.txt");
  }
};

struct Mlp {
  xla::nn::Linear fc1{24, 16}, fc2{16, 10};
  constexpr auto operator()(xla::Tensor<float, 2> x) const { return fc2(xla::relu(fc1(x))); }
  XLA_MODULE(fc1, fc2)
};

}  // namespace

TEST_CASE("the page shows every step in its table, timeline, graph and memory") {
  const std::string browser = find_browser();
  if (browser.empty()) {
    if (std::getenv("XLA_TEST_COMPLETE")) FAIL("no browser here, and nothing may be left out");
    WARN("no browser here: left out");
    return;
  }
  const xla::eager_mode_guard eager;
  Mlp model;
  xla::nn::CrossEntropyLoss loss_fn;
  xla::optim::SGD optimizer{model, {.lr = 0.1f, .momentum = 0.9f}};
  auto data = xla::full<float>({32, 24}, 0.5f);
  auto target = xla::full<std::int64_t>({32}, 3);
  auto step = xla::compile(test::step_fn, {.name = "<b>train</b> & \"test\" </script>"});
  auto profile = xla::profile({.calls = 3}, step, model, data, target, loss_fn, optimizer);
  const opened page(browser, profile.to_html());
  const auto& f = profile.functions[0];

  CHECK(page.console.empty());
  CHECK_THAT(page.document, !test::contains("data-error") &&
                                test::contains("data-steps=\"" + std::to_string(f.steps.size())));
  CHECK_THAT(
      page.document,
      test::contains("<h1 id=\"name\">&lt;b&gt;train&lt;/b&gt; &amp; \"test\" &lt;/script&gt;"));
  CHECK(count(between(page.document, "<tbody>", "</tbody>"), "<tr ") == f.steps.size());

  std::size_t edges = 0, timed = 0, blocks = 0;
  for (const auto& s : f.steps) {
    edges += s.after.size();
    timed += !s.once;
  }
  for (const auto& v : f.values) blocks += v.storage == "arena" && v.bytes > 0;
  const auto graph = between(page.document, "id=\"graph\"", "id=\"memory\"");
  CHECK(count(graph, "<rect class=\"box") == f.steps.size());
  CHECK(count(graph, "<path class=\"edge") == edges);
  CHECK(count(between(page.document, "id=\"timeline\"", "id=\"steps\""), "<rect ") >= timed);
  CHECK(count(between(page.document, "id=\"memory\"", "id=\"tip\""), "<rect ") == blocks);

  // The test sees what goes wrong on a page.
  const opened broken(
      browser, "<!doctype html><html><body><script>console.error('x')</script></body></html>");
  CHECK_THAT(broken.console, test::contains("x"));
}

TEST_CASE("the steps of a loop's body are lines of the table, below the loop") {
  const std::string browser = find_browser();
  if (browser.empty()) {
    WARN("no browser here: left out");
    return;
  }
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& xs) {
    const auto step = [](const auto& c, const auto& x) {
      return std::pair(cumsum(c, 0) + x, std::tuple<>());
    };
    return xla::scan(step, xla::zeros_like(xla::select(xs, 0, 0)), xs).first;
  });
  auto xs = xla::ones<float>({3, 4});
  auto profile = xla::profile(f, xs);
  const opened page(browser, profile.to_html());
  std::size_t steps = 0, bodies = 0;
  for (const auto& s : profile.steps()) ++steps, bodies += s.body.size();
  CHECK(page.console.empty());
  CHECK(bodies >= 2);
  const auto table = between(page.document, "<tbody>", "</tbody>");
  CHECK(count(table, "<tr ") == steps + bodies);
  CHECK(count(table, "data-body=") == bodies);
  CHECK_THAT(table, test::contains("scan × 3"));
}

TEST_CASE("several functions are chosen from a list; none is said so") {
  const std::string browser = find_browser();
  if (browser.empty()) {
    WARN("no browser here: left out");
    return;
  }
  const xla::eager_mode_guard eager;
  auto f = xla::compile([](auto& x) { return xla::exp(x); }, {.name = "first"});
  auto g = xla::compile([](auto& x) { return xla::sin(x) + x; }, {.name = "second"});
  auto x = xla::ones<float>({4});
  auto profile = xla::profile([&] {
    f(x);
    g(x);
  });
  REQUIRE(profile.functions.size() == 2);
  const opened page(browser, profile.to_html());
  CHECK(page.console.empty());
  CHECK(count(between(page.document, "<select id=\"which\"", "</select>"), "<option ") == 2);
  CHECK_THAT(page.document, test::contains("<h1 id=\"name\">first</h1>"));
  const opened empty(browser, xla::Profile{}.to_html());
  CHECK(empty.console.empty());
  CHECK_THAT(empty.document, test::contains("No compiled function and no traced graph ran"));
}

TEST_CASE("scopes of the program are on the page, with plans and without") {
  const std::string browser = find_browser();
  if (browser.empty()) {
    WARN("no browser here: left out");
    return;
  }
  const xla::eager_mode_guard eager;
  auto x = xla::ones<float>({3, 4});
  auto f = xla::compile([](auto& v) { return xla::exp(v); });
  for (const bool compiled : {false, true}) {
    const auto profile = xla::profile([&] {
      const xla::Trace scope("<b>outer</b>");
      auto y = x + x;
      if (compiled) f(y);
    });
    const opened page(browser, profile.to_html());
    CHECK(page.console.empty());
    CHECK_THAT(page.document, !test::contains("data-error") && test::contains("data-events=\"") &&
                                  test::contains("&lt;b&gt;outer&lt;/b&gt;"));
    const auto drawn = between(page.document, "<div id=\"scopes\">", "<main ");
    CHECK(count(drawn, "<rect class=\"box") == profile.events.size());
    CHECK((between(page.document, "<main ", ">").find("hidden") == std::string::npos) == compiled);
  }
}
