// Tables of words that hold for a while: zones, prices, quotas. Asked once, kept in a file each.
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
  std::int64_t most_age_ms = 0;  // 0: nothing that is kept will do
  std::function<Asked<WordRows>(Web&)> ask;
};

// What is kept of it and not too old.
std::optional<KeptRows> rows_at_hand(Web& web, Api& api, const KeptQuestion& question);

// Names are those of one account's keys, as zones have other names in other accounts.
Asked<KeptRows> kept_rows(Web& web, Api& api, const KeptQuestion& question);

}  // namespace lockstep::cloud::aws
