// Selects the offers that a user's wish admits, and sorts them into the order of trying. Pure.
#pragma once

#include "base/error.h"
#include "cloud/gpu.h"
#include "cloud/offer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::cloud {

enum class SpotWish { no, only, prefer };

struct Wish {
  GpuWish gpu;
  int nodes = 1;
  SpotWish spot = SpotWish::no;
  std::vector<std::string> providers = {};  // empty: all
  std::vector<std::string> regions = {};    // empty: all
  std::optional<Micros> max_price = {};     // an hour, of all nodes together, all in
  int disk_gb = 0;                          // 0: what the image needs
  bool guarded = false;  // a guard terminates machines that cannot end their own bill
  std::vector<std::string> archs = {"x86_64"};  // architectures that we have a binary for
  std::vector<std::string> types = {};          // as the provider names them; empty: all
};

// An offer to leave out until `until_ms`, learned from a failure.
struct Block {
  enum class Kind { capacity, quota, unhealthy };

  Kind kind = Kind::capacity;
  std::string provider;
  std::string region;
  std::string zone = {};  // "": all of the region
  std::string type = {};  // "": all types with GPUs
  bool spot = false;
  std::int64_t until_ms = 0;
  std::string why = {};  // one line
};

inline constexpr std::int64_t kCapacityBlockMs = 10LL * 60'000;
inline constexpr std::int64_t kUnhealthyBlockMs = 60LL * 60'000;
inline constexpr std::int64_t kQuotaBlockMs = 24LL * 60 * 60'000;

bool blocks(const Block& block, const Offer& offer, std::int64_t now_ms);

struct Candidate {
  Offer offer;
  Micros per_hour = 0;     // of all nodes, all in
  std::string doubt = {};  // why dearer offers come first
};

struct LeftOut {
  Offer offer;
  Micros per_hour = 0;
  std::string why;  // "over --max-price 10.00"
};

struct Choice {
  std::vector<Candidate> candidates;  // in the order of trying
  std::vector<LeftOut> left_out;      // offers with the right GPUs, the cheapest first
};

// Sorts the offers that the wish admits. Rules, in this order:
// - Offers come last that were refused lately, are sold out, or have a floor price.
// - SpotWish::prefer: spot comes first if it costs less than the same machine on demand.
// - Offers are sorted by the price of an hour of all nodes, disks and addresses included.
// - A built-in price counts 5 % more, so that a live price nearby comes first.
// - At equal prices, offers in stock come first.
Choice choose(const std::vector<Offer>& offers, const Wish& wish, const std::vector<Block>& blocks,
              std::int64_t now_ms);

// Lists alternatives to a wish without offers: the same GPUs in other numbers, one line for the
// cheapest of each provider and type.
std::vector<std::string> near_offers(const std::vector<Offer>& offers, const Wish& wish);

// Returns the reason for an empty choice, in one line, and a hint.
Error nothing_found(const Catalog& catalog, const Wish& wish, const Choice& choice);

}  // namespace lockstep::cloud
