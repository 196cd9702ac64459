// SPDX-License-Identifier: BSL-1.0
// A program without exceptions and run-time types (-fno-exceptions -fno-rtti): compiled functions, the tape and files
// do what they do elsewhere; what goes wrong is written to the standard error output, and the program aborts.
#include <dfdx/io.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <csignal>
#include <cstdlib>
#include <string>

using namespace dfdx;

namespace {

// The line that f() writes to the standard error output before it aborts, in a process of its own. (An emulator adds
// one about the signal.)
template <class F>
std::string last_words(F const& f) {
  int ends[2];
  assert(pipe(ends) == 0);
  pid_t const child = fork();
  assert(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    f();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char part[256];
  for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;) said.append(part, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  assert(waitpid(child, &status, 0) == child);
  assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  return said.substr(0, said.find('\n'));
}

}  // namespace

#if defined(__cpp_exceptions) || defined(__cpp_rtti)
#error "to be compiled without them"
#endif

int main(int, char** argv) {
  auto const x = Tensor<double, 3>::from({0.0, 1.0, 2.0});
  auto const [y, dx] = value_and_grad([](Tensor<double, 3> const& v) { return sum(square(v)); })(x);
  assert(y.item() == 5 && dx(2) == 4);

  Array a = x;
  a.requires_grad(true);
  sum(a * a).backward();
  assert(a.grad().at<double>({1}) == 2);

  std::string const file = std::string(argv[0]) + ".safetensors";
  save_safetensors(file, {{"x", x}});
  assert(SafetensorsFile::open(file).find("x")->array().at<double>({2}) == 2);
  unlink(file.c_str());

  assert(last_words([&] { static_cast<void>(matmul(Array(x), zeros({4, 2}))); }) ==
         "matmul: inner dimensions differ: [3] x [4, 2]");
  assert(last_words([] { static_cast<void>(SafetensorsFile::open("/nowhere")); }) ==
         "safetensors: cannot read /nowhere: No such file or directory");
  assert(last_words([] { static_cast<void>(Array(Meta{DType::f32, make_shape(index_t{1} << 57)})); }) ==
         "array: size overflows: [144115188075855872]");
}
