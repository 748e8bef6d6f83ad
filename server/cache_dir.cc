// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <string>

#include "server/local.h"

namespace hackc::server {

std::string DefaultCacheDir() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::string(cache) + "/hackc";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache/hackc";
  }
  return "";
}

}  // namespace hackc::server
