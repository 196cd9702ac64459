// SPDX-License-Identifier: BSL-1.0
// error: repeat: the block must return what it takes, f32 \[2, 8\]; it returns f32 \[2, 4\]
// error[clang]: repeat: the block must return .*what it takes, f32 \[2, 8\]; it .*returns f32 \[2, 4\]
// max-printed: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
using Block = nn::Linear<8, 4>;
#else
using Block = nn::Linear<8, 8>;
#endif

auto run(nn::Repeat<Block, 3> const& blocks, Tensor<float, 2, 8> const& x) { return blocks(x); }
