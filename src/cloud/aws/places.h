// Regions and their zones, types for sale, spot prices and quotas.
#pragma once

#include "cloud/aws/kept_rows.h"

#include <string>
#include <vector>

namespace lockstep::cloud::aws {

inline constexpr std::int64_t kDayMs = 86'400'000;
inline constexpr std::int64_t kHourMs = 3'600'000;
inline constexpr std::int64_t kTenMinutesMs = 600'000;

// Returns the regions that this account has enabled.
Asked<std::vector<std::string>> regions(Web& web, Api& api, std::int64_t most_age_ms);

// Returns enabled regions that no policy of the account's organization refuses. A refusal is kept
// for a day.
Asked<std::vector<std::string>> open_regions(Web& web, Api& api, std::int64_t most_age_ms);
// Makes the Silence of a region that failed so. Keeps a refusal by an organization's policy.
Silence region_silence(Web& web, Api& api, const std::string& region, const ApiFailure& trouble);

// Questions whose rows are: zone and its id; type and zone; type, zone and micro-dollars an hour;
// the limit.
KeptQuestion zones_question(Api& api, const std::string& region);
KeptQuestion types_question(Api& api, const std::string& region);
KeptQuestion spot_question(Api& api, const std::string& region);
KeptQuestion quota_question(Api& api, const std::string& region, const std::string& code);
// Region and micro-dollars an hour of one type on demand.
KeptQuestion price_question(Api& api, const std::string& type);

}  // namespace lockstep::cloud::aws
