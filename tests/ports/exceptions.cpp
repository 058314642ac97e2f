// SPDX-License-Identifier: Apache-2.0
// Exceptions do what the standard says: cmake/wasi/exceptions.cpp implements them for WebAssembly.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

int failures = 0, alive = 0, left = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}

struct First {
  int number = 1;
  First() { ++alive; }
  First(const First& other) : number(other.number) { ++alive; }
  virtual ~First() { --alive; }
};
struct Second {
  int number = 2;
  virtual ~Second() = default;
};
struct Both : First, Second {
  int number_of_first() const { return First::number; }
};
struct Scope {
  ~Scope() { ++left; }
};
struct ThrowsInside {
  ~ThrowsInside() {
    check(std::uncaught_exceptions() == 1, "one exception is on its way");
    try {
      throw 1;
    } catch (int) {
      check(std::uncaught_exceptions() == 1, "and still when another was caught");
    }
  }
};

void check_types() {
  try {
    throw std::runtime_error("text");
  } catch (const std::logic_error&) {
    check(false, "another type does not catch");
  } catch (const std::exception& e) {
    check(e.what() == std::string_view("text"), "a base catches");
  }
  try {
    throw Both();
  } catch (const Second& e) {
    check(e.number == 2 && alive == 1, "the second base's part is what a handler gets");
  }
  check(alive == 0, "the object is destroyed after its handler");
  Both object;
  try {
    throw &object;
  } catch (Second* e) {
    check(e->number == 2, "a pointer becomes one to the base");
  }
  try {
    throw "text";
  } catch (int) {
    check(false, "no conversion to numbers");
  } catch (const char* text) {
    check(text[0] == 't', "a pointer arrives");
  }
}

void check_rethrow() {
  try {
    try {
      throw Both();
    } catch (First& e) {
      e.number = 7;
      throw;
    }
  } catch (Both& e) {
    check(e.number_of_first() == 7 && alive == 1, "the same object is thrown again");
  }
  check(alive == 0, "and destroyed once");
  try {
    try {
      throw Both();
    } catch (First&) {
      throw 5;
    }
  } catch (int number) {
    check(number == 5 && alive == 0, "an exception of a handler replaces the first");
  }
}

void check_pointers() {
  std::exception_ptr held;
  try {
    throw First();
  } catch (...) {
    held = std::current_exception();
  }
  for (int i = 0; i < 2; ++i) try {
      std::rethrow_exception(held);
    } catch (const First& e) {
      check(e.number == 1 && alive == 1, "an exception that is held can be thrown often");
      try {
        std::rethrow_exception(held);
      } catch (const First&) {
        check(alive == 1, "also within its own handler");
      }
    }
  held = nullptr;
  check(alive == 0, "the last pointer destroys it");
  try {
    std::rethrow_exception(std::make_exception_ptr(std::out_of_range("made")));
  } catch (const std::logic_error& e) {
    check(e.what() == std::string_view("made"), "an exception can be made without a throw");
  }
}

void check_unwinding() {
  const std::function<void(int)> descend = [&](int depth) {
    const Scope scope;
    if (depth == 0) throw depth;
    descend(depth - 1);
  };
  try {
    descend(100);
  } catch (...) {}
  check(left == 101, "every scope is left");
  try {
    const ThrowsInside inside;
    throw 2;
  } catch (int number) {
    check(number == 2 && std::uncaught_exceptions() == 0, "none is on its way when it is caught");
  }
}

void check_library() {
  const std::vector<int> none;
  try {
    check(none.at(3) == 0, "there is no such element");
    check(false, "at() throws");
  } catch (const std::out_of_range&) {}
  const volatile std::size_t all = ~std::size_t{0} / 2;
  try {
    ::operator delete(::operator new(all));
    check(false, "so much memory is not there");
  } catch (const std::bad_alloc&) {}
}

}  // namespace

int main() {
  check_types();
  check_rethrow();
  check_pointers();
  check_unwinding();
  check_library();
  std::printf(failures == 0 ? "all checks hold\n" : "%d checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
