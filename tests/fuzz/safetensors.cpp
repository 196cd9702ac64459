// SPDX-License-Identifier: BSL-1.0
// Fuzzes the reader of safetensors files, and what becomes of config.json.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/safetensors_weights.hpp>

static fuzz::Reader const safetensors("safetensors", fuzz::weights([](auto bytes) {
                                        dfdx::Weights r;
                                        auto const [value, fault] = dfdx::detail::parse_json(bytes, 8);
                                        if (fault.empty())
                                          dfdx::detail::add_config(r.metadata, "config", value);
                                        for (auto const& [name, a] :
                                             dfdx::SafetensorsFile::from(bytes).arrays())
                                          r.add(name, a);
                                        return r;
                                      }));
