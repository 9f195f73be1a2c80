// Answers as tables of words (zones, prices, quotas), kept in a file each for a while.
#pragma once

#include "cloud/aws/api.h"
#include "cloud/offer.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud::aws {

using WordRows = std::vector<std::vector<std::string>>;

struct KeptRows {
  WordRows rows;
  Price::Source source = Price::Source::live;
  std::int64_t as_of_ms = 0;
};

struct KeptQuestion {
  std::string name;              // "spot-us-east-1"
  std::int64_t most_age_ms = 0;  // of a kept answer; 0: always ask
  std::function<Asked<WordRows>(Web&)> ask;
};

// Returns the kept answer, if it is not too old.
std::optional<KeptRows> rows_at_hand(Web& web, Api& api, const KeptQuestion& question);

// Returns the kept answer, or asks. Answers are kept apart for each account, since a zone has other
// names in other accounts.
Asked<KeptRows> kept_rows(Web& web, Api& api, const KeptQuestion& question);

}  // namespace lockstep::cloud::aws
