// What tells about GPUs: lines of nvidia-smi, and of the kernel's log.
#include "base/error.h"
#include "base/text.h"
#include "host/gpu_use.h"
#include "host/xid.h"

#include <stddef.h>
#include <stdint.h>

#include <string>
#include <string_view>

using namespace lockstep;  // NOLINT

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const std::string& line : split(bytes, '\n')) {
    if (const auto use = host::parse_gpu_use(line)) {
      const std::string words = host::gpu_use_words(*use);
      LOCKSTEP_CHECK(words.size() < 400 && printable(words, 400) == words);
      LOCKSTEP_CHECK(!use->share || (*use->share >= 0 && *use->share <= 1));
      LOCKSTEP_CHECK(!use->memory || *use->memory >= 0);
      LOCKSTEP_CHECK(host::parse_gpu_use(host::gpu_use_line(*use)).has_value());
    }
    if (const auto xid = host::parse_xid(line)) {
      const std::string words = host::xid_words(*xid, xid->code);
      // printable() makes up to four bytes of one.
      LOCKSTEP_CHECK(words.size() < 900 && printable(words, 900) == words);
    }
  }
  return 0;
}
