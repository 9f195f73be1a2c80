// A rental in the journal, whatever stands there: it is read within bounds or refused in one line,
// its cost can be summed, and what was read once comes back the same.
#include "base/error.h"
#include "cloud/rental.h"

#include <stddef.h>
#include <stdint.h>

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;  // NOLINT
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto rental = cloud::parse_rental(bytes);
  if (!rental) {
    LOCKSTEP_CHECK(rental.error().message.find('\n') == std::string::npos);
    return 0;
  }
  LOCKSTEP_CHECK(rental->wish.nodes >= 1);
  for (const cloud::Attempt& attempt : rental->attempts)
    LOCKSTEP_CHECK(attempt.count >= 1 && attempt.number >= 1);
  LOCKSTEP_CHECK(cloud::cost_so_far(*rental, 1'800'000'000'000) >= 0);
  const std::string once = cloud::rental_json(*rental);
  const auto again = cloud::parse_rental(once);
  LOCKSTEP_CHECK(again && cloud::rental_json(*again) == once);
  return 0;
}
