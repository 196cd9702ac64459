// SPDX-License-Identifier: BSL-1.0
// lstm: learns where words may be broken at the end of a line, and breaks those it has not seen.
#include "../common/output.hpp"
#include "models.hpp"

int main(int argc, char** argv) {
  return common::guarded("lstm", [&] {
    if (auto const options = lstm::parse_options(argc, argv))
      for (lstm::Choice const& choice : lstm::choices)
        if (choice.name == options->model) choice.run(*options);
  });
}
