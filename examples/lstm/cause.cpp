// SPDX-License-Identifier: BSL-1.0
#include "cause.hpp"

namespace lstm {

template <class Model>
std::string cause(Model const& model, Batch const& letters, Batch const& labels) {
  return dfdx::first_nan(loss, model, letters, labels);
}

template std::string cause(Tagger<true> const&, Batch const&, Batch const&);
template std::string cause(Tagger<false> const&, Batch const&, Batch const&);

}  // namespace lstm
