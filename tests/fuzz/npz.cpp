// SPDX-License-Identifier: BSL-1.0
// Fuzzes the readers of zip files and of NumPy's arrays.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/npz.hpp>

static fuzz::Reader const npz("npz", fuzz::weights([](auto bytes) {
                                dfdx::Weights r;
                                if (!bytes.empty() && bytes[0] == std::byte{'P'}) {
                                  dfdx::data::detail::ZipFile const zip(bytes, "f");
                                  for (auto const& m : zip.members())
                                    r.add(m.name, dfdx::data::npy_array(zip.read(m), "f"));
                                } else r.add("x", dfdx::data::npy_array(bytes, "f"));
                                return r;
                              }));
