// SPDX-License-Identifier: BSL-1.0
#include "cause.hpp"

#include "batchnorm.hpp"
#include "mlp.hpp"
#include "wavenet.hpp"

namespace words {

template <class Model>
std::string cause(Model const& model, ContextBatch<Model> const& contexts,
                  Tensor<std::int32_t, batch> const& labels) {
  return dfdx::first_nan(training_loss, model, contexts, labels);
}

template std::string cause(Mlp const&, ContextBatch<Mlp> const&, Tensor<std::int32_t, batch> const&);
template std::string cause(NormedMlp const&, ContextBatch<NormedMlp> const&,
                           Tensor<std::int32_t, batch> const&);
template std::string cause(Wavenet const&, ContextBatch<Wavenet> const&, Tensor<std::int32_t, batch> const&);

}  // namespace words
