// SPDX-License-Identifier: BSL-1.0
// words: learns what words look like, letter by letter, and makes up new ones.
#include "../common/output.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  return common::guarded("words", [&] {
    if (auto const options = words::parse_options(argc, argv))
      for (words::Choice const& choice : words::choices)
        if (choice.name == options->model) choice.run(*options);
  });
}
