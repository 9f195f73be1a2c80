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
// Describes a failure in a region. Keeps a refusal by an organization's policy.
NoAnswer region_silence(Web& web, Api& api, const std::string& region, const ApiFailure& trouble);

// Questions whose rows are:
// - zones: zone, zone id;
// - types: type, zone;
// - spot: type, zone, micro-dollars an hour;
// - quota: the limit.
KeptQuestion zones_question(Api& api, const std::string& region);
KeptQuestion types_question(Api& api, const std::string& region);
KeptQuestion spot_question(Api& api, const std::string& region);
KeptQuestion quota_question(Api& api, const std::string& region, const std::string& code);
// Rows: region, micro-dollars an hour of the type on demand.
KeptQuestion price_question(Api& api, const std::string& type);

}  // namespace lockstep::cloud::aws
