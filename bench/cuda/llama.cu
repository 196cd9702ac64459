// SPDX-License-Identifier: BSL-1.0
// Texts from a Llama in the shape of Llama 3.2 1B, in bf16: the next token of one text, whose roof is how fast its
// matrices are read, and a prompt of 2,048 tokens.
#include "llama.hpp"
#include "measure.hpp"

#include <dfdx/cuda_models.hpp>

using namespace bench;

int main() {
  return run([](double bandwidth) {
    bench::Llama llama(small, cuda());
    double const error = llama.error(), prompt_error = llama.prompt_error();
    auto const measure = [&](char const* name, Checked result, index_t tokens, double bytes, double flops,
                             auto const& work) {
      double const ms = milliseconds(work);
      char note[40];
      std::snprintf(note, sizeof note, "%.0f tokens/s", static_cast<double>(tokens) / (ms * 1e-3));
      row("cuda llama", name, ms, result, bandwidth, bytes, flops, note);
    };
    measure("Llama 1B, bf16, the next token after 1,024", checked<float>(error), 1, llama.matrix_bytes(), 0,
            [&] { llama.next_token(); });
    dfdx::cuda_options.early = true;
    double const early_error = llama.error();
    measure("Llama 1B, bf16, the next token after 1,024, kernels that begin early",
            checked<float>(early_error), 1, llama.matrix_bytes(), 0, [&] { llama.next_token(); });
    dfdx::cuda_options.early = false;
    // Rows of a prompt are rounded to 16 bits before products, single tokens are not. Two operations for each number of
    // a matrix.
    measure("Llama 1B, bf16, a prompt of 2,048", checked<bfloat16>(prompt_error), llama.prompt(), 0,
            llama.matrix_bytes() * static_cast<double>(llama.prompt()), [&] { llama.read_prompt(); });
  });
}
