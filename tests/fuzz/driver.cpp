// SPDX-License-Identifier: BSL-1.0
// fuzz READER SEEDS COUNT: a reader on each file of a folder, and on COUNT files made of these by chance, always the
// same ones.
// For compilers without libFuzzer, which finds more in the same time: where clang has its run-time libraries,
// clang++ -DDFDX_LIBFUZZER -fsanitize=fuzzer,address,undefined makes a program that takes libFuzzer's arguments and the
// reader's name from the environment variable FUZZ_READER.
#include "fuzz/fuzz.hpp"

#include <dfdx/core/random.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#ifdef DFDX_LIBFUZZER

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::Read const& read = fuzz::readers().at(std::getenv("FUZZ_READER"));
  read({reinterpret_cast<std::byte const*>(data), size});
  return 0;
}

#else

namespace {

using Bytes = std::vector<std::uint8_t>;

class Mutator {
 public:
  explicit Mutator(std::vector<Bytes> seeds) : seeds_(std::move(seeds)) {}

  Bytes next() {
    Bytes r = seeds_[below(seeds_.size())];
    for (std::size_t n = 1 + below(6); n > 0; --n) change(r);
    return r;
  }

 private:
  std::size_t below(std::size_t n) {
    return n == 0 ? 0
                  : static_cast<std::size_t>(
                        dfdx::integer_at(dfdx::Key(1), drawn_++, static_cast<std::int64_t>(n)));
  }

  void change(Bytes& b) {
    std::size_t const at = below(b.size() + 1), left = b.size() - at;
    auto const here = b.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(8)) {
      case 0:
        if (left > 0) *here ^= static_cast<std::uint8_t>(1u << below(8));
        break;
      case 1:
        if (left > 0) *here = static_cast<std::uint8_t>(below(256));
        break;
      case 2: put_number(b, at); break;
      case 3: b.resize(at); break;
      case 4: b.erase(here, here + static_cast<std::ptrdiff_t>(std::min(left, below(16)))); break;
      case 5: b.insert(here, below(16), static_cast<std::uint8_t>(below(256))); break;
      case 6: {  // a part once more
        std::size_t const n = std::min(left, below(64));
        Bytes const part(here, here + static_cast<std::ptrdiff_t>(n));
        std::size_t const to = below(b.size() + 1);
        b.insert(b.begin() + static_cast<std::ptrdiff_t>(to), part.begin(), part.end());
        break;
      }
      default: {  // the end of another
        Bytes const& other = seeds_[below(seeds_.size())];
        b.resize(at);
        b.insert(b.end(), other.begin() + static_cast<std::ptrdiff_t>(std::min(at, other.size())),
                 other.end());
      }
    }
  }

  // Lengths and offsets at the edges of what a reader may compute with.
  void put_number(Bytes& b, std::size_t at) {
    static constexpr std::uint64_t numbers[] = {0,
                                                1,
                                                0x7f,
                                                0xff,
                                                0x7fff,
                                                0xffff,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                0x100000000,
                                                0x7fffffffffffffff,
                                                0x8000000000000000,
                                                0xffffffffffffffff,
                                                0x4000000000000001};
    std::uint64_t const x = numbers[below(std::size(numbers))] + below(3) - 1;
    std::size_t const bytes = std::size_t{1} << below(4);
    for (std::size_t i = 0; i < bytes && at + i < b.size(); ++i)
      b[at + i] = static_cast<std::uint8_t>(x >> (8 * i));
  }

  std::vector<Bytes> seeds_;
  std::uint64_t drawn_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  auto const reader = argc == 4 ? fuzz::readers().find(argv[1]) : fuzz::readers().end();
  if (reader == fuzz::readers().end()) {
    std::fprintf(stderr, "fuzz READER SEEDS COUNT, with a READER of\n");
    for (auto const& [name, read] : fuzz::readers()) std::fprintf(stderr, "  %s\n", name.c_str());
    return 2;
  }
  auto const accepts = [&](Bytes const& b) { return reader->second(std::as_bytes(std::span(b))); };
  std::vector<std::filesystem::path> files;
  for (auto const& entry : std::filesystem::directory_iterator(argv[2])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Bytes> seeds;
  for (auto const& file : files) {
    std::ifstream in(file, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    if (!accepts(seeds.back())) {
      std::fprintf(stderr, "%s is refused\n", file.c_str());
      return 1;
    }
  }
  if (seeds.empty()) return 2;
  Mutator mutator(seeds);
  long const count = std::atol(argv[3]);
  long accepted = 0;
  for (long i = 0; i < count; ++i) accepted += accepts(mutator.next());
  std::printf("%zu files, %ld made of them, %ld of these accepted\n", seeds.size(), count, accepted);
}

#endif
