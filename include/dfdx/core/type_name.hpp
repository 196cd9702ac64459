// SPDX-License-Identifier: BSL-1.0
// The names of types, for messages and files.
#pragma once

#include <string>
#include <string_view>

namespace dfdx::detail {

// "AdamW" of dfdx::optim::AdamW<...>, as all compilers say it.
template <class T>
std::string short_type_name() {
  std::string_view s = __PRETTY_FUNCTION__;
  s.remove_prefix(s.find("T = ") + 4);
  s = s.substr(0, s.find_first_of("<;]"));
  if (auto const colon = s.rfind(':'); colon != s.npos) s.remove_prefix(colon + 1);
  return std::string(s);
}

}  // namespace dfdx::detail
