// Test vectors of testdata/vectors.
#pragma once

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "test/hex.hpp"

namespace uplink_test {

inline nlohmann::json load(const char *name) {
  std::ifstream file(std::string(UPLINK_TESTDATA "/vectors/") + name);
  return nlohmann::json::parse(file);
}

} // namespace uplink_test
