// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace test {

/// How a child ends that does this; killed after ten seconds. As exit() does, but for the output of
/// this program, it runs the destructors of static objects.
template <class F>
int in_child(F f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    std::freopen("/dev/null", "w", stdout);
    bool good = false;
    try {
      good = f();
    } catch (...) {}
    std::exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

}  // namespace test
