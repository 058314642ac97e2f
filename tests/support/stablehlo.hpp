// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace test {

/// Reads a module in generic form: every name is made before it is used and made once, every line
/// says the types that its operands were made with, and all regions end.
class stablehlo_reader {
 public:
  /// What is wrong with a text; empty: nothing.
  static std::string problem(std::string_view text) {
    stablehlo_reader r;
    for (std::size_t at = 0; at < text.size() && r.wrong_.empty();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      r.read(trimmed(text.substr(at, end - at)));
      at = end + 1;
    }
    if (r.wrong_.empty() && (!r.open_.empty() || !r.returned_)) r.wrong_ = "it does not end";
    return r.wrong_;
  }
  /// How often an op is in a text.
  static int count(std::string_view text, const std::string& op) {
    int n = 0;
    const std::string name = "\"" + op + "\"(";
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) ++n;
    return n;
  }

 private:
  using names = std::vector<std::string>;
  struct operation {
    std::string result;
    int results = 1;
    names operands;
  };

  static std::string_view trimmed(std::string_view s) {
    const auto first = s.find_first_not_of(' ');
    return first == s.npos ? std::string_view() : s.substr(first);
  }
  void fail(std::string_view line, const std::string& why) {
    if (wrong_.empty()) wrong_ = why + ": " + std::string(line);
  }
  /// What is between commas outside of any bracket.
  static names parts(std::string_view list) {
    names all;
    int depth = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i <= list.size(); ++i) {
      const char c = i < list.size() ? list[i] : ',';
      if (c == '(' || c == '<' || c == '{' || c == '[') ++depth;
      if (c == ')' || c == '>' || c == '}' || c == ']') --depth;
      if (c != ',' || depth > 0) continue;
      if (const auto one = trimmed(list.substr(first, i - first)); !one.empty())
        all.emplace_back(one);
      first = i + 1;
    }
    return all;
  }
  void define(std::string_view line, const std::string& name, const std::string& type) {
    if (!types_.emplace(name, type).second) fail(line, name + " is made twice");
  }
  /// "%a: type, %b: type {attributes}".
  void define_all(std::string_view line, std::string_view list) {
    for (const std::string& one : parts(list)) {
      const auto colon = one.find(": ");
      define(line, one.substr(0, colon), one.substr(colon + 2, one.find(" {") - colon - 2));
    }
  }

  void read(std::string_view line) {
    if (line.starts_with("func.func")) {
      const auto first = line.find('(') + 1;
      define_all(line, line.substr(first, line.find(") -> (") - first));
    } else if (line.starts_with("^bb0(")) {
      define_all(line, line.substr(5, line.rfind("):") - 5));
    } else if (line.starts_with("func.return")) {
      returned_ = true;
      const auto colon = line.find(" : ");
      if (colon != line.npos)
        use(line, parts(line.substr(12, colon - 12)), parts(line.substr(colon + 3)));
    } else if (line.starts_with("%") || line.starts_with("\"")) {
      begin(line);
    } else if (line.starts_with("})")) {
      if (open_.empty()) return fail(line, "no region is open");
      const operation op = open_.back();
      open_.pop_back();
      end(line, op);
    }
  }
  void begin(std::string_view line) {
    operation op;
    if (line[0] == '%') {
      const auto equals = line.find(" = ");
      op.result = line.substr(0, equals);
      if (const auto colon = op.result.find(':'); colon != op.result.npos) {
        op.results = std::stoi(op.result.substr(colon + 1));
        op.result.resize(colon);
      }
      line.remove_prefix(equals + 3);
    }
    const auto first = line.find('(') + 1;
    op.operands = parts(line.substr(first, line.find(')') - first));
    if (line.ends_with("({")) open_.push_back(op);
    else end(line, op);
  }
  void end(std::string_view line, const operation& op) {
    if (line.ends_with("}, {")) return open_.push_back(op);
    const auto types = line.rfind(" : ("), arrow = line.rfind(" -> ");
    if (types == line.npos || arrow == line.npos || arrow < types)
      return fail(line, "a line without types");
    use(line, op.operands, parts(line.substr(types + 4, arrow - types - 5)));
    std::string_view made = line.substr(arrow + 4);
    if (op.result.empty()) return;
    if (op.results == 1) return define(line, op.result, std::string(made));
    const names all = parts(made.substr(1, made.size() - 2));
    for (int i = 0; i < op.results; ++i)
      define(line, op.result + "#" + std::to_string(i), all[static_cast<std::size_t>(i)]);
  }
  void use(std::string_view line, const names& values, const names& types) {
    if (values.size() != types.size()) return fail(line, "as many types as operands");
    for (std::size_t i = 0; i < values.size(); ++i)
      if (const auto found = types_.find(values[i]); found == types_.end())
        fail(line, values[i] + " is not made before");
      else if (found->second != types[i]) fail(line, values[i] + " is of type " + found->second);
  }

  std::map<std::string, std::string> types_;
  std::vector<operation> open_;
  std::string wrong_;
  bool returned_ = false;
};

}  // namespace test
