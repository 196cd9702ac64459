// SPDX-License-Identifier: BSL-1.0
// As much of Catch2 as one test program for another processor needs: compiling all of Catch2 for it takes a minute.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace cross_test {

struct Case {
  char const* name;
  void (*run)();
  Case* next;
  static Case*& first() {
    static Case* list = nullptr;
    return list;
  }
  Case(char const* n, void (*f)()) : name(n), run(f), next(first()) { first() = this; }
};

inline int checks = 0, failures = 0;

inline bool check(bool holds, char const* what, char const* file, int line) {
  ++checks;
  if (!holds) {
    ++failures;
    std::printf("%s:%d: failed: %s\n", file, line, what);
  }
  return holds;
}

}  // namespace cross_test

int main() {
  for (cross_test::Case const* c = cross_test::Case::first(); c != nullptr; c = c->next) {
    int const before = cross_test::failures;
    c->run();
    if (cross_test::failures != before) std::printf("in \"%s\"\n", c->name);
  }
  std::printf("%d checks, %d failures\n", cross_test::checks, cross_test::failures);
  return cross_test::failures != 0 || cross_test::checks == 0;
}

#define CROSS_TEST_CASE_(line, title)                                               \
  static void cross_test_##line();                                                  \
  static cross_test::Case const cross_test_entry_##line(title, &cross_test_##line); \
  static void cross_test_##line()
#define CROSS_TEST_CASE(line, title) CROSS_TEST_CASE_(line, title)
#define TEST_CASE(title, tags) CROSS_TEST_CASE(__LINE__, title)
#define CHECK(...) cross_test::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define REQUIRE(...) \
  if (!CHECK(__VA_ARGS__)) std::exit(1)
